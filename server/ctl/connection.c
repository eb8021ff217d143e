/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libmosquitto works within turn() only, which polls its socket. Its callbacks leave what they are told in the
 * connection, where whoever turns looks for it.
 */

#include "ctl/connection_state.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include "common/cleanup.h"
#include "common/system_clock.h"

#define KEEPALIVE_S     20
#define TURN_MS         1000 /* the library's own timers count in seconds */
#define TEND_MS         100
#define RECEIVE_MAXIMUM 65535

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

/* 1. Waiting. */

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

/* Waits for the broker once and lets the library do what is to be done. */
static enum connection_result turn(struct connection *connection, int64_t duration_ms) {
        struct mosquitto *client = connection->client;
        struct pollfd fds[] = {
                { .fd = client ? mosquitto_socket(client) : -1, .events = POLLIN },
                { .fd = connection->config.hangup_fd },
        };
        int r = MOSQ_ERR_SUCCESS;

        /* TLS shakes hands inside the library's reading; until then CONNECT waits, and must not keep us awake */
        if (client && mosquitto_want_write(client) && (connection->is_ready || !connection->config.tls.tls))
                fds[0].events |= POLLOUT;
        poll_unless_interrupted(connection, fds, 2, duration_ms < TURN_MS ? duration_ms : TURN_MS);
        if (is_interrupted(connection) || fds[1].revents)
                return CONNECTION_INTERRUPTED;
        if (!client)
                return CONNECTION_OK;

        errno = 0;
        if (fds[0].revents & ~POLLOUT)
                r = mosquitto_loop_read(client, 1);
        if (r == MOSQ_ERR_SUCCESS && mosquitto_want_write(client))
                r = mosquitto_loop_write(client, 1);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_loop_misc(client);
        if (r != MOSQ_ERR_SUCCESS)
                connection_lose(connection, r); /* on_disconnect has mostly said it already */
        return connection->has_failed ? CONNECTION_FAILED : CONNECTION_OK;
}

enum connection_result connection_wait(struct connection *connection, const bool *done,
                                       int64_t duration_ms) {
        int64_t until_ms = monotonic_ms() + duration_ms;
        enum connection_result result = CONNECTION_OK;

        while (!*done && result == CONNECTION_OK) {
                int64_t left_ms = until_ms - monotonic_ms();

                if (left_ms <= 0)
                        return CONNECTION_TIME_OVER;
                result = turn(connection, left_ms);
        }
        /* what was waited for may have come with what ends the connection */
        return *done && result != CONNECTION_INTERRUPTED ? CONNECTION_OK : result;
}

static bool has_more(const struct connection *connection) {
        struct pollfd fd = { .fd = connection->client ? mosquitto_socket(connection->client) : -1,
                             .events = POLLIN };

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

/* 2. Connecting. */

const struct endpoint *connection_endpoint(const struct connection *connection) {
        return &connection->config.endpoints[connection->at];
}

/* None of them may use up the time of all. */
static int64_t endpoint_timeout_ms(const struct connection *connection) {
        int64_t timeout_ms = connection->config.timeout_ms / (int64_t)connection->config.n_endpoints;

        return timeout_ms > 0 ? timeout_ms : 1;
}

static void on_alarm(int number) {
        (void)number;
}

/*
 * Blocks, so that the library tries each of a host's addresses. An alarm gets it out of connect(2), and again,
 * soon after, out of the next address's.
 */
static int connect_in_time(struct connection *connection) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        const struct connection_config *config = &connection->config;
        struct itimerval never = { 0 }, timer = { .it_interval.tv_usec = 50000 };
        struct sigaction action = { .sa_handler = on_alarm }, before;
        const struct endpoint *endpoint = connection_endpoint(connection);
        int64_t timeout_ms = endpoint_timeout_ms(connection);
        int r;

        if (config->session_expiry_s > 0) {
                r = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL,
                                                 config->session_expiry_s);
                if (r != MOSQ_ERR_SUCCESS)
                        return r;
        }

        timer.it_value.tv_sec = timeout_ms / 1000;
        timer.it_value.tv_usec = timeout_ms % 1000 * 1000;
        sigaction(SIGALRM, &action, &before);
        setitimer(ITIMER_REAL, &timer, NULL);
        r = mosquitto_connect_bind_v5(connection->client, endpoint->host, endpoint->port, KEEPALIVE_S, NULL,
                                      properties);
        setitimer(ITIMER_REAL, &never, NULL);
        sigaction(SIGALRM, &before, NULL);
        return r;
}

