/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libmosquitto owns the socket and closes it when it likes; a poll handle watches one connection's socket and
 * is given up with it. What the library needs to be told, and in which order, is written where it is done.
 */

#include "io/link.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/cleanup.h"
#include "io/mqtt.h"

#define KEEPALIVE_S      20
#define SESSION_EXPIRY_S 3600
#define MISC_INTERVAL_MS 1000 /* the library's own timers count in seconds */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_LAST_MS  15000
#define CLOSE_TIMEOUT_MS 2000

/* In flight at once: every publish and every PUBACK walks the library's list of them. */
#define SEND_MAXIMUM 1000

enum link_state {
        LINK_WAITING,    /* for the next attempt */
        LINK_CONNECTING, /* until CONNACK and SUBACK */
        LINK_UP,
        LINK_CLOSING, /* up, until all is sent */
};

struct link {
        struct link_config config;
        uv_loop_t *loop;
        struct mosquitto *client;
        enum link_state state;
        bool subscribed;
        bool session_kept;
        uv_poll_t *poll; /* NULL while there is no socket */
        uv_timer_t misc_timer;
        uv_timer_t retry_timer;
        uint64_t backoff_ms;
        uint32_t n_outstanding; /* published and not yet acknowledged */
        uint32_t send_maximum;
        uint64_t close_until_ms;
        void (*closed)(void *userdata);
        int n_open_timers;
};

static void update_poll(struct link *link);
static void finish_close(struct link *link);

/* 1. The refusals that a person must mend. Others are like a broker that is not there: it may come. */

static const struct {
        int reason;
        struct link_refusal refusal;
} refusals[] = {
        { MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION,
          { "it does not speak MQTT 5", "use a broker that does, such as mosquitto 2" } },
        { CONNACK_REFUSED_PROTOCOL_VERSION,
          { "it does not speak MQTT 5", "use a broker that does, such as mosquitto 2" } },
        { MQTT_RC_CLIENTID_NOT_VALID,
          { "it does not accept our client id", "choose another one with --client-id" } },
        { MQTT_RC_BAD_USERNAME_OR_PASSWORD,
          { "wrong user name or password", "the broker wants credentials, or other ones" } },
        { MQTT_RC_NOT_AUTHORIZED,
          { "not authorized", "the broker wants credentials, or must allow this client in its rules" } },
        { MQTT_RC_BANNED, { "this client is banned", "lift the ban at the broker" } },
        { MQTT_RC_BAD_AUTHENTICATION_METHOD,
          { "bad authentication method", "allow plain connections at the broker" } },
};

static const struct link_refusal refusal_qos = {
        "it allows QoS 0 only",
        "the protocol needs QoS 1: raise the broker's maximum QoS (mosquitto: max_qos)"
};

static const struct link_refusal refusal_subscription = {
        "it refuses the subscription to the invoke topic",
        "allow this client in the broker's access rules to read statestore/# and to write clients/#"
};

static void refuse(struct link *link, const struct link_refusal *refusal) {
        link->config.callbacks.refused(link->config.userdata, refusal);
}

/* 2. Attempts and pauses. */

static void attempt(uv_timer_t *timer);

static void wait_and_retry(struct link *link) {
        uint64_t pause_ms = link->backoff_ms;
        uint32_t random = 0;

        /* up to half of it off, so that those whom one broker lost do not come back at once */
        uv_random(NULL, NULL, &random, sizeof(random), 0, NULL);
        pause_ms -= random % (pause_ms / 2 + 1);

        link->backoff_ms = link->backoff_ms * 2 < BACKOFF_LAST_MS ? link->backoff_ms * 2 : BACKOFF_LAST_MS;
        link->state = LINK_WAITING;
        uv_timer_start(&link->retry_timer, attempt, pause_ms, 0);
}

static void poll_closed(uv_handle_t *handle) {
        free(handle);
}

static void drop_poll(struct link *link) {
        if (link->poll)
                uv_close((uv_handle_t *)take_ptr(&link->poll), poll_closed);
}

/* The connection has ended, or an attempt has failed. */
static void lose(struct link *link, const char *reason) {
        bool closing = link->state == LINK_CLOSING;

        link->subscribed = false;
        drop_poll(link);
        if (link->state == LINK_WAITING)
                return;

        if (closing) {
                finish_close(link);
                return;
        }
        wait_and_retry(link);
        link->config.callbacks.down(link->config.userdata, reason);
}

