/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libmosquitto owns the socket and closes it when it likes; a poll handle watches one connection's socket and
 * is given up with it. What the library needs to be told, and in which order, is written where it is done.
 */

#include "io/link.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdlib.h>

#include "common/assert.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "io/client.h"
#include "io/mqtt.h"
#include "io/resolve.h"

#define MISC_INTERVAL_MS 1000 /* the library's own timers count in seconds */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_LAST_MS  15000
#define CLOSE_TIMEOUT_MS 2000

/* What may wait for the broker before we hold back: libmosquitto keeps a copy of all of it. */
#define ROOM_MESSAGES 50000
#define ROOM_BYTES    (64 << 20)

enum link_state {
        LINK_WAITING,    /* for the next attempt */
        LINK_CONNECTING, /* until CONNACK and SUBACKs */
        LINK_UP,
        LINK_CLOSING, /* until all is sent */
};

struct link {
        struct link_config config;
        uv_loop_t *loop;
        struct mosquitto *client;
        enum link_state state;
        size_t endpoint;     /* index */
        size_t address;      /* the next of those that the endpoint's name stands for */
        size_t n_subscribed; /* SUBACKs so far */
        bool session_kept;
        bool is_socket_open; /* TCP's part: false until the socket was writable once */
        enum link_reading reading;
        uv_poll_t *poll; /* NULL while there is no socket */
        uv_timer_t misc_timer;
        uv_timer_t retry_timer;
        uint64_t backoff_ms; /* until the link has been up for longer than the last of them */
        uint64_t up_since_ms;
        uint32_t n_outstanding; /* published, not yet acknowledged */
        uint64_t n_outstanding_bytes;
        uint32_t n_bytes_of[65536]; /* by packet identifier */
        uint32_t send_maximum;
        uint64_t close_until_ms;
        void (*closed)(void *userdata);
        int n_open_timers;
        char library_error[256]; /* what libmosquitto logged last: TLS says why only there */
};

static void update_poll(struct link *link);
static void finish_close(struct link *link);

/* 1. Attempts and pauses. */

static void attempt(uv_timer_t *timer);

/* Up to half of a pause off, so that those whom one broker lost do not come back at once. */
static uint64_t jitter(uint64_t pause_ms) {
        uint32_t random = 0;

        uv_random(NULL, NULL, &random, sizeof(random), 0, NULL);
        return pause_ms - random % (pause_ms / 2 + 1);
}

static void wait_and_retry(struct link *link) {
        bool was_up = link->state == LINK_UP && uv_now(link->loop) - link->up_since_ms > BACKOFF_LAST_MS;
        uint64_t pause_ms = was_up ? BACKOFF_FIRST_MS : link->backoff_ms;

        link->state = LINK_WAITING;
        link->backoff_ms = pause_ms * 2 < BACKOFF_LAST_MS ? pause_ms * 2 : BACKOFF_LAST_MS;
        uv_timer_start(&link->retry_timer, attempt, jitter(pause_ms), 0);
}

static void poll_closed(uv_handle_t *handle) {
        free(handle);
}

static void drop_poll(struct link *link) {
        if (link->poll)
                uv_close((uv_handle_t *)take_ptr(&link->poll), poll_closed);
}

/* What a person is told: the library's own words where it has any. A broker that rejects us under TLS says little. */
static void explain(struct link *link, const char *reason) {
        size_t length = strlen(link->library_error);
        bool is_rejected = link->config.credentials.tls && link->state == LINK_CONNECTING &&
                           (link->is_socket_open || length > 0);

        if (length == 0)
                length = (size_t)snprintf(link->library_error, sizeof(link->library_error), "%s", reason);
        if (is_rejected && !strstr(link->library_error, "certificate") &&
            length < sizeof(link->library_error))
                snprintf(link->library_error + length, sizeof(link->library_error) - length,
                         "; does the broker accept our certificate?");
}

/* The connection has ended, or an attempt has failed. */
static void lose(struct link *link, const char *reason) {
        drop_poll(link);
        if (link->state == LINK_WAITING)
                return;
        if (link->state == LINK_CLOSING) {
                finish_close(link);
                return;
        }

        link->n_subscribed = 0;
        explain(link, reason);
        link->config.callbacks.down(link->config.userdata, link->library_error);
        wait_and_retry(link);
}

/* TLS shakes hands inside the library's reading; until then CONNECT waits, and must not keep us awake. */
static bool is_shaking_hands(const struct link *link) {
        return link->config.credentials.tls && link->state == LINK_CONNECTING;
}

