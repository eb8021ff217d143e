/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/link.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "mqtt/properties.h"

/* The broker keeps the session and queues messages for this long after a disconnect. */
#define SESSION_EXPIRY_S 3600

/* Initial and maximum pause between attempts. */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_LAST_MS  15000

#define CLOSE_TIMEOUT_MS 2000

/* Limits of unacknowledged messages for new work: libmosquitto keeps a copy of each message. */
#define ROOM_MESSAGES 50000
#define ROOM_BYTES    (64 << 20)

enum link_state {
        LINK_WAITING,    /* the timer starts the next attempt */
        LINK_CONNECTING, /* until CONNACK and all SUBACKs */
        LINK_UP,
        LINK_CLOSING, /* until all messages are sent */
        LINK_CLOSED,  /* until the handles are closed */
};

struct link {
        struct link_config config;
        uv_loop_t *loop;
        struct mqtt_client *client;
        enum link_state state;
        size_t n_subscribed; /* SUBACKs received */
        bool session_present;
        const char *next_client_id; /* NULL: the present one stays */
        uv_timer_t timer;           /* the next attempt, or the timeout of closing */
        uint64_t backoff_ms;        /* reset when the link was up for longer than BACKOFF_LAST_MS */
        uint64_t up_since_ms;
        uint32_t n_outstanding; /* published, not yet acknowledged */
        uint64_t n_outstanding_bytes;
        uint32_t n_bytes_of[65536]; /* by packet identifier */
        uint32_t send_maximum;
        uint32_t max_packet_bytes; /* of the broker */
        void (*closed)(void *userdata);
        int n_open; /* while closed: handles that are not closed yet */
};

/* 1. Closing. */

static void release(void *userdata) {
        struct link *link = userdata;
        void (*closed)(void *userdata) = link->closed;

        if (--link->n_open > 0)
                return;
        userdata = link->config.userdata;
        free(link);
        closed(userdata);
}

static void timer_closed(uv_handle_t *handle) {
        release(handle->data);
}

static bool is_subscribed(const struct link *link) {
        return link->n_subscribed == link->config.n_subscriptions;
}

static void finish_close(struct link *link) {
        if (link->state == LINK_CLOSED)
                return;

        link->state = LINK_CLOSED;
        if (is_subscribed(link))
                mqtt_client_disconnect_gracefully(link->client);
        link->n_open = 2;
        mqtt_client_close(link->client, release);
        uv_close((uv_handle_t *)&link->timer, timer_closed);
}

static void close_if_all_is_sent(struct link *link) {
        if (link->state == LINK_CLOSING && link->n_outstanding <= link->send_maximum &&
            !mqtt_client_wants_write(link->client))
                finish_close(link);
}

static void patience_ended(uv_timer_t *timer) {
        finish_close(timer->data);
}

void link_close(struct link *link, void (*closed)(void *userdata)) {
        ASSERT(!link->closed);

        link->closed = closed;
        link->state = LINK_CLOSING;
        uv_timer_start(&link->timer, patience_ended, CLOSE_TIMEOUT_MS, 0);
        if (is_subscribed(link))
                close_if_all_is_sent(link);
        else
                finish_close(link);
}

/* 2. Attempts. */

static void attempt(uv_timer_t *timer) {
        struct link *link = timer->data;

        link->state = LINK_CONNECTING;
        mqtt_client_connect(link->client);
}

/* Subtract up to half of the pause, so that clients of a restarted broker do not all reconnect at once. */
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
        uv_timer_start(&link->timer, attempt, jitter(pause_ms), 0);
}

static void on_desynchronized(void *userdata, enum mqtt_loss loss, int reason, const char *text) {
        struct link *link = userdata;

        (void)loss;
        (void)reason;
        link->n_subscribed = 0;
        if (link->state == LINK_CLOSING) {
                finish_close(link);
                return;
        }

        link->config.callbacks.down(link->config.userdata, text);
        wait_and_retry(link);
}

/* 3. Callbacks of the client. */

/* Report the refusal and disconnect. The link tries again later: an operator may have changed the broker. */
static void refuse(struct link *link, const struct refusal *refusal) {
        link->config.callbacks.refused(link->config.userdata, refusal);
        mqtt_client_refuse(link->client);
}

static void on_connected(void *userdata, int reason, bool session_present,
                         const mosquitto_property *properties) {
        struct link *link = userdata;
        uint8_t maximum_qos = 2;
        uint16_t receive_maximum;

        if (reason != 0) {
                const struct refusal *refusal = refusal_of_connection(reason);

                if (refusal)
                        link->config.callbacks.refused(link->config.userdata, refusal);
                return;
        }

        mosquitto_property_read_byte(properties, MQTT_PROP_MAXIMUM_QOS, &maximum_qos, false);
        if (maximum_qos == 0) {
                refuse(link, &refusal_qos);
                return;
        }

        link->send_maximum = MQTT_SEND_MAXIMUM;
        if (mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM, &receive_maximum, false) &&
            receive_maximum < MQTT_SEND_MAXIMUM)
                link->send_maximum = receive_maximum;

        link->max_packet_bytes = MESSAGE_PACKET_MAX;
        mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE, &link->max_packet_bytes,
                                      false);
        link->session_present = session_present;
        for (size_t i = 0; i < link->config.n_subscriptions; i++) {
                const struct link_subscription *subscription = &link->config.subscriptions[i];

                mqtt_client_subscribe(link->client, &subscription->filter, 1, subscription->qos,
                                      subscription->retained ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS
                                                             : MQTT_SUB_OPT_SEND_RETAIN_NEVER);
        }
}

