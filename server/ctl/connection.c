/* SPDX-License-Identifier: Apache-2.0 */

/* Callbacks record events in the connection, for the call that runs the loop. */

#include "ctl/connection.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system_clock.h"
#include "mqtt/mqtt_client.h"

#define KEEPALIVE_S 20
#define TEND_MS     100

struct connection {
        struct connection_config config;
        uv_loop_t loop;
        struct mqtt_client *client; /* NULL: not connected */
        size_t at;                  /* the endpoint */
        size_t n_passed_over;
        bool is_ready;        /* connected and subscribed */
        bool is_disconnected; /* while opening: the attempt has failed */
        bool has_failed;
        struct connection_limits limits;
        char problem[512];
};

#define BROKER                "the broker at %s"
#define BROKER_OF(connection) endpoint_text(connection_endpoint(connection)).text

#define LOCATION_ADVICE "; is it running there? --host and --port say where it is"

int64_t monotonic_ms(void) {
        return system_clock_mono_ns() / 1000000;
}

struct duration_text duration_text(int64_t duration_ms) {
        bool is_whole = duration_ms % 1000 == 0;
        struct duration_text shown;

        snprintf(shown.text, sizeof(shown.text), "%lld%s",
                 (long long)(is_whole ? duration_ms / 1000 : duration_ms), is_whole ? "s" : "ms");
        return shown;
}

enum connection_result connection_fail(struct connection *connection, const char *format, ...) {
        va_list arguments;

        if (!connection->has_failed) {
                va_start(arguments, format);
                vsnprintf(connection->problem, sizeof(connection->problem), format, arguments);
                va_end(arguments);
        }
        connection->has_failed = true;
        return CONNECTION_FAILED;
}

const char *connection_problem(const struct connection *connection) {
        return connection->problem;
}

/* 1. What the client tells. */

static const char *refusal_advice(int reason) {
        switch (reason) {
        case MQTT_RC_BAD_USERNAME_OR_PASSWORD:
        case MQTT_RC_NOT_AUTHORIZED:
                return "; it wants --user and --password-file, or other ones";
        case MQTT_RC_CLIENTID_NOT_VALID:
                return "; choose another --client-id";
        default:
                return "";
        }
}

static void read_limits(struct connection_limits *limits, bool is_session_present,
                        const mosquitto_property *properties) {
        *limits = (struct connection_limits){
                .is_session_present = is_session_present,
                .receive_maximum = UINT16_MAX,
                .packet_size_max = UINT32_MAX,
        };
        mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM, &limits->receive_maximum,
                                      false);
        mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE, &limits->packet_size_max,
                                      false);
}

static void on_connected(void *userdata, int reason, bool session_present,
                         const mosquitto_property *properties) {
        struct connection *connection = userdata;
        const char *const *topics = connection->config.topics;
        int n_topics = 0;

        read_limits(&connection->limits, session_present, properties);
        /* below 0x80 it is MQTT 3's, which has five of them */
        if (reason == CONNACK_REFUSED_PROTOCOL_VERSION || reason == MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION) {
                connection_fail(connection, BROKER " does not speak MQTT 5", BROKER_OF(connection));
                return;
        }
        if (reason != 0) {
                connection_fail(connection, BROKER " refuses us: %s%s", BROKER_OF(connection),
                                reason < 0x80 ? mosquitto_connack_string(reason)
                                              : mosquitto_reason_string(reason),
                                refusal_advice(reason));
                return;
        }

        while (topics[n_topics])
                n_topics++;
        mqtt_client_subscribe(connection->client, topics, n_topics, 1,
                              connection->config.wants_retained ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS
                                                                : MQTT_SUB_OPT_SEND_RETAIN_NEVER);
}

