/* SPDX-License-Identifier: Apache-2.0 */

/* The commands check, backup and restore, and export and import with --data-dir. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "ctl/input.h"
#include "engine/engine.h"
#include "storage/sqlite/maintenance.h"
#include "storage/sqlite/sqlite.h"

/* Import commits this number of changes at a time. */
#define IMPORT_BATCH 1000

/* An open data directory. */
struct data_dir {
        struct storage *storage;
        struct state *state; /* notifications of an import: the store publishes them after its next start */
        bool is_node_id_fixed; /* the directory had commits, or an imported key has set it */
        struct now now;
        struct effects effects; /* import: changes that are not committed yet */
        uint64_t n_uncommitted; /* import: keys in effects; a change set has each key once */
};

static void data_dir_deinit(struct data_dir *directory) {
        effects_deinit(&directory->effects);
        state_free(directory->state);
        storage_close(directory->storage);
}

/* Logs errors. */
static enum exit_code open_data_dir(struct data_dir *directory, const char *name) {
        struct engine_config config = {
                .limits = { .max_keys = UINT64_MAX,
                            .max_bytes = UINT64_MAX,
                            .max_registrations = UINT64_MAX,
                            .max_remembered_bytes = 0 }, /* remembered replies stay on disk */
        };

        directory->now = (struct now){ system_clock_wall_ms_rounded_up(), system_clock_mono_ns() };
        if (storage_sqlite_open(&directory->storage, name) < 0 ||
            storage_load_state(&directory->state, directory->storage, &config, directory->now) < 0)
                return EXIT_STORE_ERROR;

        directory->is_node_id_fixed = directory->state->header.n_commits > 0;
        return EXIT_DONE;
}

/* export */

static void append_entry(const struct data_dir *directory, struct entry *entry, struct buf *output) {
        CLEANUP(exported_key_deinit)
        struct exported_key exported = { .has_details = true, .deadline_ms = EXPORTED_KEY_NO_DEADLINE };
        int64_t deadline_ns = keyspace_deadline(engine_keyspace(directory->state->engine), entry);
        struct hlc version = {
                .wall_ms = entry->version_wall_ms,
                .counter = entry->version_counter,
                .node = slice_from_string(directory->state->header.node_id),
        };
        struct hlc fence;

        buf_append_slice(&exported.key, entry_key(entry));
        buf_append_slice(&exported.value, entry_value(entry));
        hlc_append(&exported.version, version, HLC_PADDED);
        if (entry_fence(entry, &fence))
                hlc_append(&exported.fence, fence, HLC_PADDED);
        if (deadline_ns != DEADLINE_NEVER)
                exported.deadline_ms =
                        directory->now.wall_ms + (deadline_ns - directory->now.mono_ns) / NS_PER_MS;
        exported_key_write(&exported, output);
}

enum exit_code command_export_offline(struct command_run *run) {
        CLEANUP(data_dir_deinit) struct data_dir directory = { 0 };
        struct slice pattern = slice_from_string(run->pattern);
        struct keyspace_cursor cursor = { 0 };
        struct entry *entry;
        enum exit_code code;

        /*
         * Opening creates a missing directory: a mistyped name would be exported as an empty store.
         */
        if (storage_sqlite_find(run->options->data_dir) < 0)
                return EXIT_STORE_ERROR;
        code = open_data_dir(&directory, run->options->data_dir);
        if (code != EXIT_DONE)
                return code;

        while (!output_has_failed() &&
               (entry = keyspace_each(engine_keyspace(directory.state->engine), &cursor))) {
                uint64_t budget = UINT64_MAX;

                if (!glob_match(pattern, entry_key(entry), &budget))
                        continue;
                append_entry(&directory, entry, &run->output);
                output_write(&run->output);
        }
        return EXIT_DONE;
}

/* import */

/* After an error the next call stores nothing: what is staged cannot be staged again. */
static enum exit_code store_batch(struct importer *importer) {
        struct data_dir *directory = importer->userdata;
        struct change_set change_set;
        int r;

        if (directory->effects.n_changes == 0)
                return EXIT_DONE;

        r = state_stage(directory->state, &directory->effects);
        if (r == 0)
                r = state_make_change_set(directory->state, &directory->effects, directory->now,
                                          &change_set);
        if (r == 0)
                r = storage_commit(directory->storage, &change_set);
        if (r == -ESTALE) {
                complain("commit failed: it is unknown whether the last %zu keys are stored",
                         directory->effects.n_changes);
                _exit(EXIT_STORE_ERROR); /* see storage_commit() */
        }
        if (r >= 0) {
                state_commit(directory->state, &change_set);
                importer->n_imported += directory->n_uncommitted;
        }
        directory->n_uncommitted = 0;
        effects_reset(&directory->effects);
        if (r == -ENOMEM)
                return complain_of_memory();
        if (r < 0)
                complain("commit failed: %s", strerror(-r));
        return r < 0 ? EXIT_STORE_ERROR : EXIT_DONE;
}

/*
 * Return whether a version with this node id can be one of this store: all versions of a store have
 * the same node id. For an empty directory, the first node id that is checked becomes that of the
 * store.
 */
