/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The callbacks of the MQTT client record events in struct broker_connection. The call that runs
 * the loop then returns.
 */

#include "ctl/broker_connection.h"

#include <errno.h>
#include <limits.h>
#include <mqtt_protocol.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "base/array.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "mqtt/refusal.h"

#define KEEPALIVE_S 20

/* Pauses between attempts to connect. */
#define PAUSE_FIRST_MS 100
#define PAUSE_LAST_MS  5000

enum connection_state {
        STATE_TRYING,     /* connect_until() must try an address of the broker */
        STATE_CONNECTING, /* until SUBACK */
        STATE_READY,      /* connected and subscribed */
        STATE_FAILED,     /* broker_connection_problem() is set */
};

struct broker_connection {
        struct broker_connection_config config;
        uv_loop_t loop;
        struct mqtt_client *client; /* NULL: not connected */
        enum connection_state state;
        bool has_event; /* a callback has run since run_loop() began */
        bool may_be_taken_over;
        char problem[512];
};

/*
 * Call broker_connection_fail() with the text "<before>the broker at HOST:PORT<after>". The
 * arguments are those of `after`.
 */
#define BROKER_FAIL(connection, before, after, ...)                                                         \
        broker_connection_fail(connection, before "the broker at %s" after,                                 \
                               endpoint_text(broker_connection_endpoint(connection)).text, ##__VA_ARGS__)

/* mosquitto 2.0.11 closes the connection of such a client without DISCONNECT. */
#define CLIENT_ID_ADVICE "; does another client connect with the same --client-id?"

#define LOCATION_ADVICE "; is it running there? See --host and --port"

struct duration_text duration_text(int64_t duration_ms) {
        bool is_whole = duration_ms % 1000 == 0;
        struct duration_text shown;

        snprintf(shown.text, sizeof(shown.text), "%lld%s",
                 (long long)(is_whole ? duration_ms / 1000 : duration_ms), is_whole ? "s" : "ms");
        return shown;
}

enum connection_result broker_connection_fail(struct broker_connection *connection, const char *format,
                                              ...) {
        va_list arguments;

        if (connection->state != STATE_FAILED) {
                va_start(arguments, format);
                vsnprintf(connection->problem, sizeof(connection->problem), format, arguments);
                va_end(arguments);
        }
        connection->state = STATE_FAILED;
        return CONNECTION_FAILED;
}

void broker_connection_set_problem(struct broker_connection *connection, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(connection->problem, sizeof(connection->problem), format, arguments);
        va_end(arguments);
}

const char *broker_connection_problem(const struct broker_connection *connection) {
        return connection->problem;
}

/* 1. Callbacks of the MQTT client */

static void fail_refused(struct broker_connection *connection, int reason) {
        const struct refusal *refusal = refusal_of_connack(reason);

        if (refusal)
                BROKER_FAIL(connection, "", " refuses the connection: %s; %s", refusal->cause,
                            refusal->advice);
        else
                BROKER_FAIL(connection, "", " refuses the connection: %s",
                            reason < 0x80 ? mosquitto_connack_string(reason) /* of MQTT 3 */
                                          : mosquitto_reason_string(reason));
}

static void broker_connection_on_connected(void *userdata, int reason, bool session_present,
                                           const mosquitto_property *properties) {
        struct broker_connection *connection = userdata;
        const char *const *topics = connection->config.topics;
        int n_topics = 0;

        (void)session_present;
        (void)properties;
        connection->has_event = true;
        if (reason != 0) {
                fail_refused(connection, reason);
                return;
        }

        while (topics[n_topics])
                n_topics++;
        mqtt_client_subscribe(connection->client, topics, n_topics, 1,
                              connection->config.wants_retained ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS
                                                                : MQTT_SUB_OPT_SEND_RETAIN_NEVER);
}

static void broker_connection_on_subscribed(void *userdata, int n_granted, const int *granted) {
        struct broker_connection *connection = userdata;

        connection->has_event = true;
        for (int i = 0; i < n_granted && connection->config.topics[i]; i++)
                if (granted[i] != 1)
                        BROKER_FAIL(connection, "",
                                    " refuses the subscription to %s at QoS 1; allow this client to read it",
                                    connection->config.topics[i]);
        if (connection->state == STATE_CONNECTING)
                connection->state = STATE_READY;
        mqtt_client_set_is_up(connection->client);
}

/* Explain the reason code of a DISCONNECT. */
static const char *disconnect_advice(int reason) {
        switch (reason) {
        case MQTT_RC_SESSION_TAKEN_OVER:
                return "; another client has connected with this client id, see --client-id";
        case MQTT_RC_ADMINISTRATIVE_ACTION:
                return "; the plugin does this, for example, to a client that reads its notifications too "
                       "slowly";
        default:
                return "";
        }
}

static void broker_connection_on_disconnected(void *userdata, enum mqtt_disconnect cause, int reason,
                                              const char *text) {
        struct broker_connection *connection = userdata;
        bool was_ready = connection->state == STATE_READY;

        connection->has_event = true;
        connection->may_be_taken_over =
                was_ready && connection->config.has_given_client_id &&
                (reason == MOSQ_ERR_CONN_LOST || reason == MQTT_RC_SESSION_TAKEN_OVER);
        if (cause != MQTT_DISCONNECTED && mqtt_client_has_untried_address(connection->client)) {
                connection->state = STATE_TRYING;
                return;
        }
        if (cause == MQTT_LOOKUP_FAILED)
                BROKER_FAIL(connection, "cannot connect to ", ": %s; see --host", text);
        else if (cause == MQTT_CONNECT_FAILED || reason == MOSQ_ERR_TLS)
                BROKER_FAIL(connection, "cannot connect to ", ": %s%s", text,
                            reason == MOSQ_ERR_TLS ? "" : LOCATION_ADVICE);
        else if (reason >= 0x80)
                BROKER_FAIL(connection, "", " has ended the connection: %s%s",
                            mosquitto_reason_string(reason), disconnect_advice(reason));
        else if (reason == MOSQ_ERR_CONN_LOST && was_ready)
                BROKER_FAIL(connection, "lost the connection to ", "%s",
                            connection->config.has_given_client_id ? CLIENT_ID_ADVICE : "");
        else
                BROKER_FAIL(connection, "lost the connection to ", ": %s", text);
}

static void broker_connection_on_message(void *userdata, const struct message *message) {
        struct broker_connection *connection = userdata;

        connection->has_event = true;
        connection->config.message(connection->config.userdata, message);
}

static void broker_connection_on_dropped(void *userdata) {
        broker_connection_fail(userdata, "%s", strerror(ENOMEM));
}

static void broker_connection_on_acknowledged(void *userdata, int id, int reason) {
        struct broker_connection *connection = userdata;

        connection->has_event = true;
        connection->config.acknowledged(connection->config.userdata, id, reason);
}

/* 2. Waiting */

/*
 * Whether the open connection has failed. False after close_client(), so that
 * broker_connection_wait() is a pause then.
 */
static bool is_broken(const struct broker_connection *connection) {
        return connection->client && connection->state == STATE_FAILED;
}

/*
 * Run the loop, wait for events or until duration_ms is over, and run the loop again. Do not wait
 * if a callback has run: the caller may wait for just that event.
 */
static enum connection_result run_loop(struct broker_connection *connection, int64_t duration_ms) {
        struct pollfd fds[] = {
                { .fd = uv_backend_fd(&connection->loop), .events = POLLIN },
                connection->config.interruption,
        };
        int timeout_ms;

        connection->has_event = false;
        uv_run(&connection->loop, UV_RUN_NOWAIT);
        if (is_broken(connection))
                return CONNECTION_FAILED;
        if (connection->has_event)
                duration_ms = 0;
        timeout_ms = uv_loop_alive(&connection->loop) ? uv_backend_timeout(&connection->loop) : -1;
        if (timeout_ms >= 0 && timeout_ms < duration_ms)
                duration_ms = timeout_ms;
        poll(fds, ARRAY_LENGTH(fds), duration_ms < INT_MAX ? (int)duration_ms : INT_MAX);
        if (fds[1].revents)
                return CONNECTION_INTERRUPTED;
        uv_run(&connection->loop, UV_RUN_NOWAIT);
        return is_broken(connection) ? CONNECTION_FAILED : CONNECTION_OK;
}

/*
 * Run the loop for at most the time that remains. If no time remains, run it once without waiting
 * and set *ret_is_over. So a process that was suspended still reads the data that has arrived, and
 * reports a timeout only after that.
 */
static enum connection_result run_until(struct broker_connection *connection, int64_t until_ms,
                                        bool *ret_is_over) {
        int64_t remaining_ms = until_ms - system_clock_mono_ms();

        *ret_is_over = remaining_ms <= 0;
        return run_loop(connection, *ret_is_over ? 0 : remaining_ms);
}

enum connection_result broker_connection_wait(struct broker_connection *connection, const bool *done,
                                              int64_t duration_ms) {
        int64_t until_ms = system_clock_mono_ms() + duration_ms;
        enum connection_result result = CONNECTION_OK;
        bool is_over = false;

        while (!*done && result == CONNECTION_OK) {
                if (is_over)
                        return CONNECTION_TIMED_OUT;
                result = run_until(connection, until_ms, &is_over);
        }
        /* *done may be set by the data that arrived before the connection ended. */
        return *done && result != CONNECTION_INTERRUPTED ? CONNECTION_OK : result;
}

/* 3. Connecting */

const struct endpoint *broker_connection_endpoint(const struct broker_connection *connection) {
        return mqtt_brokers_endpoint(&connection->config.brokers);
}

/* Each broker gets an equal share of the timeout. */
static int64_t timeout_ms_of(const struct broker_connection *connection) {
        int64_t timeout_ms = connection->config.timeout_ms / (int64_t)connection->config.brokers.n_endpoints;

        return timeout_ms > 0 ? timeout_ms : 1;
}

static int make_client(struct broker_connection *connection) {
        struct broker_connection_config *config = &connection->config;
        struct mqtt_client_config client_config = {
                .brokers = &config->brokers,
                .client_id = config->client_id,
                .keepalive_s = KEEPALIVE_S,
                .receive_maximum = config->receive_maximum ? config->receive_maximum : UINT16_MAX,
                .credentials = config->credentials,
                .user_properties = config->user_properties,
                .callbacks = { .connected = broker_connection_on_connected,
                               .subscribed = broker_connection_on_subscribed,
                               .disconnected = broker_connection_on_disconnected,
                               .acknowledged = broker_connection_on_acknowledged,
                               .userdata = connection },
                .messages = { .message = broker_connection_on_message,
                              .dropped = broker_connection_on_dropped,
                              .userdata = connection },
        };

        return mqtt_client_new(&connection->client, &connection->loop, &client_config);
}

/*
 * Try the addresses of the broker until the connection is ready or the time of the broker is over.
 */
static enum connection_result connect_until(struct broker_connection *connection, int64_t until_ms) {
        enum connection_result result = CONNECTION_OK;
        bool is_over = false;

        while (connection->state != STATE_READY && result == CONNECTION_OK) {
                if (is_over)
                        return CONNECTION_TIMED_OUT;
                if (connection->state == STATE_TRYING) {
                        connection->state = STATE_CONNECTING;
                        mqtt_client_connect(connection->client);
                }
                result = run_until(connection, until_ms, &is_over);
        }
        return result;
}

static void broker_connection_on_closed(void *userdata) {
        struct broker_connection *connection = userdata;

        connection->client = NULL;
}

static void close_client(struct broker_connection *connection) {
        if (!connection->client)
                return;
        if (connection->state != STATE_FAILED)
                mqtt_client_disconnect(connection->client);
        mqtt_client_close(connection->client, broker_connection_on_closed);
        uv_run(&connection->loop, UV_RUN_DEFAULT);
}

static enum connection_result try_broker(struct broker_connection *connection) {
        struct duration_text timeout = duration_text(timeout_ms_of(connection));
        int64_t until_ms = system_clock_mono_ms() + timeout_ms_of(connection);
        enum connection_result result;
        int r;

        close_client(connection);
        connection->state = STATE_TRYING;

        r = make_client(connection);
        if (r < 0)
                return BROKER_FAIL(connection, "cannot connect to ", ": %s",
                                   r == -EINVAL ? "--client-id, --tls-certificate or --tls-key is invalid"
                                                : strerror(-r));

        result = connect_until(connection, until_ms);
        if (result != CONNECTION_TIMED_OUT)
                return result;
        if (mqtt_client_is_socket_connected(connection->client))
                return BROKER_FAIL(connection, "", " does not reply within %s; is it an MQTT broker?",
                                   timeout.text);
        return BROKER_FAIL(connection, "cannot connect to ", " within %s" LOCATION_ADVICE, timeout.text);
}

/* Add the brokers that failed before the current one to broker_connection_problem(). */
static void name_other_brokers(struct broker_connection *connection) {
        const struct mqtt_brokers *brokers = &connection->config.brokers;
        size_t length = strlen(connection->problem);

        for (size_t i = 0; i < brokers->n_endpoints && length < sizeof(connection->problem); i++)
                if (i != brokers->at)
                        length += (size_t)snprintf(connection->problem + length,
                                                   sizeof(connection->problem) - length, "; also tried %s",
                                                   endpoint_text(&brokers->endpoints[i]).text);
}

enum connection_result broker_connection_open(struct broker_connection *connection) {
        struct mqtt_brokers *brokers = &connection->config.brokers;
        enum connection_result result = try_broker(connection);

        for (size_t n_tried = 1; result == CONNECTION_FAILED && n_tried < brokers->n_endpoints; n_tried++) {
                mqtt_brokers_advance(brokers);
                result = try_broker(connection);
        }
        if (result == CONNECTION_FAILED)
                name_other_brokers(connection);
        return result;
}

enum connection_result broker_connection_reopen(struct broker_connection *connection) {
        enum connection_result result = CONNECTION_FAILED;
        int64_t pause_ms = PAUSE_FIRST_MS;
        bool never = false;

        while (result == CONNECTION_FAILED) {
                close_client(connection);
                result = broker_connection_wait(connection, &never, pause_ms);
                if (result == CONNECTION_TIMED_OUT)
                        result = broker_connection_open(connection);
                pause_ms = pause_ms * 2 < PAUSE_LAST_MS ? pause_ms * 2 : PAUSE_LAST_MS;
        }
        return result;
}

bool broker_connection_may_be_taken_over(const struct broker_connection *connection) {
        return connection->may_be_taken_over;
}

uint32_t broker_connection_max_packet_bytes(const struct broker_connection *connection) {
        return mqtt_client_max_packet_bytes(connection->client);
}

int broker_connection_new(struct broker_connection **ret_connection,
                          const struct broker_connection_config *config) {
        struct broker_connection *connection = calloc(1, sizeof(*connection));

        if (!connection)
                return -ENOMEM;

        if (uv_loop_init(&connection->loop) < 0) {
                free(connection);
                return -ENOMEM;
        }
        connection->config = *config;
        *ret_connection = connection;
        return 0;
}

struct broker_connection *broker_connection_free(struct broker_connection *connection) {
        if (!connection)
                return NULL;

        close_client(connection);
        uv_loop_close(&connection->loop);
        free(connection);
        return NULL;
}

int broker_connection_publish(struct broker_connection *connection, const struct message *message,
                              int *ret_packet_id) {
        int r = -ENOTCONN;

        if (connection->client)
                r = mqtt_client_publish(connection->client, message, ret_packet_id);
        if (r == -EMSGSIZE && broker_connection_max_packet_bytes(connection) == MESSAGE_PACKET_MAX)
                broker_connection_fail(connection, "the request is longer than MQTT can carry");
        else if (r == -EMSGSIZE)
                BROKER_FAIL(connection, "the request is longer than ",
                            " accepts; raise the limit there (mosquitto: max_packet_size)");
        else if (r < 0)
                BROKER_FAIL(connection, "cannot send the request to ", ": %s", strerror(-r));
        return r;
}