static void on_subscribed(void *userdata, int n_granted, const int *granted) {
        struct connection *connection = userdata;

        for (int i = 0; i < n_granted && connection->config.topics[i]; i++)
                if (granted[i] != 1)
                        connection_fail(connection,
                                        BROKER
                                        " refuses the subscription to %s at QoS 1; let this client read it",
                                        BROKER_OF(connection), connection->config.topics[i]);
        connection->is_ready = true;
        mqtt_client_set_up(connection->client);
}

/* What may be wrong with a connection that TLS has not let come about; "" for another one. */
static const char *tls_advice(const struct connection *connection) {
        return connection->config.credentials.tls && !connection->is_ready
                       ? "; is its certificate trusted, and ours accepted? See --tls-ca-file and "
                         "--tls-certificate"
                       : "";
}

static void on_desynchronized(void *userdata, enum mqtt_loss loss, int reason, const char *text) {
        struct connection *connection = userdata;

        connection->is_disconnected = true;
        if (loss != MQTT_LOST_CONNECTION && mqtt_client_has_address(connection->client))
                return; /* the next address is tried */
        if (loss == MQTT_LOST_NAME)
                connection_fail(connection, "cannot connect to " BROKER ": %s; --host says where it is",
                                BROKER_OF(connection), text);
        else if (loss == MQTT_LOST_CONNECT || reason == MOSQ_ERR_TLS)
                connection_fail(connection, "cannot connect to " BROKER ": %s%s", BROKER_OF(connection),
                                text, reason == MOSQ_ERR_TLS ? tls_advice(connection) : LOCATION_ADVICE);
        else if (reason >= 0x80)
                connection_fail(connection, BROKER " has ended the connection: %s", BROKER_OF(connection),
                                mosquitto_reason_string(reason));
        else if (reason == MOSQ_ERR_CONN_LOST)
                connection_fail(connection, "lost the connection to " BROKER "%s", BROKER_OF(connection),
                                tls_advice(connection));
        else
                connection_fail(connection, "lost the connection to " BROKER ": %s%s", BROKER_OF(connection),
                                text, tls_advice(connection));
}

static void on_message(void *userdata, const struct message *message) {
        struct connection *connection = userdata;

        connection->config.message(connection->config.userdata, message);
}

static void on_dropped(void *userdata) {
        connection_fail(userdata, "%s", strerror(ENOMEM));
}

static void on_acknowledged(void *userdata, int id, int reason) {
        struct connection *connection = userdata;

        if (reason >= 0x80 && !connection->config.wants_refusals)
                connection_fail(connection, BROKER " refuses the request: %s%s", BROKER_OF(connection),
                                mosquitto_reason_string(reason),
                                reason == MQTT_RC_NOT_AUTHORIZED
                                        ? "; it must let this client write statestore/# and read clients/#"
                                        : "");
        else
                connection->config.acknowledged(connection->config.userdata, id, reason);
}

/* 2. Waiting. */

static bool is_interrupted(const struct connection *connection) {
        return connection->config.interrupted && *connection->config.interrupted;
}

/*
 * A signal that comes before ppoll() must not be slept over: so it is kept off until then, and seen by its
 * flag or by EINTR.
 */
static int poll_unless_interrupted(const struct connection *connection, struct pollfd *fds, nfds_t n_fds,
                                   int64_t duration_ms) {
        struct timespec timeout = { duration_ms / 1000, duration_ms % 1000 * 1000000 };
        sigset_t signals, before;
        int r;

        if (!connection->config.interrupted)
                return ppoll(fds, n_fds, &timeout, NULL);

        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        sigprocmask(SIG_BLOCK, &signals, &before);
        r = is_interrupted(connection) ? 0 : ppoll(fds, n_fds, &timeout, &before);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return r;
}

/* The failure of a connection that was closed does not end a pause before the next one. */
static bool is_broken(const struct connection *connection) {
        return connection->client && connection->has_failed;
}

