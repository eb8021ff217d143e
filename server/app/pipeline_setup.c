/* SPDX-License-Identifier: Apache-2.0 */

/* Configure the pipeline at start and after a reload. */

#include "app/pipeline_setup.h"

#include <errno.h>
#include <inttypes.h>

#include "app/internal.h"
#include "app/link_callbacks.h"
#include "app/loop.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "config/config.h"
#include "pipeline/seeding.h"
#include "protocol/companion_box.h"
#include "storage/sqlite/sqlite.h"

static struct engine_limits make_limits(const struct config *config) {
        return (struct engine_limits){
                .max_keys = config->max_keys,
                .max_bytes = config->max_bytes,
                .max_registrations = config->max_registrations,
                .max_remembered_bytes = config->max_remembered_bytes,
                .registration_timeout_ns = config->registration_timeout_ms * NS_PER_MS,
        };
}

static struct engine_config make_engine_config(const struct config *config) {
        return (struct engine_config){
                .node_id = slice_from_string(config->node_id),
                .limits = make_limits(config),
                .persist = config->persist,
                .persist_rules = config->persist_rules,
                .n_persist_rules = config->n_persist_rules,
        };
}

/* The pipeline takes ownership of *policy. */
static void set_policy(struct server *server, struct policy **policy) {
        if (*policy)
                log_info("policy \"%s\" loaded: rules=%zu; requests that no rule grants are denied",
                         LOG_STRING(server->config.policy_file), policy_n_rules(*policy));
        pipeline_set_policy(server->pipeline, take_ptr(policy), server_now(server));
}

static int open_control(struct server *server) {
        log_warning("--control: all clients of the broker can empty this store, move its clock, inject "
                    "faults, and read the requests of other clients with their keys and values, whatever "
                    "the policy grants; use it for tests only");
        return control_new(&server->control, server->pipeline, server_begin_outage, server);
}

CLEANUP_FUNCTION(cleanup_storage, struct storage *, storage_close)
CLEANUP_FUNCTION(cleanup_state, struct state *, state_free)

/* Log what was loaded. start_ns: monotonic time before the data directory was opened. */
static void log_start(const struct server *server, enum storage_last_end last_end, const struct state *state,
                      int64_t start_ns) {
        static const char *const last_ends[N_STORAGE_LAST_ENDS] = { "clean", "unclean", "none" };

        log_info("statestored " STATESTORED_VERSION ": data_dir=\"%s\" keys=%" PRIu64 " load_ms=%" PRId64
                 " last_end=%s",
                 LOG_STRING(server->config.data_dir), engine_stats(state->engine).n_keys,
                 (system_clock_mono_ns() - start_ns) / NS_PER_MS, last_ends[last_end]);
}

/*
 * Open the data directory and load its state; without one, create an empty state. The caller owns
 * *ret_state and *ret_storage. Returns as storage_lead(). Logs the cause of an error, except
 * -ENOMEM.
 */
static int open_state(const struct server *server, struct state **ret_state, struct storage **ret_storage) {
        struct engine_config engine = make_engine_config(&server->config);
        CLEANUP(cleanup_storage) struct storage *storage = NULL;
        CLEANUP(cleanup_state) struct state *state = NULL;
        int64_t start_ns = system_clock_mono_ns();
        struct state_header header;
        int r, last_end;

        if (!config_stores_data(&server->config)) {
                log_info("statestored " STATESTORED_VERSION ": keys are in memory only");
                state_header_init(&header);
                return state_new(ret_state, &engine, &header, server_now(server));
        }

        last_end = storage_sqlite_open(&storage, server->config.data_dir);
        if (last_end < 0)
                return last_end;
        r = storage_load_state(&state, storage, &engine, server_now(server));
        if (r < 0)
                return r;
        log_start(server, (enum storage_last_end)last_end, state, start_ns);
        r = storage_lead(storage, &state->header);
        if (r < 0)
                return r;

        *ret_state = take_ptr(&state);
        *ret_storage = take_ptr(&storage);
        return r;
}

int server_create_pipeline(struct server *server, const struct pipeline_callbacks *callbacks) {
        const struct config *config = &server->config;
        struct pipeline_config pipeline_config = {
                .callbacks = *callbacks,
                .dialect = config->dialect,
                .presence_topic = config->presence_topic,
                .requires_plugin = config->require_plugin,
                .persistence_name = config->persist_property,
                .persistence_value = config->persist_property_value,
        };
        CLEANUP(cleanup_storage) struct storage *storage = NULL;
        CLEANUP(cleanup_state) struct state *state = NULL;
        int r;

        r = companion_box_init();
        if (r < 0) {
                log_error("cannot start: the system has no source of randomness");
                return r;
        }
        random_fill(&pipeline_config.run, sizeof(pipeline_config.run));
        random_fill(pipeline_config.companion_secret, sizeof(pipeline_config.companion_secret));

        r = open_state(server, &state, &storage); /* server_run() logs -ENOMEM */
        if (r < 0)
                return r;
        snprintf(server->client_id, sizeof(server->client_id), COMPANION_RANDOM_ID_PREFIX "%s",
                 state->header.instance_id);
        pipeline_config.is_disk_full = r == STORAGE_FULL;
        r = pipeline_new(&server->pipeline, &pipeline_config, state, storage);
        if (r < 0)
                return r;
        take_ptr(&state);
        take_ptr(&storage);
        if (config->control)
                r = open_control(server);
        if (r < 0)
                return r;
        pipeline_set_log_keys(server->pipeline, config->log_keys);
        set_policy(server, &server->config.policy);
        if (!config->seed_file)
                return 0;

        r = seeding_run(server->pipeline, config->seed_file, server_now(server));
        if (r == -EBADMSG)
                server->exit_code = EXIT_INVALID_CONFIG;
        return r;
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
        config_deinit(&server->reloaded);
        server->reloaded = next;

        log_set_level(server->config.log_level);
        log_set_format(server->config.log_format);
        pipeline_set_limits(server->pipeline, make_limits(&server->config));
        pipeline_set_log_keys(server->pipeline, server->config.log_keys);
        set_policy(server, &server->reloaded.policy);
        pipeline_read_gauges(server->pipeline, 0, &gauges);
        server_warn_of_unverified_clients(server, gauges.broker_kind);
        server_update(server);
}