static void socket_ready(uv_poll_t *poll, int status, int events) {
        struct link *link = poll->data;
        int r = MOSQ_ERR_SUCCESS;

        if (status >= 0)
                link->is_socket_open = true;
        if (status < 0 || events & UV_READABLE || is_shaking_hands(link)) {
                r = mosquitto_loop_read(link->client, 1);
                link->config.callbacks.batch_end(link->config.userdata);
        }
        if (r == MOSQ_ERR_SUCCESS && mosquitto_want_write(link->client))
                r = mosquitto_loop_write(link->client, 1);
        if (r != MOSQ_ERR_SUCCESS)
                lose(link, mosquitto_strerror(r)); /* on_disconnect has mostly said it already */
        update_poll(link);
}

static bool all_is_sent(const struct link *link) {
        return link->n_outstanding <= link->send_maximum && !mosquitto_want_write(link->client);
}

static bool wants_read(const struct link *link, bool wants_write) {
        switch (link->reading) {
        case LINK_WRITES_FIRST:
                return !wants_write;
        case LINK_READS_NOTHING:
                return link->state != LINK_UP;
        default:
                return true;
        }
}

/* Watches the present socket for what the library waits for. */
static void update_poll(struct link *link) {
        bool wants_write;
        int events = 0;

        if (!link->poll)
                return;
        if (link->state == LINK_CLOSING && all_is_sent(link)) {
                finish_close(link);
                return;
        }

        wants_write =
                mosquitto_want_write(link->client) && !(is_shaking_hands(link) && link->is_socket_open);
        if (wants_write)
                events |= UV_WRITABLE;
        if (wants_read(link, wants_write))
                events |= UV_READABLE;
        if (events == 0)
                uv_poll_stop(link->poll);
        else
                uv_poll_start(link->poll, events, socket_ready);
}

/* A connection has a new socket, often with an old one's number: so it gets a handle of its own. */
static int watch_socket(struct link *link) {
        CLEANUP(cleanup_free) uv_poll_t *poll = malloc(sizeof(*poll));
        int r;

        if (!poll)
                return -ENOMEM;

        r = uv_poll_init(link->loop, poll, mosquitto_socket(link->client));
        if (r < 0)
                return r;

        poll->data = link;
        link->poll = take_ptr(&poll);
        update_poll(link);
        return 0;
}

static void next_endpoint(struct link *link) {
        link->endpoint = (link->endpoint + 1) % link->config.n_endpoints;
        link->address = 0;
}

/*
 * The library takes a name's first address for good once it connects without blocking: so we choose, each time the
 * next one, and after the last one the next endpoint. Under TLS it must see the name, which the certificate bears.
 * Returns 0 or -EHOSTUNREACH.
 */
static int choose_address(struct link *link, char ret_text[RESOLVE_TEXT_SIZE], const char **ret_host) {
        for (;;) {
                const struct endpoint *endpoint = link_endpoint(link);
                size_t address = link->address++;
                int r;

                if (endpoint->port == 0 || link->config.credentials.tls) {
                        *ret_host = endpoint->host;
                        r = address == 0 ? 0 : -ENOENT;
                } else {
                        *ret_host = ret_text;
                        r = resolve_address(endpoint->host, address, ret_text);
                }
                if (r == 0)
                        return 0;

                if (r != -ENOENT)
                        return r;
                next_endpoint(link);
        }
}

static void attempt(uv_timer_t *timer) {
        struct link *link = timer->data;
        char address[RESOLVE_TEXT_SIZE];
        const char *host;
        int r;

        link->state = LINK_CONNECTING;
        link->is_socket_open = false;
        link->library_error[0] = '\0';
        if (choose_address(link, address, &host) < 0) {
                lose(link, "the name is not known");
                next_endpoint(link);
                return;
        }
        r = credentials_set_password(&link->config.credentials, link->client);
        if (r < 0) {
                snprintf(link->library_error, sizeof(link->library_error), "the password file: %s",
                         strerror(-r));
                lose(link, NULL);
                return;
        }

        r = mosquitto_connect_async(link->client, host, link_endpoint(link)->port, link->config.keepalive_s);
        if (r == MOSQ_ERR_SUCCESS && watch_socket(link) < 0)
                r = MOSQ_ERR_NOMEM;
        if (r == MOSQ_ERR_SUCCESS)
                return;

        /* on a fast network TLS may have begun to shake hands already */
        link->is_socket_open = r == MOSQ_ERR_ERRNO && errno == EPROTO;
        lose(link, r == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(r));
}

