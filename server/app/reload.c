/* SPDX-License-Identifier: Apache-2.0 */

#include "app/reload.h"

#include "app/internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time_units.h"
#include "config/config.h"

struct engine_limits server_engine_limits(const struct config *config) {
        return (struct engine_limits){
                .max_keys = config->max_keys,
                .max_bytes = config->max_bytes,
                .max_registrations = config->max_registrations,
                .max_remembered_bytes = config->max_remembered_bytes,
                .registration_timeout_ns = config->registration_timeout_ms * NS_PER_MS,
        };
}

void server_apply_live_options(struct server *server) {
        const struct config *config = &server->config;

        pipeline_set_limits(server->pipeline, server_engine_limits(config));
        pipeline_set_log_keys(server->pipeline, config->log_keys);
        if (config->policy)
                log_info("policy \"%s\" loaded: rules=%zu; requests that no rule grants are denied",
                         LOG_STRING(config->policy_file), policy_n_rules(config->policy));
        pipeline_set_policy(server->pipeline, take_ptr(&server->config.policy));
}

void server_warn_of_unverified_clients(const struct server *server, enum broker_kind broker_kind) {
        const struct config *config = &server->config;

        if (broker_kind != BROKER_PLAIN)
                return;
        if (config->policy_file && !config->allow_unverified)
                log_warning(
                        "this broker does not verify clients, so the policy denies all requests: load the "
                        "plugin mosquitto_statestore.so, or see --allow-unverified");
        else if (config->credentials.user || config->credentials.tls_certificate)
                log_warning("the broker authenticates clients, but without the plugin the store does not "
                            "learn who sent a request: a client can write as any other client; load the "
                            "plugin mosquitto_statestore.so, and set require-plugin = on");
}

void server_reload(struct server *server) {
        struct gauges gauges;
        struct config next;

        if (config_read(server->n_arguments, server->arguments, true, &next) != CONFIG_RUN) {
                log_error("SIGHUP: the configuration is invalid; the previous one stays in effect");
                config_deinit(&next);
                return;
        }

        log_info("SIGHUP: configuration reloaded");
        if (server->config.policy_file && !next.policy_file)
                log_warning("the policy was removed: all clients may do everything");
        config_reload(&server->config, &next);
        policy_free(server->config.policy);
        server->config.policy = take_ptr(&next.policy);
        if (server->console)
                console_set_users(server->console, next.console_users);
        console_users_free(server->config.console_users);
        server->config.console_users = take_ptr(&next.console_users);
        config_deinit(&server->reloaded);
        server->reloaded = next;

        log_set_level(server->config.log_level);
        log_set_format(server->config.log_format);
        if (!server->pipeline)
                return; /* a standby applies them when it leads */

        server_apply_live_options(server);
        pipeline_read_gauges(server->pipeline, 0, &gauges);
        server_warn_of_unverified_clients(server, gauges.broker_kind);
}
