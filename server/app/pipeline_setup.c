/* SPDX-License-Identifier: Apache-2.0 */

/* The start of the pipeline: its callbacks, its state and its configuration. */

#include "app/pipeline_setup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "app/dev_broker.h"
#include "app/internal.h"
#include "app/link_callbacks.h"
#include "app/loop.h"
#include "app/ready_file.h"
#include "app/reload.h"
#include "app/service_manager.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "config/config.h"
#include "pipeline/seeding.h"
#include "protocol/companion_box.h"
#include "storage/sqlite/sqlite.h"

/* 1. Callbacks, beside those in app/loop.h */

/*
 * Announce that requests are served: on stdout with --dev, in the ready file, and to the service
 * manager.
 */
static void announce_ready(const struct server *server) {
        char text[300] = "ready\n";

        if (server->dev_broker)
                snprintf(text, sizeof(text), "mqtt://%s\n",
                         endpoint_text(dev_broker_endpoint(server->dev_broker)).text);
        ready_file_write(server->config.ready_file, text);
        if (server->dev_broker && write(STDOUT_FILENO, text, strlen(text)) < 0)
                log_warning("cannot write to stdout: %s", strerror(errno));
        sd_notify(0, "READY=1");
}

struct http_link {
        char text[320];
};

/* The address of the console, or of the pages; empty without an HTTP server. */
static struct http_link http_link(const struct server *server) {
        struct http_link link = { "" };
        struct endpoint endpoint;

        if (!server->http)
                return link;
        endpoint = *server->config.http_listen;
        endpoint.port = http_port(server->http);
        snprintf(link.text, sizeof(link.text), "; %s at http%s://%s/", server->console ? "console" : "pages",
                 server->config.http_certificate ? "s" : "", endpoint_text(&endpoint).text);
        return link;
}

static void server_on_serving(void *userdata, enum broker_kind broker_kind) {
        struct server *server = userdata;

        log_info("ready: serving %s as node id \"%s\", dialect %s; the broker has %s plugin%s",
                 endpoint_text(link_endpoint(server->link)).text, LOG_STRING(server->config.node_id),
                 server->config.dialect == DIALECT_SDK ? "sdk" : "document",
                 broker_kind == BROKER_WITH_PLUGIN ? "the" : "no", http_link(server).text);
        server_update_status(server);
        server_warn_of_unverified_clients(server, broker_kind);
        server->logged.disconnect = DISCONNECT_NONE;
        if (!server->was_ready && server->cluster.leads) {
                member_file_put(&server->member_file);
                server->gives_up = false;
        }
        if (!server->was_ready)
                announce_ready(server);
        server->was_ready = true;
}

/* Skip all cleanup: it would publish replies, and write a checkpoint. */
__attribute__((noreturn)) static void server_on_fatal(void *userdata) {
        (void)userdata;
        _exit(EXIT_FAILURE);
}

/* 2. The start */

static struct engine_config make_engine_config(const struct config *config) {
        return (struct engine_config){
                .node_id = slice_from_string(config->node_id),
                .limits = server_engine_limits(config),
                .persist = config->persist,
                .persist_rules = config->persist_rules,
                .n_persist_rules = config->n_persist_rules,
        };
}

static int open_control(struct server *server) {
        log_warning("--control: all clients of the broker can empty this store, move its clock, inject "
                    "faults, and read the requests of other clients with their keys and values, whatever "
                    "the policy grants; use it for tests only");
        return control_new(&server->control, server->pipeline, server_begin_outage, server);
}

CLEANUP_FUNCTION(cleanup_state, struct state *, state_free)

/* Log what was loaded. last_end: of the data directory; NULL: in etcd. start_ns: monotonic time before. */
static void log_start(const struct server *server, const char *last_end, const struct state *state,
                      int64_t start_ns) {
        uint64_t n_keys = engine_stats(state->engine).n_keys;
        int64_t load_ms = (system_clock_mono_ns() - start_ns) / NS_PER_MS;

        if (last_end)
                log_info("statestored " STATESTORED_VERSION ": data_dir=\"%s\" keys=%" PRIu64
                         " load_ms=%" PRId64 " last_end=%s",
                         LOG_STRING(server->config.data_dir), n_keys, load_ms, last_end);
        else
                log_info("statestored " STATESTORED_VERSION ": etcd_prefix=\"%s\" keys=%" PRIu64
                         " load_ms=%" PRId64 " term=%" PRIu64,
                         LOG_STRING(server->config.etcd.prefix), n_keys, load_ms, server->cluster.term);
}

/*
 * Load the state of the data directory, or that of the member that leads; without any, create an empty
 * state. The caller owns *ret_state. Returns as storage_lead(). Logs the cause of an error, except
 * -ENOMEM.
 */
static int open_state(struct server *server, struct state **ret_state) {
        static const char *const last_ends[N_STORAGE_LAST_ENDS] = { "clean", "unclean", "none" };
        struct engine_config engine = make_engine_config(&server->config);
        CLEANUP(cleanup_state) struct state *state = NULL;
        int64_t start_ns = system_clock_mono_ns();
        const char *last_end = NULL;
        struct state_header header;
        int r;

        if (!config_stores_data(&server->config)) {
                log_info("statestored " STATESTORED_VERSION ": keys are in memory only");
                state_header_init(&header);
                return state_new(ret_state, &engine, &header, server_now(server));
        }

        if (!server->storage) {
                r = storage_sqlite_open(&server->storage, server->config.data_dir);
                if (r < 0)
                        return r;
                last_end = last_ends[r];
        }
        r = storage_load_state(&state, server->storage, &engine, server_now(server));
        if (r < 0)
                return r;
        log_start(server, last_end, state, start_ns);
        r = storage_lead(server->storage, &state->header);
        if (r >= 0)
                *ret_state = take_ptr(&state);
        return r;
}

int server_create_pipeline(struct server *server) {
        const struct config *config = &server->config;
        struct pipeline_config pipeline_config = {
                .callbacks = { .clock_ns = server_clock_ns,
                               .start_commit = server_start_commit,
                               .serving = server_on_serving,
                               .fatal = server_on_fatal,
                               .userdata = server },
                .dialect = config->dialect,
                .presence_topic = config->presence_topic,
                .requires_plugin = config->require_plugin,
                .persistence_name = config->persist_property,
                .persistence_value = config->persist_property_value,
        };
        CLEANUP(cleanup_state) struct state *state = NULL;
        int r;

        r = companion_box_init();
        if (r < 0) {
                log_error("cannot start: the system has no source of randomness");
                return r;
        }
        random_fill(&pipeline_config.run, sizeof(pipeline_config.run));
        random_fill(pipeline_config.companion_secret, sizeof(pipeline_config.companion_secret));

        r = open_state(server, &state); /* server_run() logs -ENOMEM */
        if (r < 0)
                return r;
        snprintf(server->client_id, sizeof(server->client_id), COMPANION_RANDOM_ID_PREFIX "%s",
                 state->header.instance_id);
        pipeline_config.is_disk_full = r == STORAGE_FULL;
        r = pipeline_new(&server->pipeline, &pipeline_config, state, server->storage);
        if (r < 0)
                return r;
        take_ptr(&state);
        server->view.pipeline = server->pipeline;
        if (server->console)
                console_observe(server->console, server->pipeline);
        if (config->control)
                r = open_control(server);
        if (r < 0)
                return r;
        server_apply_live_options(server);
        if (!config->seed_file)
                return 0;

        r = seeding_run(server->pipeline, config->seed_file, server_now(server));
        if (r == -EBADMSG)
                server->exit_code = EXIT_INVALID_CONFIG;
        return r;
}