static void misc(uv_timer_t *timer) {
        struct link *link = timer->data;

        if (link->state == LINK_CLOSING && uv_now(link->loop) >= link->close_until_ms) {
                finish_close(link);
                return;
        }
        mosquitto_loop_misc(link->client);
        update_poll(link);
}

/* 2. What the library tells. */

/* The broker does not want us; it is asked again later, for somebody may mend it. */
static void refuse(struct link *link, const struct refusal *refusal) {
        link->config.callbacks.refused(link->config.userdata, refusal);
        mosquitto_disconnect_v5(link->client, 0, NULL);
}

static void on_connect(struct mosquitto *client, void *userdata, int reason, int flags,
                       const mosquitto_property *properties) {
        struct link *link = userdata;
        uint8_t maximum_qos = 2;
        uint16_t receive_maximum;

        if (reason != 0) {
                const struct refusal *refusal = refusal_of_connection(reason);

                if (refusal)
                        link->config.callbacks.refused(link->config.userdata, refusal);
                return; /* the broker closes, and on_disconnect follows */
        }

        mosquitto_property_read_byte(properties, MQTT_PROP_MAXIMUM_QOS, &maximum_qos, false);
        if (maximum_qos == 0) {
                refuse(link, &refusal_qos);
                return;
        }

        link->send_maximum = CLIENT_SEND_MAXIMUM;
        if (mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM, &receive_maximum, false) &&
            receive_maximum < CLIENT_SEND_MAXIMUM)
                link->send_maximum = receive_maximum;

        link->session_kept = flags & 1;
        for (size_t i = 0; i < link->config.n_subscriptions; i++) {
                const struct link_subscription *subscription = &link->config.subscriptions[i];

                mosquitto_subscribe_v5(client, NULL, subscription->filter, subscription->qos,
                                       subscription->retained ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS
                                                              : MQTT_SUB_OPT_SEND_RETAIN_NEVER,
                                       NULL);
        }
}

/* SUBACKs come in the order of the subscriptions, and what was retained for one before the next one's. */
static void on_subscribe(struct mosquitto *client, void *userdata, int mid, int n_granted,
                         const int *granted) {
        struct link *link = userdata;
        const struct link_subscription *subscription = &link->config.subscriptions[link->n_subscribed];
        bool is_granted = n_granted == 1 && granted[0] <= 2;

        (void)client;
        (void)mid;
        if (link->state != LINK_CONNECTING)
                return;
        if (subscription->required && (!is_granted || granted[0] < 1)) {
                refuse(link, &refusal_subscription);
                return;
        }
        if (++link->n_subscribed < link->config.n_subscriptions)
                return;

        link->state = LINK_UP;
        link->address--; /* the first to try when it is lost */
        link->up_since_ms = uv_now(link->loop);
        link->library_error[0] = '\0';
        link->config.callbacks.up(link->config.userdata, link->session_kept);
}

static void on_disconnect(struct mosquitto *client, void *userdata, int reason,
                          const mosquitto_property *properties) {
        struct link *link = userdata;

        (void)client;
        (void)properties;
        lose(link, reason < 0x80 ? mosquitto_strerror(reason) : mosquitto_reason_string(reason));
}

static void on_message(struct mosquitto *client, void *userdata, const struct mosquitto_message *message,
                       const mosquitto_property *properties) {
        CLEANUP(mqtt_incoming_deinit) struct mqtt_incoming incoming;
        struct link *link = userdata;

        (void)client;
        if (mqtt_incoming_init(&incoming, message, properties, link->config.user_properties) == 0)
                link->config.callbacks.message(link->config.userdata, &incoming.message);
        else
                log_error("out of memory: a message that arrived was dropped");

        /* an EAGAIN left here would end the library's reading early */
        errno = 0;
}

static void on_publish(struct mosquitto *client, void *userdata, int mid, int reason,
                       const mosquitto_property *properties) {
        struct link *link = userdata;

        (void)client;
        (void)properties;
        if (link->n_bytes_of[mid] > 0) {
                link->n_outstanding--;
                link->n_outstanding_bytes -= link->n_bytes_of[mid];
                link->n_bytes_of[mid] = 0;
        }
        link->config.callbacks.acknowledged(link->config.userdata, (uint16_t)mid,
                                            reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS);
}

static void on_log(struct mosquitto *client, void *userdata, int level, const char *text) {
        struct link *link = userdata;

        (void)client;
        if (level == MOSQ_LOG_ERR)
                snprintf(link->library_error, sizeof(link->library_error), "%s", text);
}

