/* SPDX-License-Identifier: Apache-2.0 */

/* The commands export and import with --data-dir or --etcd: on what is stored, without a store. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/random.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "ctl/etcd_access.h"
#include "ctl/input.h"
#include "engine/engine.h"
#include "storage/sqlite/maintenance.h"
#include "storage/sqlite/sqlite.h"

/* Import commits at most this number of changes at a time. */
#define IMPORT_BATCH 1000

/* What is stored. */
struct stored_keys {
        struct etcd_access etcd; /* with --etcd */
        struct storage *storage;
        struct state *state; /* notifications of an import: the store publishes them after its next start */
        bool is_node_id_fixed; /* the storage had commits, or an imported key has set it */
        struct now now;
        struct effects effects; /* import: changes that are not committed yet */
};

static void stored_keys_deinit(struct stored_keys *stored) {
        effects_deinit(&stored->effects);
        state_free(stored->state);
        storage_close(stored->storage);
        etcd_access_close(&stored->etcd);
}

/* The functions that open and load log errors. */

/* Opening would create a missing directory: a mistyped name would be exported as an empty store. */
static enum exit_code open_data_dir(struct stored_keys *stored, const char *name, bool writes) {
        if (!writes && storage_sqlite_find(name) < 0)
                return EXIT_STORE_ERROR;
        return storage_sqlite_open(&stored->storage, name) < 0 ? EXIT_STORE_ERROR : EXIT_DONE;
}

/* A reader reads what was stored at this moment, while a member may lead. A writer leads. */
static enum exit_code open_etcd(struct stored_keys *stored, const struct command_options *options,
                                bool writes) {
        struct etcd_access *etcd = &stored->etcd;
        enum exit_code code = etcd_access_open(etcd, options, !writes);

        if (code == EXIT_DONE)
                code = writes ? etcd_access_lead(etcd) : etcd_access_observe(etcd);
        if (code == EXIT_DONE && !writes && etcd->reading.header.holder.mod_revision == 0) {
                complain("no store has stored anything in etcd below \"%s\"",
                         LOG_STRING(etcd->config.prefix));
                code = EXIT_STORE_ERROR;
        }
        if (code == EXIT_DONE)
                stored->storage = take_ptr(&etcd->storage);
        return code;
}

static enum exit_code load(struct stored_keys *stored, const struct command_options *options) {
        struct engine_config config = {
                .limits = { .max_keys = UINT64_MAX,
                            .max_bytes = UINT64_MAX,
                            .max_registrations = UINT64_MAX,
                            .max_remembered_bytes = 0 }, /* remembered replies stay where they are */
        };
        int r;

        stored->now = (struct now){ system_clock_wall_ms_rounded_up(), system_clock_mono_ns() };
        r = storage_load_state(&stored->state, stored->storage, &config, stored->now);
        if (r == -ENOMEM)
                return complain_of_memory();
        if (r < 0)
                return r == -EIO && options->etcd ? EXIT_NO_REPLY : EXIT_STORE_ERROR;

        stored->is_node_id_fixed = stored->state->header.n_commits > 0;
        return EXIT_DONE;
}

static enum exit_code open_stored_keys(struct stored_keys *stored, const struct command_options *options,
                                       bool writes) {
        enum exit_code code = options->data_dir ? open_data_dir(stored, options->data_dir, writes)
                                                : open_etcd(stored, options, writes);

        return code == EXIT_DONE ? load(stored, options) : code;
}

/* export */

static void append_entry(const struct stored_keys *stored, struct entry *entry, struct buf *output) {
        CLEANUP(exported_key_deinit)
        struct exported_key exported = { .has_details = true, .deadline_ms = EXPORTED_KEY_NO_DEADLINE };
        int64_t deadline_ns = keyspace_deadline(engine_keyspace(stored->state->engine), entry);
        struct hlc version = {
                .wall_ms = entry->version_wall_ms,
                .counter = entry->version_counter,
                .node = slice_from_string(stored->state->header.node_id),
        };
        struct hlc fence;

        buf_append_slice(&exported.key, entry_key(entry));
        buf_append_slice(&exported.value, entry_value(entry));
        hlc_append(&exported.version, version, HLC_PADDED);
        if (entry_fence(entry, &fence))
                hlc_append(&exported.fence, fence, HLC_PADDED);
        if (deadline_ns != DEADLINE_NEVER)
                exported.deadline_ms = stored->now.wall_ms + (deadline_ns - stored->now.mono_ns) / NS_PER_MS;
        exported_key_write(&exported, output);
}

