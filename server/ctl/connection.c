/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connection of a store client. The callbacks of the MQTT client record events in struct
 * store_client. The call that runs the loop then returns.
 */

#include "ctl/store_client_internal.h"

#include <errno.h>
#include <limits.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "base/array.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "mqtt/refusal.h"
#include "protocol/properties.h"

#define KEEPALIVE_S 20

static const struct slice reply_properties[] = {
        SLICE_LITERAL(PROPERTY_TIMESTAMP),   SLICE_LITERAL(PROPERTY_DETAILS),
        SLICE_LITERAL(PROPERTY_EXPIRES_IN),  SLICE_LITERAL(PROPERTY_FENCE),
        SLICE_LITERAL(PROPERTY_SOURCE_ID),   SLICE_LITERAL(PROPERTY_STATUS),
        SLICE_LITERAL(PROPERTY_STATUS_TEXT), SLICE_LITERAL(PROPERTY_FAULT_NAME),
        SLICE_LITERAL(PROPERTY_FAULT_VALUE), { 0 },
};

/* Pauses between attempts to connect. */
#define PAUSE_FIRST_MS 100
#define PAUSE_LAST_MS  5000

/*
 * Call store_client_fail() with the text "<before>the broker at HOST:PORT<after>". The arguments are
 * those of `after`.
 */