static enum connection_result fail_to_connect(struct connection *connection, int result, int error) {
        const char *advice = "; is it running there? --host and --port say where it is";
        struct duration_text timeout = duration_text(endpoint_timeout_ms(connection));

        if (result == MOSQ_ERR_TLS || (result == MOSQ_ERR_ERRNO && error == EPROTO))
                advice = connection_tls_advice(connection);
        if (result == MOSQ_ERR_EAI)
                return connection_fail(connection, "cannot connect to " BROKER ": %s%s",
                                       BROKER_OF(connection), gai_strerror(error),
                                       "; --host says where it is");
        if (result == MOSQ_ERR_ERRNO && error == EINTR)
                return connection_fail(connection, "cannot connect to " BROKER " within %s%s",
                                       BROKER_OF(connection), timeout.text, advice);
        return connection_fail(connection, "cannot connect to " BROKER ": %s%s", BROKER_OF(connection),
                               result == MOSQ_ERR_ERRNO ? strerror(error) : mosquitto_strerror(result),
                               advice);
}

static int make_client(struct connection *connection) {
        const struct connection_config *config = &connection->config;
        struct mosquitto *client;
        int r;

        client = connection->client =
                mosquitto_new(config->client_id, config->session_expiry_s == 0, connection);
        if (!client)
                return MOSQ_ERR_NOMEM;

        r = mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_RECEIVE_MAXIMUM,
                                         config->receive_maximum ? config->receive_maximum
                                                                 : RECEIVE_MAXIMUM);
        if (r == MOSQ_ERR_SUCCESS && config->user)
                r = mosquitto_username_pw_set(client, config->user, config->password);
        if (r == MOSQ_ERR_SUCCESS && credentials_set_tls(&config->tls, client) < 0)
                r = MOSQ_ERR_TLS;
        connection_listen(client);
        return r;
}

static enum connection_result try_endpoint(struct connection *connection) {
        struct duration_text timeout = duration_text(endpoint_timeout_ms(connection));
        int64_t began_ms = monotonic_ms();
        enum connection_result result;
        int r;

        connection_close(connection);
        connection->has_failed = false;
        connection->is_ready = false;

        r = make_client(connection);
        if (r == MOSQ_ERR_SUCCESS)
                r = connect_in_time(connection);
        if (is_interrupted(connection))
                return CONNECTION_INTERRUPTED;
        if (r != MOSQ_ERR_SUCCESS)
                return fail_to_connect(connection, r, errno);

        result = connection_wait(connection, &connection->is_ready,
                                 endpoint_timeout_ms(connection) - (monotonic_ms() - began_ms));
        if (result == CONNECTION_TIME_OVER)
                return connection_fail(connection,
                                       BROKER " does not answer within %s; is it an MQTT broker?",
                                       BROKER_OF(connection), timeout.text);
        return connection->has_failed ? CONNECTION_FAILED : result;
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

void connection_close(struct connection *connection) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;

        if (!connection->client)
                return;
        if (connection->ends_session)
                mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, 0);
        if (!connection->has_failed)
                mosquitto_disconnect_v5(connection->client, 0, properties);
        mosquitto_destroy(take_ptr(&connection->client));
}

void connection_end(struct connection *connection) {
        connection->ends_session = connection->config.session_expiry_s > 0;
        connection_close(connection);
        connection->ends_session = false;
}

struct connection_limits connection_limits(const struct connection *connection) {
        return connection->limits;
}

int connection_new(struct connection **ret_connection, const struct connection_config *config) {
        struct connection *connection = calloc(1, sizeof(*connection));

        if (!connection)
                return -ENOMEM;

        mosquitto_lib_init();
        connection->config = *config;
        *ret_connection = connection;
        return 0;
}

struct connection *connection_free(struct connection *connection) {
        if (!connection)
                return NULL;

        connection_close(connection);
        free(connection);
        mosquitto_lib_cleanup();
        return NULL;
}

enum connection_result connection_publish(struct connection *connection, const char *topic,
                                          struct slice payload, mosquitto_property *properties,
                                          int *ret_packet_id) {
        int r = MOSQ_ERR_PAYLOAD_SIZE;

        if (payload.length <= MQTT_MAX_PAYLOAD)
                r = mosquitto_publish_v5(connection->client, ret_packet_id, topic, (int)payload.length,
                                         payload.data, 1, false, properties);
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