enum exit_code command_export_stored(struct command_run *run) {
        CLEANUP(stored_keys_deinit) struct stored_keys stored = { 0 };
        struct slice pattern = slice_from_string(run->pattern);
        struct keyspace_cursor cursor = { 0 };
        struct entry *entry;
        enum exit_code code = open_stored_keys(&stored, run->options, false);

        if (code != EXIT_DONE)
                return code;

        while (!output_has_failed() &&
               (entry = keyspace_each(engine_keyspace(stored.state->engine), &cursor))) {
                uint64_t budget = UINT64_MAX;

                if (!glob_match(pattern, entry_key(entry), &budget))
                        continue;
                append_entry(&stored, entry, &run->output);
                output_write(&run->output);
        }
        return EXIT_DONE;
}

/* import */

/* After an error the next call stores nothing: what is staged cannot be staged again. */
static enum exit_code store_batch(struct importer *importer) {
        struct stored_keys *stored = importer->userdata;
        struct change_set change_set;
        int r;

        if (stored->effects.n_changes == 0)
                return EXIT_DONE;

        r = state_stage(stored->state, &stored->effects);
        if (r == 0)
                r = state_make_change_set(stored->state, &stored->effects, stored->now, &change_set);
        if (r == 0)
                r = storage_commit(stored->storage, &change_set);
        if (r == -ESTALE) {
                complain("commit failed: %" PRIu64
                         " keys were imported; it is unknown whether the next %zu are stored",
                         importer->n_imported, stored->effects.n_changes);
                _exit(EXIT_STORE_ERROR); /* see storage_commit() */
        }
        if (r >= 0) {
                state_commit(stored->state, &change_set);
                importer->n_imported += stored->effects.n_changes;
        }
        effects_reset(&stored->effects);
        if (r == -ENOMEM)
                return complain_of_memory();
        if (r < 0)
                complain("commit failed: %s", strerror(-r));
        return r < 0 ? EXIT_STORE_ERROR : EXIT_DONE;
}

/*
 * Return whether a version with this node id can be one of this store: all versions of a store have
 * the same node id. For an empty storage, the first node id that is checked becomes that of the
 * store.
 */
static bool accept_node_id(struct stored_keys *stored, struct slice node) {
        struct state_header *header = &stored->state->header;

        if (!stored->is_node_id_fixed && node.length <= NODE_ID_MAX)
                snprintf(header->node_id, sizeof(header->node_id), "%.*s", (int)node.length,
                         (const char *)node.data);
        stored->is_node_id_fixed = true;
        return slice_equal(slice_from_string(header->node_id), node);
}

/*
 * Use the version of the line or, without one, a new version, and advance the clock beyond it.
 * Returns NULL, or a description of the fault.
 */
static const char *choose_version(struct stored_keys *stored, const struct exported_key *exported,
                                  int64_t now_ms, struct version *ret_version) {
        struct clock *clock = engine_clock(stored->state->engine);
        struct hlc version;

        if (exported->version.length == 0) {
                *ret_version = clock_tick(clock, now_ms);
                return NULL;
        }
        if (hlc_parse(buf_slice(&exported->version), &version) < 0 || version.counter >= INT32_MAX ||
            !accept_node_id(stored, version.node))
                return "its version cannot be one of this store";
        /*
         * The limit for fencing tokens applies to versions, too: the clock never goes back, and
         * clients refuse versions so far ahead of their clock.
         */
        if (clock_is_fence_too_far_ahead(clock, version.node, version, now_ms))
                return "its version is more than a minute ahead of this machine's clock, and all later "
                       "versions would be, too; remove \"version\" to give it a new one";

        *ret_version = (struct version){ version.wall_ms, (uint32_t)version.counter };
        clock_receive(clock, now_ms, version);
        return NULL;
}