#define BROKER_FAIL(client, before, after, ...)                                                             \
        store_client_fail(client, before "the broker at %s" after,                                          \
                          endpoint_text(store_client_endpoint(client)).text, ##__VA_ARGS__)

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

enum connection_result store_client_fail(struct store_client *client, const char *format, ...) {
        va_list arguments;

        if (!client->has_failed) {
                va_start(arguments, format);
                vsnprintf(client->problem, sizeof(client->problem), format, arguments);
                va_end(arguments);
        }
        client->has_failed = true;
        return CONNECTION_FAILED;
}

/* Not a random one: another client may have the same. */
static bool has_given_client_id(const struct store_client *client) {
        return client->config.options->client_id != client->config.options->client_id_buffer;
}

const char *store_client_problem(const struct store_client *client) {
        return client->problem;
}

/* 1. Callbacks of the MQTT client */

static void fail_refused(struct store_client *client, int reason) {
        const struct refusal *refusal = refusal_of_connack(reason);

        if (refusal)
                BROKER_FAIL(client, "", " refuses the connection: %s; %s", refusal->cause, refusal->advice);
        else
                BROKER_FAIL(client, "", " refuses the connection: %s",
                            reason < 0x80 ? mosquitto_connack_string(reason) /* of MQTT 3 */
                                          : mosquitto_reason_string(reason));
}

static void store_client_on_connected(void *userdata, int reason, bool session_present,
                                      const mosquitto_property *properties) {
        struct store_client *client = userdata;
        (void)session_present;
        (void)properties;
        client->has_event = true;
        if (reason != 0) {
                fail_refused(client, reason);
                return;
        }

        mqtt_client_subscribe(client->mqtt, client->topics, client->n_topics, 1,
                              client->config.wants_retained ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS
                                                            : MQTT_SUB_OPT_SEND_RETAIN_NEVER);
}

static void store_client_on_subscribed(void *userdata, int n_granted, const int *granted) {
        struct store_client *client = userdata;

        client->has_event = true;
        for (int i = 0; i < n_granted && i < client->n_topics; i++)
                if (granted[i] != 1)
                        BROKER_FAIL(client, "",
                                    " refuses the subscription to %s at QoS 1; allow this client to read it",
                                    client->topics[i]);
        client->is_ready = !client->has_failed;
        mqtt_client_set_is_up(client->mqtt);
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

static void store_client_on_disconnected(void *userdata, enum mqtt_disconnect cause, int reason,
                                         const char *text) {
        struct store_client *client = userdata;
        bool was_ready = client->is_ready && !client->has_failed;

        client->has_event = true;
        client->is_ready = false;
        client->may_be_taken_over = was_ready && has_given_client_id(client) &&
                                    (reason == MOSQ_ERR_CONN_LOST || reason == MQTT_RC_SESSION_TAKEN_OVER);
        if (cause != MQTT_DISCONNECTED && mqtt_client_has_untried_address(client->mqtt)) {
                client->wants_attempt = true;
                return;
        }
        if (cause == MQTT_LOOKUP_FAILED)
                BROKER_FAIL(client, "cannot connect to ", ": %s; see --host", text);
        else if (cause == MQTT_CONNECT_FAILED || reason == MOSQ_ERR_TLS)
                BROKER_FAIL(client, "cannot connect to ", ": %s%s", text,
                            reason == MOSQ_ERR_TLS ? "" : LOCATION_ADVICE);
        else if (reason >= 0x80)
                BROKER_FAIL(client, "", " has ended the connection: %s%s", mosquitto_reason_string(reason),
                            disconnect_advice(reason));
        else if (reason == MOSQ_ERR_CONN_LOST && was_ready)
                BROKER_FAIL(client, "lost the connection to ", "%s",
                            has_given_client_id(client) ? CLIENT_ID_ADVICE : "");
        else
                BROKER_FAIL(client, "lost the connection to ", ": %s", text);
}

/* 2. Waiting */

/*
 * Whether the open connection has failed. False after store_client_close(), so that
 * store_client_wait() is a pause then.
 */
static bool is_broken(const struct store_client *client) {
        return client->mqtt && client->has_failed;
}

/*
 * Run the loop, wait for events or until duration_ms is over, and run the loop again. Do not wait
 * if a callback has run: the caller may wait for just that event.
 */
static enum connection_result run_loop(struct store_client *client, int64_t duration_ms) {
        struct pollfd fds[] = {
                { .fd = uv_backend_fd(&client->loop), .events = POLLIN },
                client->interruption,
        };
        int timeout_ms;

        client->has_event = false;
        if (client->wants_attempt) {
                client->wants_attempt = false;
                mqtt_client_connect(client->mqtt);
        }
        uv_run(&client->loop, UV_RUN_NOWAIT);
        if (is_broken(client))
                return CONNECTION_FAILED;
        if (client->has_event)
                duration_ms = 0;
        timeout_ms = uv_loop_alive(&client->loop) ? uv_backend_timeout(&client->loop) : -1;
        if (timeout_ms >= 0 && timeout_ms < duration_ms)
                duration_ms = timeout_ms;
        poll(fds, ARRAY_LENGTH(fds), duration_ms < INT_MAX ? (int)duration_ms : INT_MAX);
        if (fds[1].revents)
                return CONNECTION_INTERRUPTED;
        uv_run(&client->loop, UV_RUN_NOWAIT);
        return is_broken(client) ? CONNECTION_FAILED : CONNECTION_OK;
}

/*
 * If no time remains, run the loop once without waiting. So a process that was suspended still reads
 * the data that has arrived, and reports a timeout only after that.
 */
enum connection_result store_client_wait(struct store_client *client, const bool *done,
                                         int64_t duration_ms) {
        int64_t until_ms = system_clock_mono_ms() + duration_ms, remaining_ms;
        enum connection_result result = CONNECTION_OK;
        bool is_over = false;

        while (!(done && *done) && result == CONNECTION_OK) {
                if (is_over)
                        return CONNECTION_TIMED_OUT;
                remaining_ms = until_ms - system_clock_mono_ms();
                is_over = remaining_ms <= 0;
                result = run_loop(client, is_over ? 0 : remaining_ms);
        }
        /* *done may be set by the data that arrived before the connection ended. */
        return done && *done && result != CONNECTION_INTERRUPTED ? CONNECTION_OK : result;
}

/* 3. Connecting */

const struct endpoint *store_client_endpoint(const struct store_client *client) {
        return mqtt_brokers_endpoint(&client->brokers);
}

static int64_t timeout_ms_of(const struct store_client *client) {
        return command_options_share_ms(client->config.options, client->brokers.n_endpoints);
}

static int make_mqtt_client(struct store_client *client) {
        struct mqtt_client_config config = {
                .brokers = &client->brokers,
                .client_id = client->client_id,
                .keepalive_s = KEEPALIVE_S,
                .receive_maximum = client->config.receive_maximum ?: UINT16_MAX,
                .credentials = client->config.options->credentials,
                .user_properties = reply_properties,
                .callbacks = { .connected = store_client_on_connected,
                               .subscribed = store_client_on_subscribed,
                               .disconnected = store_client_on_disconnected,
                               .acknowledged = store_client_on_acknowledged,
                               .message = store_client_on_message,
                               .userdata = client },
        };

        return mqtt_client_new(&client->mqtt, &client->loop, &config);
}

static void store_client_on_closed(void *userdata) {
        struct store_client *client = userdata;

        client->mqtt = NULL;
        client->wants_attempt = false;
}

void store_client_close(struct store_client *client) {
        if (!client->mqtt)
                return;
        if (!client->has_failed)
                mqtt_client_disconnect(client->mqtt);
        mqtt_client_close(client->mqtt, store_client_on_closed);
        uv_run(&client->loop, UV_RUN_DEFAULT);
}

/* Try the addresses of the broker until the connection is ready or the time of the broker is over. */
static enum connection_result try_broker(struct store_client *client) {
        struct duration_text timeout = duration_text(timeout_ms_of(client));
        enum connection_result result;
        int r;

        store_client_close(client);
        client->is_ready = client->has_failed = false;

        r = make_mqtt_client(client);
        if (r < 0)
                return BROKER_FAIL(client, "cannot connect to ", ": %s",
                                   r == -EINVAL ? "--client-id, --tls-certificate or --tls-key is invalid"
                                                : strerror(-r));

        client->wants_attempt = true;
        result = store_client_wait(client, &client->is_ready, timeout_ms_of(client));
        if (result != CONNECTION_TIMED_OUT)
                return result;
        if (mqtt_client_is_socket_connected(client->mqtt))
                return BROKER_FAIL(client, "", " does not reply within %s; is it an MQTT broker?",
                                   timeout.text);
        return BROKER_FAIL(client, "cannot connect to ", " within %s" LOCATION_ADVICE, timeout.text);
}

/* Add the brokers that failed before the current one to store_client_problem(). */
static void name_other_brokers(struct store_client *client) {
        const struct mqtt_brokers *brokers = &client->brokers;
        size_t length = strlen(client->problem);

        for (size_t i = 0; i < brokers->n_endpoints && length < sizeof(client->problem); i++)
                if (i != brokers->at)
                        length += (size_t)snprintf(client->problem + length,
                                                   sizeof(client->problem) - length, "; also tried %s",
                                                   endpoint_text(&brokers->endpoints[i]).text);
}

enum connection_result store_client_open(struct store_client *client) {
        struct mqtt_brokers *brokers = &client->brokers;
        enum connection_result result = try_broker(client);

        for (size_t n_tried = 1; result == CONNECTION_FAILED && n_tried < brokers->n_endpoints; n_tried++) {
                mqtt_brokers_advance(brokers);
                result = try_broker(client);
        }
        if (result == CONNECTION_FAILED)
                name_other_brokers(client);
        return result;
}

enum connection_result store_client_reopen(struct store_client *client) {
        enum connection_result result = CONNECTION_FAILED;
        int64_t pause_ms = PAUSE_FIRST_MS;

        while (result == CONNECTION_FAILED) {
                store_client_close(client);
                result = store_client_wait(client, NULL, pause_ms);
                if (result == CONNECTION_TIMED_OUT)
                        result = store_client_open(client);
                pause_ms = pause_ms * 2 < PAUSE_LAST_MS ? pause_ms * 2 : PAUSE_LAST_MS;
        }
        return result;
}

bool store_client_may_be_taken_over(const struct store_client *client) {
        return client->may_be_taken_over;
}

uint32_t store_client_max_packet_bytes(const struct store_client *client) {
        return mqtt_client_max_packet_bytes(client->mqtt);
}

int store_client_publish(struct store_client *client, const struct message *message, int *ret_packet_id) {
        int r = -ENOTCONN;

        if (client->mqtt)
                r = mqtt_client_publish(client->mqtt, message, ret_packet_id);
        if (r == -EMSGSIZE && store_client_max_packet_bytes(client) == MESSAGE_PACKET_MAX)
                store_client_fail(client, "the request is longer than MQTT can carry");
        else if (r == -EMSGSIZE)
                BROKER_FAIL(client, "the request is longer than ",
                            " accepts; raise the limit there (mosquitto: max_packet_size)");
        else if (r < 0)
                BROKER_FAIL(client, "cannot send the request to ", ": %s", strerror(-r));
        return r;
}