/* SUBACKs arrive in the order of the subscriptions, each with its retained messages before the next SUBACK. */
static void on_subscribed(void *userdata, int n_granted, const int *granted) {
        struct link *link = userdata;
        const struct link_subscription *subscription = &link->config.subscriptions[link->n_subscribed];
        bool is_granted = n_granted == 1 && granted[0] <= 2;

        if (link->state != LINK_CONNECTING)
                return;
        if (subscription->required && (!is_granted || granted[0] < 1)) {
                refuse(link, &refusal_subscription);
                return;
        }
        if (++link->n_subscribed < link->config.n_subscriptions)
                return;

        link->state = LINK_UP;
        link->up_since_ms = uv_now(link->loop);
        mqtt_client_set_up(link->client);
        link->config.callbacks.up(link->config.userdata, link->session_present);
}

static void on_message(void *userdata, const struct message *message) {
        struct link *link = userdata;

        link->config.callbacks.message(link->config.userdata, message);
}

static void on_dropped(void *userdata) {
        struct link *link = userdata;

        link->config.callbacks.dropped(link->config.userdata);
}

static void on_acknowledged(void *userdata, int id, int reason) {
        struct link *link = userdata;

        if (link->n_bytes_of[id] > 0) {
                link->n_outstanding--;
                link->n_outstanding_bytes -= link->n_bytes_of[id];
                link->n_bytes_of[id] = 0;
        }
        link->config.callbacks.acknowledged(link->config.userdata, (uint16_t)id,
                                            reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS);
}

static void on_batch_end(void *userdata) {
        struct link *link = userdata;

        link->config.callbacks.batch_end(link->config.userdata);
}

/* If there is no memory for it, the link comes back with the client id that it had. */
static void change_client_id_if_all_is_acknowledged(struct link *link) {
        if (!link->next_client_id || link->state != LINK_UP || link->n_outstanding > 0)
                return;

        (void)mqtt_client_change_id(link->client, take_ptr(&link->next_client_id));
        link->n_subscribed = 0;
        link->state = LINK_WAITING;
        link->config.callbacks.down(link->config.userdata, "connecting anew under another client id");
        uv_timer_start(&link->timer, attempt, 0, 0);
}

static void on_batch_written(void *userdata, bool has_read) {
        struct link *link = userdata;

        if (has_read)
                link->config.callbacks.batch_written(link->config.userdata);
        close_if_all_is_sent(link);
        change_client_id_if_all_is_acknowledged(link);
}

/* 4. The interface. */

static void cleanup_link(struct link **link) {
        free(*link);
}

int link_open(struct link **ret_link, uv_loop_t *loop, const struct link_config *config) {
        CLEANUP(cleanup_link) struct link *link = calloc(1, sizeof(*link));
        struct mqtt_client_config client_config = {
                .endpoints = config->endpoints,
                .n_endpoints = config->n_endpoints,
                .client_id = config->client_id,
                .keepalive_s = config->keepalive_s,
                .receive_maximum = UINT16_MAX,
                .session_expiry_s = SESSION_EXPIRY_S,
                .credentials = config->credentials,
                .user_properties = config->user_properties,
                .callbacks = { on_connected, on_subscribed, on_desynchronized, on_message, on_dropped,
                               on_acknowledged, on_batch_end, on_batch_written },
                .userdata = link,
        };
        int r;

        if (!link)
                return -ENOMEM;

        link->config = *config;
        link->loop = loop;
        link->backoff_ms = BACKOFF_FIRST_MS;
        link->send_maximum = MQTT_SEND_MAXIMUM;
        link->max_packet_bytes = MESSAGE_PACKET_MAX;
        r = mqtt_client_new(&link->client, loop, &client_config);
        if (r < 0)
                return r;

        uv_timer_init(loop, &link->timer);
        link->timer.data = link;
        uv_timer_start(&link->timer, attempt, 0, 0);
        *ret_link = take_ptr(&link);
        return 0;
}

int link_publish(struct link *link, const struct message *message, uint16_t *ret_id) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        int id = 0;
        int r;

        if (link->n_outstanding >= LINK_OUTSTANDING_MAX)
                return -EAGAIN;
        /* libmosquitto counts one or two bytes less, and the broker disconnects a client that exceeds its limit */
        if (message_packet_size(message) > link->max_packet_bytes)
                return -EMSGSIZE;

        r = mqtt_properties_new(&properties, message);
        if (r < 0)
                return r;

        r = mqtt_error(mqtt_client_publish(link->client, (const char *)message->topic.data, message->payload,
                                           properties, &id));
        /* without a connection libmosquitto queues the message and sends it later */
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

uint32_t link_max_packet_bytes(const struct link *link) {
        return link->max_packet_bytes;
}

void link_change_client_id(struct link *link, const char *client_id) {
        link->next_client_id = client_id;
}

void link_set_reading(struct link *link, enum mqtt_reading reading) {
        mqtt_client_set_reading(link->client, reading);
}

const struct endpoint *link_endpoint(const struct link *link) {
        return mqtt_client_endpoint(link->client);
}