/* Lets the loop do what is to be done, then waits until there is more. */
static enum connection_result turn(struct connection *connection, int64_t duration_ms) {
        struct pollfd fds[] = {
                { .fd = uv_backend_fd(&connection->loop), .events = POLLIN },
                { .fd = connection->config.hangup_fd },
        };
        int timeout_ms;

        uv_run(&connection->loop, UV_RUN_NOWAIT);
        if (is_broken(connection))
                return CONNECTION_FAILED;
        timeout_ms = uv_loop_alive(&connection->loop) ? uv_backend_timeout(&connection->loop) : -1;
        if (timeout_ms >= 0 && timeout_ms < duration_ms)
                duration_ms = timeout_ms;
        poll_unless_interrupted(connection, fds, 2, duration_ms);
        if (is_interrupted(connection) || fds[1].revents)
                return CONNECTION_INTERRUPTED;
        uv_run(&connection->loop, UV_RUN_NOWAIT);
        return is_broken(connection) ? CONNECTION_FAILED : CONNECTION_OK;
}

enum connection_result connection_wait(struct connection *connection, const bool *done,
                                       int64_t duration_ms) {
        int64_t until_ms = monotonic_ms() + duration_ms;
        enum connection_result result = CONNECTION_OK;

        while (!*done && result == CONNECTION_OK) {
                int64_t remaining_ms = until_ms - monotonic_ms();

                if (remaining_ms <= 0)
                        return CONNECTION_TIME_OVER;
                result = turn(connection, remaining_ms);
        }
        /* what was waited for may have come with what ends the connection */
        return *done && result != CONNECTION_INTERRUPTED ? CONNECTION_OK : result;
}

static bool has_more(const struct connection *connection) {
        struct pollfd fd = { .fd = uv_backend_fd(&connection->loop), .events = POLLIN };

        return poll(&fd, 1, 0) > 0;
}

enum connection_result connection_tend(struct connection *connection) {
        int64_t until_ms = monotonic_ms() + TEND_MS;
        enum connection_result result;

        do
                result = turn(connection, 0);
        while (result == CONNECTION_OK && has_more(connection) && monotonic_ms() < until_ms);
        return result;
}

/* 3. Connecting. */

const struct endpoint *connection_endpoint(const struct connection *connection) {
        return &connection->config.endpoints[connection->at];
}

/* None of them may use up the time of all. */
static int64_t endpoint_timeout_ms(const struct connection *connection) {
        int64_t timeout_ms = connection->config.timeout_ms / (int64_t)connection->config.n_endpoints;

        return timeout_ms > 0 ? timeout_ms : 1;
}

static int make_client(struct connection *connection) {
        const struct connection_config *config = &connection->config;
        struct mqtt_client_config client_config = {
                .endpoints = connection_endpoint(connection),
                .n_endpoints = 1,
                .client_id = config->client_id,
                .keepalive_s = KEEPALIVE_S,
                .receive_maximum = config->receive_maximum ? config->receive_maximum : UINT16_MAX,
                .session_expiry_s = config->session_expiry_s,
                .credentials = config->credentials,
                .user_properties = config->user_properties,
                .callbacks = { .connected = on_connected,
                               .subscribed = on_subscribed,
                               .lost = on_desynchronized,
                               .message = on_message,
                               .dropped = on_dropped,
                               .acknowledged = on_acknowledged },
                .userdata = connection,
        };

        return mqtt_client_new(&connection->client, &connection->loop, &client_config);
}

/* Tries the addresses of the endpoint until the connection serves or the endpoint's time is over. */
static enum connection_result serve_until(struct connection *connection, int64_t until_ms) {
        enum connection_result result = CONNECTION_OK;

        connection->is_disconnected = true; /* not connected yet */
        while (!connection->is_ready && result == CONNECTION_OK) {
                int64_t remaining_ms = until_ms - monotonic_ms();

                if (remaining_ms <= 0)
                        return CONNECTION_TIME_OVER;
                if (connection->is_disconnected) {
                        connection->is_disconnected = false;
                        mqtt_client_connect(connection->client);
                }
                result = turn(connection, remaining_ms);
        }
        return result;
}

