/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/internal.h"
#include "app/service_manager.h"
#include "base/log.h"
#include "protocol/companion.h"
#include "protocol/topics.h"

static void on_up(void *userdata, bool session_present) {
        struct server *server = userdata;

        if (server->has_served && !session_present)
                log_warning("the broker has lost the session of the store: messages sent while disconnected "
                            "were dropped");
        pipeline_set_max_packet(server->pipeline, link_max_packet_bytes(server->link));
        pipeline_connected(server->pipeline, session_present, server_now(server));
        server_set_deadline_timer(server);
}

static void on_down(void *userdata, const char *reason) {
        struct server *server = userdata;

        if (!server->is_down_logged)
                log_warning("no connection to the broker at %s: %s; retrying",
                            endpoint_text(link_endpoint(server->link)).text, reason);
        service_say_status("no connection to the broker at %s: %s",
                           endpoint_text(link_endpoint(server->link)).text, reason);
        server->is_down_logged = true;
        pipeline_disconnected(server->pipeline);
}

static void on_refused(void *userdata, const struct refusal *refusal) {
        struct server *server = userdata;

        if (!server->is_refusal_logged)
                log_error("the broker at %s refused the connection: %s; %s",
                          endpoint_text(link_endpoint(server->link)).text, refusal->reason, refusal->advice);
        service_say_status("the broker at %s refused the connection: %s",
                           endpoint_text(link_endpoint(server->link)).text, refusal->reason);
        server->is_down_logged = true;
        server->is_refusal_logged = true;
        if (!server->has_served)
                server_stop(server, EXIT_FAILURE);
}

static void on_message(void *userdata, const struct message *message) {
        struct server *server = userdata;
        struct now now = server_now(server);

        recorder_received(server->recorder, message);
        pipeline_receive(server->pipeline, message, now);
}

static void on_dropped(void *userdata) {
        struct server *server = userdata;

        pipeline_add_dropped(server->pipeline);
}

static void on_acknowledged(void *userdata, uint16_t id, bool no_subscriber) {
        struct server *server = userdata;

        pipeline_acknowledged(server->pipeline, id, no_subscriber, server_now(server));
}

static void on_batch_end(void *userdata) {
        struct server *server = userdata;

        if (pipeline_has_work(server->pipeline))
                pipeline_flush(server->pipeline, server_now(server));
}

static void on_batch_written(void *userdata) {
        server_update(userdata);
}

int server_publish(void *userdata, const struct message *message, uint16_t *ret_id) {
        struct server *server = userdata;
        int r;

        recorder_flush_requests(server->recorder);
        r = link_publish(server->link, message, ret_id);
        if (r == 0)
                recorder_sent(server->recorder, message);
        return r;
}

bool server_has_room(void *userdata) {
        struct server *server = userdata;

        return link_has_room(server->link);
}

bool server_add_client_suffix(struct server *server, const char *suffix) {
        if (suffix[0] == '\0' || server->dev ||
            strcmp(server->config.client_id, COMPANION_CLIENT_ID_DEFAULT) != 0)
                return false;

        snprintf(server->client_id, sizeof(server->client_id), COMPANION_CLIENT_ID_DEFAULT "-%s", suffix);
        server->config.client_id = server->client_id;
        return true;
}

bool server_change_client_id(void *userdata, const char *suffix) {
        struct server *server = userdata;

        if (!server_add_client_suffix(server, suffix))
                return false;

        log_info("the plugin in the broker does not guard the client id \"" COMPANION_CLIENT_ID_DEFAULT
                 "\": reconnecting as \"%s\"",
                 server->client_id);
        server->is_down_logged = true;
        link_change_client_id(server->link, server->client_id);
        return true;
}

int server_open_link(struct server *server) {
        const struct config *config = &server->config;
        /* The banner of the plugin comes first, so that its presence is known before requests arrive. */
        struct link_subscription subscriptions[] = {
                { .filter = COMPANION_BANNER, .qos = 1, .retained = true },
                { .filter = config->presence_filter, .qos = 1 },
                /* QoS 2, so that a request with a wrong QoS arrives with the QoS it was sent with. */
                { .filter = TOPIC_INVOKE, .qos = 2, .required = true },
                { .filter = config->control ? TOPIC_CONTROL : NULL, .qos = 2, .required = true },
        };
        struct decoder decoder = { .persistence_name = config->persist_property };
        struct link_config link_config = {
                .endpoints = server->dev ? server_broker_endpoint(server) : config->endpoints,
                .n_endpoints = server->dev ? 1 : config->n_endpoints,
                .client_id = config->client_id,
                .keepalive_s = config->keepalive_s,
                .credentials = {
                        .user = config->user,
                        .password_file = config->password_file,
                        .tls = config->tls,
                        .tls_ca_file = config->tls_ca_file,
                        .tls_certificate = config->tls_certificate,
                        .tls_key = config->tls_key,
                        .tls_alpn = config->tls_alpn,
                },
                .user_properties = server->user_properties,
                .callbacks = { on_up, on_down, on_refused, on_message, on_dropped, on_acknowledged,
                               on_batch_end, on_batch_written },
                .userdata = server,
        };
        const char *unreadable;
        int r;

        for (size_t i = 0; i < sizeof(subscriptions) / sizeof(subscriptions[0]); i++)
                if (subscriptions[i].filter)
                        link_config.subscriptions[link_config.n_subscriptions++] = subscriptions[i];
        invocation_properties(&decoder, server->user_properties);
        unreadable = credentials_unreadable_file(&link_config.credentials);
        if (unreadable) {
                log_error("cannot start: cannot read %s: %s", LOG_TEXT(slice_from_string(unreadable)),
                          strerror(errno));
                return -EINVAL;
        }
        r = link_open(&server->link, &server->loop, &link_config);
        if (r == -EINVAL)
                log_error("cannot start: --client-id, --tls-certificate or --tls-key is invalid");
        return r;
}
