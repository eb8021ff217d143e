/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/link.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "base/time_units.h"

/* The broker keeps the session and queues messages for this long after a disconnect. */
#define SESSION_EXPIRY_S 3600

/* Initial and maximum pause between attempts. */
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 15000

/* End the session after this many faults in succession. */
#define FAULTS_MAX 3

enum link_state {
        LINK_WAITING,     /* the timer starts the next attempt */
        LINK_CONNECTING,  /* until CONNACK */
        LINK_DISCARDING,  /* from CONNACK to the end of the connection, which ends the session */
        LINK_SUBSCRIBING, /* until all SUBACKs; the timer limits it */
        LINK_UP,
        LINK_ENDING, /* until the broker has closed the connection */
        LINK_CLOSED, /* until the handles are closed */
};

struct link {
        struct link_config config;
        uv_loop_t *loop;
        struct mqtt_client *client;
        enum link_state state;
        size_t n_subscribed; /* SUBACKs received */
        bool is_refused[LINK_SUBSCRIPTIONS_MAX];
        bool session_present;
        uv_timer_t timer;        /* the next attempt, the timeout of SUBACKs, link_pause() */
        uint64_t backoff_ms;     /* the next pause */
        uint64_t asked_pause_ms; /* link_pause(): the next pause instead of the backoff; 0: none */
        unsigned int n_faults;   /* number of faults in succession: count_fault() */
        uint64_t up_since_ms;
        uint32_t n_outstanding; /* published at QoS 1, not yet acknowledged */
        uint64_t n_outstanding_bytes;
        uint32_t n_bytes_of[65536]; /* of outstanding messages, by packet identifier; 0: not outstanding */
        uint64_t n_unwritten_bytes; /* published at QoS 0 since the socket last accepted everything */
        uint32_t send_maximum; /* maximum number of messages in flight; libmosquitto queues the others */
        void (*ended)(struct link *link); /* in LINK_ENDING: what follows */
        void (*closed)(void *userdata);
        int n_open_handles; /* in LINK_CLOSED: handles that are still closing */
};

/* 1. Closing. */

static void link_on_handle_closed(void *userdata) {
        struct link *link = userdata;
        void (*closed)(void *userdata) = link->closed;

        if (--link->n_open_handles > 0)
                return;
        userdata = link->config.callbacks.userdata;
        free(link);
        closed(userdata);
}

static void link_on_timer_closed(uv_handle_t *handle) {
        link_on_handle_closed(handle->data);
}

static bool is_subscribed(const struct link *link) {
        return link->n_subscribed == link->config.n_subscriptions;
}

/* libmosquitto has dropped, or drops when it connects, the messages at QoS 0 that are not written. */
static void forget_connection(struct link *link) {
        link->n_subscribed = 0;
        link->n_unwritten_bytes = 0;
}

static void link_on_ended(void *userdata) {
        struct link *link = userdata;

        link->ended(link);
}

/* Disconnect, and call ended when the broker has read all packets. */
static void end_connection(struct link *link, void (*ended)(struct link *link)) {
        forget_connection(link);
        link->state = LINK_ENDING;
        link->ended = ended;
        mqtt_client_disconnect_gracefully(link->client, link_on_ended, link);
}

static void close_handles(struct link *link) {
        link->state = LINK_CLOSED;
        link->n_open_handles = 2;
        mqtt_client_close(link->client, link_on_handle_closed);
        uv_close((uv_handle_t *)&link->timer, link_on_timer_closed);
}

/*
 * libmosquitto queues messages beyond send_maximum. If no more than send_maximum are outstanding,
 * its queue is empty.
 */
bool link_is_all_sent(const struct link *link) {
        return !is_subscribed(link) ||
               (link->n_outstanding <= link->send_maximum && !mqtt_client_wants_write(link->client));
}

void link_close(struct link *link, void (*closed)(void *userdata)) {
        ASSERT(!link->closed);

        link->closed = closed;
        if (link->state == LINK_ENDING) {
                link->ended = close_handles;
                return;
        }
        uv_timer_stop(&link->timer);
        if (is_subscribed(link))
                end_connection(link, close_handles);
        else
                close_handles(link);
}

/* 2. Attempts. */

static void link_on_attempt_timer(uv_timer_t *timer);

/*
 * Subtract up to half of the pause, so that clients of a restarted broker do not all reconnect at
 * once.
 */