static bool accept_node_id(struct data_dir *directory, struct slice node) {
        struct state_header *header = &directory->state->header;

        if (!directory->is_node_id_fixed && node.length <= NODE_ID_MAX)
                snprintf(header->node_id, sizeof(header->node_id), "%.*s", (int)node.length,
                         (const char *)node.data);
        directory->is_node_id_fixed = true;
        return slice_equal(slice_from_string(header->node_id), node);
}

/*
 * Use the version of the line or, without one, a new version, and advance the clock beyond it.
 * Returns NULL, or a description of the fault.
 */
static const char *choose_version(struct data_dir *directory, const struct exported_key *exported,
                                  int64_t now_ms, struct version *ret_version) {
        struct clock *clock = engine_clock(directory->state->engine);
        struct hlc version;

        if (exported->version.length == 0) {
                *ret_version = clock_tick(clock, now_ms);
                return NULL;
        }
        if (hlc_parse(buf_slice(&exported->version), &version) < 0 || version.counter >= INT32_MAX ||
            !accept_node_id(directory, version.node))
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
static const char *check_fence(const struct data_dir *directory, const struct exported_key *exported,
                               int64_t now_ms) {
        struct hlc fence;

        if (hlc_parse(buf_slice(&exported->fence), &fence) == 0 &&
            clock_is_fence_too_far_ahead(engine_clock(directory->state->engine),
                                         slice_from_string(directory->state->header.node_id), fence, now_ms))
                return "its token is more than a minute ahead of this machine's clock, so no client could "
                       "write the key until the clock reaches it; remove \"token\" to import the key "
                       "without it";
        return NULL;
}

/* A deadline beyond the range of the monotonic clock counts as none. */
static int64_t deadline_of(const struct data_dir *directory, const struct exported_key *exported) {
        int64_t remaining_ns, deadline_ns;

        if (exported->deadline_ms == EXPORTED_KEY_NO_DEADLINE ||
            __builtin_mul_overflow(exported->deadline_ms - directory->now.wall_ms, NS_PER_MS,
                                   &remaining_ns) ||
            __builtin_add_overflow(directory->now.mono_ns, remaining_ns, &deadline_ns))
                return DEADLINE_NEVER;
        return deadline_ns;
}

static enum exit_code import_key_offline(struct importer *importer, const struct exported_key *exported,
                                         int64_t now_ms) {
        struct data_dir *directory = importer->userdata;
        struct entry_fields fields = { .key = buf_slice(&exported->key),
                                       .value = buf_slice(&exported->value),
                                       .deadline_ns = deadline_of(directory, exported) };
        struct hlc fence;
        const char *fault = choose_version(directory, exported, now_ms, &fields.version);

        if (!fault)
                fault = check_fence(directory, exported, now_ms);
        if (fault) {
                complain("\"%s\": %s", LOG_TEXT(buf_slice(&exported->key)), fault);
                return EXIT_USAGE;
        }
        if (hlc_parse(buf_slice(&exported->fence), &fence) == 0)
                fields.fence = &fence;
        if (engine_import_entry(directory->state->engine, &fields, &directory->effects) < 0)
                return complain_of_memory();
        directory->n_uncommitted++;
        return directory->effects.n_changes < IMPORT_BATCH ? EXIT_DONE : store_batch(importer);
}

enum exit_code command_import_offline(struct command_run *run) {
        CLEANUP(data_dir_deinit) struct data_dir directory = { 0 };
        struct importer importer = { .import = import_key_offline,
                                     .finish = store_batch,
                                     .userdata = &directory };
        enum exit_code code = open_data_dir(&directory, run->options->data_dir);

        if (code != EXIT_DONE)
                return code;
        if (storage_lead(directory.storage, &directory.state->header) != 0)
                return EXIT_STORE_ERROR;

        return input_import(run->options->words[0], &importer, &run->output);
}

/* check, backup, restore */

/* Print what was verified. r: the result of the function that has verified it. */
static enum exit_code report_census(struct command_run *run, int r, const char *name,
                                    const struct storage_census *census) {
        if (r < 0)
                return EXIT_STORE_ERROR;

        buf_append_format(&run->output,
                          "%s: %" PRIu64 " keys, %" PRIu64 " registrations, %" PRIu64
                          " remembered replies, %" PRIu64 " pending notifications: no damage found\n",
                          LOG_STRING(name), census->n_entries, census->n_registrations, census->n_replies,
                          census->n_notifications);
        return EXIT_DONE;
}

enum exit_code command_check(struct command_run *run) {
        const char *name = run->options->words[0];
        struct storage_census census;

        return report_census(run, storage_sqlite_check(name, &census), name, &census);
}

enum exit_code command_backup(struct command_run *run) {
        const char **words = run->options->words;
        struct storage_census census;

        return report_census(run, storage_sqlite_backup(words[0], words[1], &census), words[1], &census);
}

enum exit_code command_restore(struct command_run *run) {
        const char **words = run->options->words;
        struct storage_census census;

        return report_census(run, storage_sqlite_restore(words[0], words[1], &census), words[1], &census);
}