/*
 * Call after choose_version(), which advances the clock. Returns NULL, or a description of the
 * fault.
 */
static const char *check_fence(const struct stored_keys *stored, const struct exported_key *exported,
                               int64_t now_ms) {
        struct hlc fence;

        if (hlc_parse(buf_slice(&exported->fence), &fence) == 0 &&
            clock_is_fence_too_far_ahead(engine_clock(stored->state->engine),
                                         slice_from_string(stored->state->header.node_id), fence, now_ms))
                return "its token is more than a minute ahead of this machine's clock, so no client could "
                       "write the key until the clock reaches it; remove \"token\" to import the key "
                       "without it";
        return NULL;
}

/* A deadline beyond the range of the monotonic clock counts as none. */
static int64_t deadline_of(const struct stored_keys *stored, const struct exported_key *exported) {
        int64_t remaining_ns, deadline_ns;

        if (exported->deadline_ms == EXPORTED_KEY_NO_DEADLINE ||
            __builtin_mul_overflow(exported->deadline_ms - stored->now.wall_ms, NS_PER_MS, &remaining_ns) ||
            __builtin_add_overflow(stored->now.mono_ns, remaining_ns, &deadline_ns))
                return DEADLINE_NEVER;
        return deadline_ns;
}

/* Whether the changes that are not committed yet are as many as a commit may have. */
static bool is_batch_complete(const struct stored_keys *stored) {
        struct storage_limits limits = storage_limits(stored->storage);
        const struct effects *effects = &stored->effects;

        return effects->n_changes >= IMPORT_BATCH || effects->n_keyed_changes >= limits.n_rows ||
               effects->n_bytes >= limits.n_bytes;
}

static enum exit_code import_stored_key(struct importer *importer, const struct exported_key *exported,
                                        int64_t now_ms) {
        struct stored_keys *stored = importer->userdata;
        struct entry_fields fields = { .key = buf_slice(&exported->key),
                                       .value = buf_slice(&exported->value),
                                       .deadline_ns = deadline_of(stored, exported) };
        struct hlc fence;
        const char *fault = choose_version(stored, exported, now_ms, &fields.version);

        if (!fault)
                fault = check_fence(stored, exported, now_ms);
        if (!fault && fields.key.length + fields.value.length > storage_limits(stored->storage).entry_bytes)
                fault = "key and value are larger than a quarter of max-request-bytes";
        if (fault) {
                complain("\"%s\": %s", LOG_TEXT(buf_slice(&exported->key)), fault);
                return EXIT_USAGE;
        }
        if (hlc_parse(buf_slice(&exported->fence), &fence) == 0)
                fields.fence = &fence;
        if (engine_import_entry(stored->state->engine, &fields, &stored->effects) < 0)
                return complain_of_memory();
        return is_batch_complete(stored) ? store_batch(importer) : EXIT_DONE;
}

/* Imported keys may be a copy of another storage: a broker may keep requests that were executed on that. */
static void mark_as_copy(struct state *state) {
        uint64_t no_broker;

        random_fill(&no_broker, sizeof(no_broker));
        state_serve_run(state, no_broker);
}

static enum exit_code import_file(struct command_run *run, struct stored_keys *stored) {
        struct importer importer = { .import = import_stored_key,
                                     .finish = store_batch,
                                     .userdata = stored };

        if (storage_lead(stored->storage, &stored->state->header) != 0)
                return EXIT_STORE_ERROR;
        if (stored->state->header.served_broker_run == 0)
                mark_as_copy(stored->state);
        return input_import(run->options->words[0], &importer, &run->output);
}

enum exit_code command_import_stored(struct command_run *run) {
        CLEANUP(stored_keys_deinit) struct stored_keys stored = { 0 };
        enum exit_code code = open_stored_keys(&stored, run->options, true);

        if (code == EXIT_DONE)
                code = import_file(run, &stored);
        /* A member may lead at once, also after an error. */
        if (run->options->etcd && stored.storage && storage_etcd_give_up(stored.storage) < 0 &&
            code == EXIT_DONE)
                code = EXIT_STORE_ERROR;
        return code;
}
