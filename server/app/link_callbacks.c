/* SPDX-License-Identifier: Apache-2.0 */

#include "app/link_callbacks.h"

#include <errno.h>
#include <stdio.h>

#include "app/broker_probe.h"
#include "app/dev_broker.h"
#include "app/internal.h"
#include "app/loop.h"
#include "app/service_manager.h"
#include "app/stop.h"
#include "base/array.h"
#include "base/log.h"
#include "base/time_units.h"
#include "protocol/broker_log.h"
#include "protocol/companion.h"
#include "protocol/topics.h"

static void server_on_up(void *userdata, bool session_present) {
        struct server *server = userdata;

        if (server->was_ready && !session_present)
                log_warning("the broker has lost the session of the store: it dropped the messages for the "
                            "store that arrived while the store was disconnected");
        pipeline_set_max_packet(server->pipeline, link_max_packet_bytes(server->link));
        if (broker_probe_finds_plugin(server->link))
                pipeline_plugin_detected(server->pipeline);
        pipeline_connected(server->pipeline, session_present);
        server_update_status(server);
}

static void server_on_down(void *userdata, const char *cause) {
        struct server *server = userdata;

        if (!server->is_attempt_refused) /* else server_on_refused() has written a better cause */
                snprintf(server->disconnected, sizeof(server->disconnected),
                         "no connection to the broker at %s: %s",
                         endpoint_text(link_endpoint(server->link)).text, cause);
        if (server->logged.disconnect == DISCONNECT_NONE) {
                log_warning("%s; retrying", server->disconnected);
                server->logged.disconnect = DISCONNECT_DOWN;
        }
        server->is_attempt_refused = false;
        pipeline_disconnected(server->pipeline);
        server_update_status(server);
        if (server->next_outage.duration_ms > 0 && server->next_outage.of == OUTAGE_OF_BROKER)
                dev_broker_interrupt(server->dev_broker, server->next_outage.duration_ms);
        server->next_outage.duration_ms = 0;
}

int server_begin_outage(void *userdata, enum outage_of of, int64_t duration_ms) {
        struct server *server = userdata;

        if (of == OUTAGE_OF_BROKER && !server->dev_broker)
                return -ENOTSUP;
        if (server->next_outage.duration_ms > 0)
                return -EBUSY;

        log_info("test control: outage of the %s for %lld ms", of == OUTAGE_OF_BROKER ? "broker" : "store",
                 (long long)duration_ms);
        server->next_outage.of = of;
        server->next_outage.duration_ms = duration_ms;
        link_pause(server->link, (uint64_t)duration_ms);
        return 0;
}

static void server_on_refused(void *userdata, const struct refusal *refusal) {
        struct server *server = userdata;

        snprintf(server->disconnected, sizeof(server->disconnected),
                 "the broker at %s refused the connection: %s",
                 endpoint_text(link_endpoint(server->link)).text, refusal->cause);
        server_update_status(server);
        if (server->logged.disconnect != DISCONNECT_REFUSED)
                log_error("%s; %s", server->disconnected, refusal->advice);
        server->is_attempt_refused = true;
        server->logged.disconnect = DISCONNECT_REFUSED;
        if (!server->was_ready)
                server_stop(server, EXIT_FAILURE);
}

static void server_on_session_discarded(void *userdata) {
        (void)userdata;
        log_error(
                "the broker passes on a message that is not valid in MQTT, such as text with invalid UTF-8, "
                "and repeats it on each connection: discarded the session and the requests that waited in "
                "it; let the broker refuse such messages (EMQX: mqtt.strict_mode = true)");
}

int server_open_link(struct server *server) {
        const struct config *config = &server->config;
        /*
         * Subscribe to the banner of the plugin first: the pipeline must know it before requests
         * arrive.
         */
        struct link_subscription subscriptions[] = {
                { .filter = COMPANION_BANNER, .qos = 1, .retained = true },
                { .filter = COMPANION_PROBE, .qos = 1 },
                { .filter = config->presence_filter, .qos = 1 },
                /*
                 * QoS 2, so that a request with a wrong QoS arrives with the QoS it was sent with.
                 */
                { .filter = TOPIC_INVOKE, .qos = 2, .required = true },
                { .filter = config->control ? TOPIC_CONTROL : NULL, .qos = 2, .required = true },
                /* The plugin reads these lines, and drops them: server/plugin/slow_watchers.c. */
                { .filter = BROKER_LOG_NOTICE },
        };
        _Static_assert(ARRAY_LENGTH(subscriptions) <= LINK_SUBSCRIPTIONS_MAX,
                       "raise LINK_SUBSCRIPTIONS_MAX");
        struct decoder decoder = { .persistence_name = config->persist_property };
        struct link_config link_config = {
                .brokers = { .endpoints = server->dev_broker ? dev_broker_endpoint(server->dev_broker)
                                                             : config->endpoints,
                             .n_endpoints = server->dev_broker ? 1 : config->n_endpoints },
                .client_id = config->client_id ? config->client_id : server->client_id,
                .keepalive_s = (uint16_t)(config->keepalive_ms / MS_PER_S),
                .credentials = config->credentials,
                .user_properties = server->user_properties,
                .callbacks = { .up = server_on_up,
                               .down = server_on_down,
                               .refused = server_on_refused,
                               .session_discarded = server_on_session_discarded,
                               .acknowledged = server_on_acknowledged,
                               .message = server_on_message,
                               .userdata = server },
        };
        struct credentials_fault fault;
        int r;

        for (size_t i = 0; i < ARRAY_LENGTH(subscriptions); i++)
                if (subscriptions[i].filter)
                        link_config.subscriptions[link_config.n_subscriptions++] = subscriptions[i];
        invocation_properties(&decoder, server->user_properties);
        if (credentials_check_tls_files(&link_config.credentials, &fault) < 0) {
                log_error("cannot start: %s", fault.text);
                return -EINVAL;
        }
        r = link_open(&server->link, &server->loop, &link_config);
        if (r == -EINVAL)
                log_error("cannot start: --client-id, --tls-certificate or --tls-key is invalid");
        if (r < 0)
                return r;

        pipeline_set_transport(server->pipeline, (struct transport){ .publish = link_publish,
                                                                     .has_room = link_has_room,
                                                                     .userdata = server->link });
        return 0;
}