static uint64_t pause_with_jitter(uint64_t pause_ms) {
        uint32_t random;

        random_fill(&random, sizeof(random));
        return pause_ms - random % (pause_ms / 2 + 1);
}

static void wait_and_retry(struct link *link) {
        uint64_t pause_ms = pause_with_jitter(link->backoff_ms);

        link->state = LINK_WAITING;
        link->backoff_ms = link->backoff_ms * 2 < BACKOFF_MAX_MS ? link->backoff_ms * 2 : BACKOFF_MAX_MS;
        if (link->asked_pause_ms > 0) {
                pause_ms = link->asked_pause_ms;
                link->asked_pause_ms = 0;
                link->backoff_ms = BACKOFF_MIN_MS;
        }
        uv_timer_start(&link->timer, link_on_attempt_timer, pause_ms, 0);
}

/*
 * After FAULTS_MAX faults the session ends with the connection, however that ends: the invalid message may
 * follow CONNACK.
 */
static bool discards_session(const struct link *link) {
        return link->n_faults >= FAULTS_MAX;
}

static void link_on_attempt_timer(uv_timer_t *timer) {
        struct link *link = timer->data;

        if (mqtt_client_set_session_expiry(link->client, discards_session(link) ? 0 : SESSION_EXPIRY_S) <
            0) {
                wait_and_retry(link);
                return;
        }
        link->state = LINK_CONNECTING;
        mqtt_client_connect(link->client);
}

/* Whether libmosquitto has closed the connection because a received packet is not valid in MQTT. */
static bool is_fault(int reason) {
        switch (reason) {
        case MOSQ_ERR_PROTOCOL:
        case MOSQ_ERR_MALFORMED_UTF8:
        case MOSQ_ERR_MALFORMED_PACKET:
        case MOSQ_ERR_DUPLICATE_PROPERTY:
                return true;
        default:
                return false;
        }
}

/*
 * Count faults in succession. The end of an accepted connection by another cause, such as a failure
 * of the network or of the broker, resets the count. So does a long connection: the broker sends
 * the messages of the session first. A failed attempt does not change the count. A received message
 * does not reset it: the broker may repeat messages that precede the malformed one, because closing
 * the socket can lose their PUBACKs.
 */
static void count_fault(struct link *link, int reason) {
        if (link->state == LINK_UP && uv_now(link->loop) - link->up_since_ms > BACKOFF_MAX_MS) {
                link->backoff_ms = BACKOFF_MIN_MS;
                link->n_faults = 0;
        }
        if (link->state == LINK_SUBSCRIBING || link->state == LINK_UP)
                link->n_faults = is_fault(reason) ? link->n_faults + 1 : 0;
}

static void session_was_discarded(struct link *link) {
        link->n_faults = 0;
        link->config.callbacks.session_discarded(link->config.callbacks.userdata);
        link->config.callbacks.down(link->config.callbacks.userdata, "the next session is a new one");
        wait_and_retry(link);
}

static void link_on_disconnected(void *userdata, enum mqtt_disconnect cause, int reason, const char *text) {
        struct link *link = userdata;

        (void)cause;
        forget_connection(link);
        if (link->state == LINK_DISCARDING) {
                session_was_discarded(link);
                return;
        }
        count_fault(link, reason);
        link->config.callbacks.down(link->config.callbacks.userdata, text);
        wait_and_retry(link);
}

/* 3. Refusals. */

/* The broker's Maximum QoS is 0. */
static const struct refusal refusal_qos = {
        "it allows QoS 0 only",
        "the protocol needs QoS 1: raise the broker's maximum QoS (mosquitto: max_qos)"
};

/* SUBACK with an error. */
static const struct refusal refusal_subscription = {
        "it refuses the subscription to the invoke topic, or with --control to the control topic",
        "allow this client in the broker's access rules to read statestore/# and to write clients/#; "
        "if the broker loads the plugin, name this client's user with plugin_opt_statestored_username"
};

/*
 * Report the refusal and disconnect. The link tries again later: an operator may have changed the
 * broker.
 */
static void refuse(struct link *link, const struct refusal *refusal) {
        link->config.callbacks.refused(link->config.callbacks.userdata, refusal);
        mqtt_client_disconnect_in_callback(link->client);
}

/* 4. Callbacks of the client. */