/* 3. The interface. */

static void free_link(struct link *link) {
        if (link->client)
                mosquitto_destroy(link->client);
        free(link);
        mosquitto_lib_cleanup();
}

static void free_link_cleanup(struct link **link) {
        if (*link)
                free_link(*link);
}

static void start_timers(struct link *link) {
        uv_timer_init(link->loop, &link->misc_timer);
        uv_timer_init(link->loop, &link->retry_timer);
        link->misc_timer.data = link;
        link->retry_timer.data = link;
        link->n_open_timers = 2;
        uv_timer_start(&link->misc_timer, misc, MISC_INTERVAL_MS, MISC_INTERVAL_MS);
        uv_timer_start(&link->retry_timer, attempt, 0, 0);
}

int link_open(struct link **ret_link, uv_loop_t *loop, const struct link_config *config) {
        CLEANUP(free_link_cleanup) struct link *link = NULL;
        int r;

        mosquitto_lib_init();
        link = calloc(1, sizeof(*link));
        if (!link) {
                mosquitto_lib_cleanup();
                return -ENOMEM;
        }

        link->config = *config;
        link->loop = loop;
        link->backoff_ms = BACKOFF_FIRST_MS;
        link->send_maximum = CLIENT_SEND_MAXIMUM;
        r = client_new(&link->client, config->client_id, &config->credentials, link);
        if (r < 0)
                return r;

        mosquitto_connect_v5_callback_set(link->client, on_connect);
        mosquitto_subscribe_callback_set(link->client, on_subscribe);
        mosquitto_disconnect_v5_callback_set(link->client, on_disconnect);
        mosquitto_message_v5_callback_set(link->client, on_message);
        mosquitto_publish_v5_callback_set(link->client, on_publish);
        mosquitto_log_callback_set(link->client, on_log);

        start_timers(link);
        *ret_link = take_ptr(&link);
        return 0;
}

static void timer_closed(uv_handle_t *handle) {
        struct link *link = handle->data;
        void (*closed)(void *userdata) = link->closed;
        void *userdata = link->config.userdata;

        if (--link->n_open_timers > 0)
                return;
        free_link(link);
        closed(userdata);
}

static bool is_subscribed(const struct link *link) {
        return link->poll && link->n_subscribed == link->config.n_subscriptions;
}

static void finish_close(struct link *link) {
        bool was_subscribed = is_subscribed(link);

        if (uv_is_closing((uv_handle_t *)&link->misc_timer))
                return;

        link->state = LINK_WAITING; /* nothing that the library still tells leads to another attempt */
        drop_poll(link);
        if (was_subscribed)
                client_disconnect(link->client);
        uv_close((uv_handle_t *)&link->misc_timer, timer_closed);
        uv_close((uv_handle_t *)&link->retry_timer, timer_closed);
}

void link_close(struct link *link, void (*closed)(void *userdata)) {
        ASSERT(!link->closed);

        link->closed = closed;
        link->state = LINK_CLOSING;
        link->close_until_ms = uv_now(link->loop) + CLOSE_TIMEOUT_MS;
        if (is_subscribed(link))
                update_poll(link);
        else
                finish_close(link);
}

int link_publish(struct link *link, const struct message *message, uint16_t *ret_id) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        int id = 0;
        int r;

        if (link->n_outstanding >= LINK_OUTSTANDING_MAX)
                return -EAGAIN;

        r = mqtt_properties_new(&properties, message);
        if (r < 0)
                return r;

        r = mqtt_error(mosquitto_publish_v5(link->client, &id, (const char *)message->topic.data,
                                            (int)message->payload.length, message->payload.data, 1, false,
                                            properties));
        /* without a connection, or where it broke just now, the library keeps the message and sends it later */
        if (r < 0 && r != -ENOTCONN && r != -EIO)
                return r;

        link->n_outstanding++;
        link->n_bytes_of[id] = (uint32_t)message_size(message);
        link->n_outstanding_bytes += link->n_bytes_of[id];
        *ret_id = (uint16_t)id;
        return 0;
}

bool link_has_room(const struct link *link) {
        return link->n_outstanding < ROOM_MESSAGES && link->n_outstanding_bytes < ROOM_BYTES;
}

void link_set_reading(struct link *link, enum link_reading reading) {
        if (link->reading == reading)
                return;

        link->reading = reading;
        update_poll(link);
}

const struct endpoint *link_endpoint(const struct link *link) {
        return &link->config.endpoints[link->endpoint];
}