static enum connection_result try_endpoint(struct connection *connection) {
        struct duration_text timeout = duration_text(endpoint_timeout_ms(connection));
        int64_t until_ms = monotonic_ms() + endpoint_timeout_ms(connection);
        enum connection_result result;
        int r;

        connection_close(connection);
        connection->has_failed = false;
        connection->is_ready = false;

        r = make_client(connection);
        if (r < 0)
                return connection_fail(connection, "cannot connect to " BROKER ": %s%s",
                                       BROKER_OF(connection), strerror(-r), tls_advice(connection));

        result = serve_until(connection, until_ms);
        if (result != CONNECTION_TIME_OVER)
                return result;
        if (mqtt_client_is_reached(connection->client))
                return connection_fail(connection,
                                       BROKER " does not answer within %s; is it an MQTT broker?",
                                       BROKER_OF(connection), timeout.text);
        return connection_fail(connection, "cannot connect to " BROKER " within %s" LOCATION_ADVICE,
                               BROKER_OF(connection), timeout.text);
}

enum connection_result connection_open(struct connection *connection) {
        size_t n_endpoints = connection->config.n_endpoints;
        enum connection_result result;

        for (size_t n_tried = 0;; connection->at = (connection->at + 1) % n_endpoints) {
                result = try_endpoint(connection);
                n_tried++;
                if (result != CONNECTION_FAILED || n_tried == n_endpoints)
                        return result;
        }
}

bool connection_pass_over(struct connection *connection) {
        connection_close(connection);
        connection->at = (connection->at + 1) % connection->config.n_endpoints;
        connection->n_passed_over++;
        return connection->n_passed_over < connection->config.n_endpoints;
}

static void client_closed(void *userdata) {
        struct connection *connection = userdata;

        connection->client = NULL;
}

static void close_client(struct connection *connection, bool ends_session) {
        if (!connection->client)
                return;
        if (!connection->has_failed)
                mqtt_client_disconnect(connection->client, ends_session);
        mqtt_client_close(connection->client, client_closed);
        uv_run(&connection->loop, UV_RUN_DEFAULT);
}

void connection_close(struct connection *connection) {
        close_client(connection, false);
}

void connection_end(struct connection *connection) {
        close_client(connection, connection->config.session_expiry_s > 0);
}

struct connection_limits connection_limits(const struct connection *connection) {
        return connection->limits;
}

int connection_new(struct connection **ret_connection, const struct connection_config *config) {
        struct connection *connection = calloc(1, sizeof(*connection));

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

struct connection *connection_free(struct connection *connection) {
        if (!connection)
                return NULL;

        connection_close(connection);
        uv_loop_close(&connection->loop);
        free(connection);
        return NULL;
}

enum connection_result connection_publish(struct connection *connection, const char *topic,
                                          struct slice payload, mosquitto_property *properties,
                                          int *ret_packet_id) {
        int r = MOSQ_ERR_NO_CONN;

        if (connection->client)
                r = mqtt_client_publish(connection->client, topic, payload, properties, ret_packet_id);
        mosquitto_property_free_all(&properties);

        switch (r) {
        case MOSQ_ERR_SUCCESS:
                return CONNECTION_OK;
        case MOSQ_ERR_PAYLOAD_SIZE:
                return connection_fail(connection, "the request is longer than MQTT can carry");
        case MOSQ_ERR_OVERSIZE_PACKET:
                return connection_fail(connection,
                                       "the request is longer than " BROKER
                                       " accepts; raise the limit there (mosquitto: max_packet_size)",
                                       BROKER_OF(connection));
        default:
                return connection_fail(connection, BROKER " cannot be asked: %s", BROKER_OF(connection),
                                       r == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(r));
        }
}