static void socket_ready(uv_poll_t *poll, int status, int events) {
        struct link *link = poll->data;
        int r = MOSQ_ERR_SUCCESS;

        if (status < 0 || events & (UV_READABLE | UV_DISCONNECT)) {
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

/* Watches the present socket for what the library waits for. */
static void update_poll(struct link *link) {
        int events = UV_READABLE;

        if (!link->poll)
                return;
        if (link->state == LINK_CLOSING && all_is_sent(link)) {
                finish_close(link);
                return;
        }
        if (mosquitto_want_write(link->client))
                events |= UV_WRITABLE;
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

static void attempt(uv_timer_t *timer) {
        struct link *link = timer->data;
        int r;

        link->state = LINK_CONNECTING;
        r = mosquitto_connect_async(link->client, link->config.host, link->config.port, KEEPALIVE_S);
        if (r == MOSQ_ERR_SUCCESS && watch_socket(link) < 0)
                r = MOSQ_ERR_NOMEM;
        if (r != MOSQ_ERR_SUCCESS)
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

/* 3. What the library tells. */

static void on_connect(struct mosquitto *client, void *userdata, int reason, int flags,
                       const mosquitto_property *properties) {
        struct link *link = userdata;
        uint8_t maximum_qos = 2;
        uint16_t receive_maximum;

        for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
                if (reason == refusals[i].reason)
                        refuse(link, &refusals[i].refusal);
        if (reason != 0)
                return; /* the broker closes, and on_disconnect follows */

        mosquitto_property_read_byte(properties, MQTT_PROP_MAXIMUM_QOS, &maximum_qos, false);
        if (maximum_qos == 0) {
                refuse(link, &refusal_qos);
                mosquitto_disconnect_v5(client, 0, NULL);
                return;
        }

        link->send_maximum = SEND_MAXIMUM;
        if (mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM, &receive_maximum, false) &&
            receive_maximum < SEND_MAXIMUM)
                link->send_maximum = receive_maximum;

        /* QoS 2, so that a request at the wrong QoS is seen as it was sent */
        link->session_kept = flags & 1;
        mosquitto_subscribe_v5(client, NULL, link->config.topic, 2, MQTT_SUB_OPT_SEND_RETAIN_NEVER, NULL);
}

static void on_subscribe(struct mosquitto *client, void *userdata, int mid, int n_granted,
                         const int *granted) {
        struct link *link = userdata;

        (void)mid;
        if (link->state != LINK_CONNECTING)
                return;
        if (n_granted < 1 || granted[0] < 1 || granted[0] > 2) {
                refuse(link, &refusal_subscription);
                mosquitto_disconnect_v5(client, 0, NULL);
                return;
        }

        link->state = LINK_UP;
        link->subscribed = true;
        link->backoff_ms = BACKOFF_FIRST_MS;
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

        /* an EAGAIN left here would end the library's reading early */
        errno = 0;
}

static void on_publish(struct mosquitto *client, void *userdata, int mid, int reason,
                       const mosquitto_property *properties) {
        struct link *link = userdata;

        (void)client;
        (void)mid;
        (void)reason;
        (void)properties;
        if (link->n_outstanding > 0)
                link->n_outstanding--;
}

/* 4. The interface. */

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

static int set_options(struct link *link) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        struct mosquitto *client = link->client;
        int r;

        r = mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_RECEIVE_MAXIMUM, 65535);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, SEND_MAXIMUM);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL,
                                                 SESSION_EXPIRY_S);
        if (r != MOSQ_ERR_SUCCESS)
                return mqtt_error(r);

        /*
         * Only the blocking call takes CONNECT's properties. Without a host it keeps them, fails and does
         * nothing else; every later attempt sends them.
         */
        r = mosquitto_connect_bind_v5(client, NULL, 0, 0, NULL, properties);
        return r == MOSQ_ERR_INVAL ? 0 : mqtt_error(r);
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
        link->send_maximum = SEND_MAXIMUM;
        link->client = mosquitto_new(config->client_id, false, link);
        if (!link->client)
                return -errno;

        r = set_options(link);
        if (r < 0)
                return r;
        mosquitto_connect_v5_callback_set(link->client, on_connect);
        mosquitto_subscribe_callback_set(link->client, on_subscribe);
        mosquitto_disconnect_v5_callback_set(link->client, on_disconnect);
        mosquitto_message_v5_callback_set(link->client, on_message);
        mosquitto_publish_v5_callback_set(link->client, on_publish);

        uv_timer_init(loop, &link->misc_timer);
        uv_timer_init(loop, &link->retry_timer);
        link->misc_timer.data = link;
        link->retry_timer.data = link;
        link->n_open_timers = 2;
        uv_timer_start(&link->misc_timer, misc, MISC_INTERVAL_MS, MISC_INTERVAL_MS);
        uv_timer_start(&link->retry_timer, attempt, 0, 0);

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

/*
 * DISCONNECT is followed by a close, and a close with unread bytes is a reset, which may destroy what the
 * broker has not read yet. So the connection is held open until the broker closes it. What it sends
 * meanwhile was not acknowledged: it sends it again to whoever takes up the session.
 */
static void disconnect(struct link *link) {
        struct timeval timeout = { .tv_sec = CLOSE_TIMEOUT_MS / 1000 };
        int fd = dup(mosquitto_socket(link->client));
        char rest[4096];

        mosquitto_disconnect_v5(link->client, 0, NULL);
        if (fd < 0)
                return;

        shutdown(fd, SHUT_WR);
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0)
                while (recv(fd, rest, sizeof(rest), 0) > 0)
                        ;
        close(fd);
}

static void finish_close(struct link *link) {
        bool connected = link->poll && link->subscribed;

        if (uv_is_closing((uv_handle_t *)&link->misc_timer))
                return;

        link->state = LINK_WAITING; /* nothing that the library still tells leads to another attempt */
        drop_poll(link);
        if (connected)
                disconnect(link);
        uv_close((uv_handle_t *)&link->misc_timer, timer_closed);
        uv_close((uv_handle_t *)&link->retry_timer, timer_closed);
}

void link_close(struct link *link, void (*closed)(void *userdata)) {
        ASSERT(!link->closed);

        link->closed = closed;
        link->state = LINK_CLOSING;
        link->close_until_ms = uv_now(link->loop) + CLOSE_TIMEOUT_MS;
        if (link->subscribed)
                update_poll(link);
        else
                finish_close(link);
}

int link_publish(struct link *link, const struct message *message) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        int r;

        if (link->n_outstanding >= LINK_OUTSTANDING_MAX)
                return -EAGAIN;

        r = mqtt_properties_new(&properties, message);
        if (r < 0)
                return r;

        r = mqtt_error(mosquitto_publish_v5(link->client, NULL, (const char *)message->topic.data,
                                            (int)message->payload.length, message->payload.data,
                                            message->qos, false, properties));
        /* without a connection, or where it broke just now, the library keeps the message and sends it later */
        if (r == -ENOTCONN || r == -EIO)
                r = 0;
        if (r == 0)
                link->n_outstanding++;
        return r;
}