/* libmosquitto closes a connection without CONNACK after the keepalive, but has no timeout of SUBACK. */
static void retry_to_subscribe(struct link *link) {
        link->config.callbacks.down(link->config.callbacks.userdata, "no SUBACK in time");
        wait_and_retry(link);
}

static void suback_timed_out(uv_timer_t *timer) {
        end_connection(timer->data, retry_to_subscribe);
}

static void link_on_connected(void *userdata, int reason, bool session_present,
                              const mosquitto_property *properties) {
        struct link *link = userdata;
        uint8_t maximum_qos = 2;
        uint16_t receive_maximum;

        if (reason != 0) {
                const struct refusal *refusal = refusal_of_connack(reason);

                if (refusal)
                        link->config.callbacks.refused(link->config.callbacks.userdata, refusal);
                return;
        }

        if (discards_session(link)) {
                link->state = LINK_DISCARDING;
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

        link->session_present = session_present;
        link->state = LINK_SUBSCRIBING;
        uv_timer_start(&link->timer, suback_timed_out, link->config.keepalive_s * (uint64_t)MS_PER_S, 0);
        for (size_t i = 0; i < link->config.n_subscriptions; i++) {
                const struct link_subscription *subscription = &link->config.subscriptions[i];

                mqtt_client_subscribe(link->client, &subscription->filter, 1, subscription->qos,
                                      subscription->retained ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS
                                                             : MQTT_SUB_OPT_SEND_RETAIN_NEVER);
        }
}

/*
 * SUBACKs arrive in the order of the subscriptions. The retained messages of each arrive before the
 * next SUBACK.
 */
static void link_on_subscribed(void *userdata, int n_granted, const int *granted) {
        struct link *link = userdata;
        const struct link_subscription *subscription = &link->config.subscriptions[link->n_subscribed];
        bool is_granted = n_granted == 1 && granted[0] <= 2;

        if (link->state != LINK_SUBSCRIBING)
                return;
        if (subscription->required && (!is_granted || granted[0] < 1)) {
                refuse(link, &refusal_subscription);
                return;
        }
        link->is_refused[link->n_subscribed] = !is_granted;
        if (++link->n_subscribed < link->config.n_subscriptions)
                return;

        link->state = LINK_UP;
        uv_timer_stop(&link->timer);
        link->up_since_ms = uv_now(link->loop);
        mqtt_client_set_is_up(link->client);
        link->config.callbacks.up(link->config.callbacks.userdata, link->session_present);
}

static void link_on_acknowledged(void *userdata, int id, int reason) {
        struct link *link = userdata;

        if (link->n_bytes_of[id] == 0)
                return; /* a message at QoS 0 is written */

        link->n_outstanding--;
        link->n_outstanding_bytes -= link->n_bytes_of[id];
        link->n_bytes_of[id] = 0;
        link->config.callbacks.acknowledged(link->config.callbacks.userdata, (uint16_t)id,
                                            reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS);
}

static void link_on_message(void *userdata, const struct message *message) {
        struct link *link = userdata;

        if (link->state != LINK_DISCARDING)
                link->config.callbacks.message(link->config.callbacks.userdata, message);
}

/* The broker has read all packets when down() is called. */
static void begin_pause(struct link *link) {
        link->config.callbacks.down(link->config.callbacks.userdata, "disconnected for a pause");
        wait_and_retry(link);
}

/*
 * At the end of a wake-up, disconnect if the link waits for that.
 *
 * In LINK_DISCARDING this ends the session. The broker drops the messages in it:
 * - requests: their clients repeat them or time out;
 * - messages of the plugin: the WELCOME of the next connection replaces them. Then the store
 *   repeats what is not delivered.
 *
 * Without the plugin, all registrations end, as after each loss of the session:
 * pipeline_connected(). Unacknowledged replies and notifications are not lost: libmosquitto sends
 * them again on the next connection.
 */
static void disconnect_if_due(struct link *link) {
        if (link->state == LINK_DISCARDING)
                end_connection(link, session_was_discarded);
        else if (link->state == LINK_UP && link->asked_pause_ms > 0 && link_is_all_sent(link))
                end_connection(link, begin_pause);
}

static void link_on_wakeup_ended(void *userdata) {
        struct link *link = userdata;

        if (!mqtt_client_wants_write(link->client))
                link->n_unwritten_bytes = 0;
        disconnect_if_due(link);
}

/* 5. The interface. */

int link_open(struct link **ret_link, uv_loop_t *loop, const struct link_config *config) {
        CLEANUP(cleanup_free) struct link *link = calloc(1, sizeof(*link));
        struct mqtt_client_config client_config = {
                .client_id = config->client_id,
                .keepalive_s = config->keepalive_s,
                .receive_maximum = UINT16_MAX,
                .session_expiry_s = SESSION_EXPIRY_S,
                .credentials = config->credentials,
                .user_properties = config->user_properties,
                .callbacks = { .connected = link_on_connected,
                               .subscribed = link_on_subscribed,
                               .disconnected = link_on_disconnected,
                               .acknowledged = link_on_acknowledged,
                               .message = link_on_message,
                               .wakeup_ended = link_on_wakeup_ended,
                               .userdata = link },
        };
        int r;

        if (!link)
                return -ENOMEM;

        link->config = *config;
        client_config.brokers = &link->config.brokers;
        link->loop = loop;
        link->backoff_ms = BACKOFF_MIN_MS;
        link->send_maximum = MQTT_SEND_MAXIMUM;
        r = mqtt_client_new(&link->client, loop, &client_config);
        if (r < 0)
                return r;

        uv_timer_init(loop, &link->timer);
        link->timer.data = link;
        uv_timer_start(&link->timer, link_on_attempt_timer, 0, 0);
        *ret_link = take_ptr(&link);
        return 0;
}

/* Count a published message. See link_has_room(). */
static void count_published(struct link *link, const struct message *message, int id) {
        size_t n_bytes = message->broker_bytes ? message->broker_bytes : message_size(message);

        if (message->qos > 0) {
                link->n_outstanding++;
                link->n_bytes_of[id] = (uint32_t)n_bytes;
                link->n_outstanding_bytes += link->n_bytes_of[id];
        } else if (link->n_unwritten_bytes > 0 || mqtt_client_wants_write(link->client)) {
                link->n_unwritten_bytes += n_bytes; /* until link_on_wakeup_ended() */
        }
}

/*
 * link_pause() on an idle connection. While messages are outstanding, the wake-up by a PUBACK ends the
 * connection: a message without PUBACK would be sent again.
 */
static void link_on_pause_timer(uv_timer_t *timer) {
        struct link *link = timer->data;

        if (link->n_outstanding == 0)
                disconnect_if_due(link);
}

void link_pause(struct link *link, uint64_t pause_ms) {
        link->asked_pause_ms = pause_ms;
        if (link->state == LINK_UP)
                uv_timer_start(&link->timer, link_on_pause_timer, 0, 0);
}

int link_publish(void *userdata, const struct message *message) {
        struct link *link = userdata;
        int id = 0;
        int r;

        if (message->qos > 0 && link->n_outstanding >= LINK_OUTSTANDING_MAX)
                return -EAGAIN;
        /* while connecting, libmosquitto would send it on the new connection */
        if (message->qos == 0 && !is_subscribed(link))
                return 0;

        r = mqtt_client_publish(link->client, message, &id);
        /*
         * without a connection libmosquitto queues a message at QoS 1 and sends it later, and drops
         * one at QoS 0
         */
        if (r < 0 && r != -ENOTCONN && r != -EIO)
                return r;

        count_published(link, message, id);
        return message->qos > 0 ? id : 0;
}

bool link_has_room(void *userdata) {
        const struct link *link = userdata;

        return link->n_outstanding < LINK_ROOM_MESSAGES && link->n_outstanding < link->send_maximum &&
               link->n_outstanding_bytes + link->n_unwritten_bytes < LINK_ROOM_BYTES;
}

uint32_t link_max_packet_bytes(const struct link *link) {
        return mqtt_client_max_packet_bytes(link->client);
}

bool link_has_refused(const struct link *link, const char *filter) {
        for (size_t i = 0; i < link->n_subscribed; i++)
                if (strcmp(link->config.subscriptions[i].filter, filter) == 0)
                        return link->is_refused[i];
        return false;
}

void link_set_read_mode(struct link *link, enum mqtt_read_mode read_mode) {
        mqtt_client_set_read_mode(link->client, read_mode);
}

const struct endpoint *link_endpoint(const struct link *link) {
        return mqtt_brokers_endpoint(&link->config.brokers);
}
