/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/directory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "ctl/command.h"
#include "ctl/lines.h"
#include "ctl/output.h"
#include "engine/engine.h"
#include "storage/restore.h"
#include "storage/secrets.h"
#include "storage/sqlite/maintenance.h"
#include "storage/storage.h"

#define NS_PER_MS INT64_C(1000000)

/* Rows stored at once. */
#define IMPORT_BATCH 1000

/* A data directory, loaded. */
struct directory {
        struct storage *storage;
        struct engine *engine;
        struct storage_header header;
        struct now now;
        struct slice node_id; /* of the versions; into what is empty, the first line's */
        char first_node_id[STORAGE_NODE_ID_MAX + 1];
        struct effects effects; /* import: what is not stored yet */
};

static void directory_deinit(struct directory *directory) {
        effects_deinit(&directory->effects);
        engine_free(directory->engine);
        storage_close(directory->storage);
}

/* What is wrong has been logged. */
static enum exit_code directory_open(struct directory *directory, const char *name) {
        struct engine_config config = {
                .max_keys = UINT64_MAX,
                .max_bytes = UINT64_MAX,
                .max_registrations = UINT64_MAX,
                .max_remembered_bytes = 0, /* they stay on the disk */
        };

        directory->now = (struct now){ system_clock_wall_ms(), system_clock_mono_ns() };
        if (secrets_draw(&config) < 0 || storage_sqlite_open(&directory->storage, name) < 0 ||
            restore_engine(&directory->engine, &directory->header, directory->storage, &config,
                           directory->now) < 0)
                return EXIT_STORE_ERROR;

        directory->node_id = slice_from_string(directory->header.node_id);
        return EXIT_DONE;
}

/* export */

static void copy(struct buf *buf, struct slice bytes) {
        buf_reset(buf);
        buf_append_slice(buf, bytes);
}

static int fill_record(const struct directory *directory, struct entry *entry, struct record *record) {
        int64_t deadline_ns = engine_deadline(directory->engine, entry);
        struct hlc version = {
                .wall_ms = entry->version_wall_ms,
                .counter = entry->version_counter,
                .node = directory->node_id,
        };
        struct hlc fence;

        copy(&record->key, entry_key(entry));
        copy(&record->value, entry_value(entry));
        buf_reset(&record->version);
        hlc_append(&record->version, version, HLC_PADDED);
        buf_reset(&record->token);
        if (entry_fence(entry, &fence))
                hlc_append(&record->token, fence, HLC_PADDED);
        record->deadline_ms =
                deadline_ns == STORE_NEVER
                        ? RECORD_NO_DEADLINE
                        : directory->now.wall_ms + (deadline_ns - directory->now.mono_ns) / NS_PER_MS;

        return buf_failed(&record->key) || buf_failed(&record->value) || buf_failed(&record->version) ||
                               buf_failed(&record->token)
                       ? -ENOMEM
                       : 0;
}

static enum exit_code export_all(struct directory *directory, struct slice pattern) {
        CLEANUP(record_deinit) struct record record = { 0 };
        CLEANUP(buf_deinit) struct buf output = { 0 };
        struct store_cursor cursor = { 0 };
        struct entry *entry;

        while ((entry = engine_each_entry(directory->engine, &cursor)) && !output_has_failed()) {
                uint64_t budget = UINT64_MAX;

                if (!glob_match(pattern, entry_key(entry), &budget))
                        continue;
                if (fill_record(directory, entry, &record) < 0) {
                        complain("out of memory");
                        return EXIT_USAGE;
                }
                buf_reset(&output);
                record_write(&record, &output);
                output_write(&output);
        }
        return EXIT_DONE;
}

/* import */

static enum exit_code store_batch(struct directory *directory) {
        struct storage_batch batch;
        int r;

        if (directory->effects.n_rows == 0)
                return EXIT_DONE;

        batch = storage_batch_from(directory->engine, &directory->effects, directory->now);
        batch.persistence = PERSISTENCE_UNKNOWN; /* no client is notified of imported keys */
        if (directory->node_id.length > 0)
                batch.node_id = directory->node_id;

        r = storage_commit(directory->storage, &batch);
        effects_reset(&directory->effects);
        if (r < 0) {
                complain("cannot store: %s", strerror(-r));
                return EXIT_STORE_ERROR;
        }
        return EXIT_DONE;
}

/* All versions are of one node. */
static bool is_our_node(struct directory *directory, struct slice node) {
        if (directory->node_id.length == 0 && node.length <= STORAGE_NODE_ID_MAX) {
                memcpy(directory->first_node_id, node.data, node.length);
                directory->node_id = slice_from_string(directory->first_node_id);
        }
        return slice_equal(directory->node_id, node);
}

/* The line's own version, or a new one; the clock stays above both. NULL, or what is wrong with it. */
static const char *choose_version(struct directory *directory, const struct record *record, int64_t now_ms,
                                  struct version *ret_version) {
        struct clock *clock = engine_clock(directory->engine);
        struct hlc version;

        if (record->version.length == 0) {
                *ret_version = clock_tick(clock, now_ms);
                return NULL;
        }
        if (hlc_parse(buf_slice(&record->version), &version) < 0 || version.counter >= INT32_MAX ||
            !is_our_node(directory, version.node))
                return "its version is none that this store can have given";
        /* the clock never goes back, and clients refuse what is as far ahead of theirs */
        if (clock_is_too_far_beyond(clock, directory->node_id, version, now_ms))
                return "its version is more than a minute ahead of this machine's clock, and so would be "
                       "all that the store gives from then on; without \"version\" it gets a new one";

        *ret_version = (struct version){ version.wall_ms, (uint32_t)version.counter };
        clock_receive(clock, now_ms, version);
        return NULL;
}

/* After choose_version(), as a token is no version of later. NULL, or what is wrong with it. */
static const char *judge_token(const struct directory *directory, const struct record *record,
                               int64_t now_ms) {
        struct hlc token;

        if (hlc_parse(buf_slice(&record->token), &token) == 0 &&
            clock_is_too_far_beyond(engine_clock(directory->engine), directory->node_id, token, now_ms))
                return "its token is more than a minute ahead of this machine's clock, and so is any "
                       "other that could write it";
        return NULL;
}

/* One that the monotonic clock does not reach is none. */
static int64_t deadline_of(const struct directory *directory, const struct record *record) {
        int64_t remaining_ns, deadline_ns;

        if (record->deadline_ms == RECORD_NO_DEADLINE ||
            __builtin_mul_overflow(record->deadline_ms - directory->now.wall_ms, NS_PER_MS, &remaining_ns) ||
            __builtin_add_overflow(directory->now.mono_ns, remaining_ns, &deadline_ns))
                return STORE_NEVER;
        return deadline_ns;
}

static int put(struct directory *directory, const struct record *record, struct version version) {
        struct hlc fence;
        bool has_fence = hlc_parse(buf_slice(&record->token), &fence) == 0;

        return engine_import_entry(directory->engine, buf_slice(&record->key), buf_slice(&record->value),
                                   version, deadline_of(directory, record), has_fence ? &fence : NULL,
                                   &directory->effects);
}

static enum exit_code import_record(void *userdata, const struct record *record, int64_t now_ms) {
        struct directory *directory = userdata;
        struct version version;
        const char *fault = choose_version(directory, record, now_ms, &version);

        if (!fault)
                fault = judge_token(directory, record, now_ms);
        if (fault) {
                complain("\"%s\": %s", LOG_TEXT(buf_slice(&record->key)), fault);
                return EXIT_USAGE;
        }
        if (put(directory, record, version) < 0) {
                complain("out of memory");
                return EXIT_USAGE;
        }
        return directory->effects.n_rows < IMPORT_BATCH ? EXIT_DONE : store_batch(directory);
}

static enum exit_code import_all(struct directory *directory, const char *file) {
        enum exit_code code = lines_import(file, import_record, directory);
        enum exit_code stored = store_batch(directory);

        return code == EXIT_DONE ? stored : code;
}

static enum exit_code check(const char *name) {
        struct storage_census census;

        if (storage_sqlite_check(name, &census) < 0)
                return EXIT_STORE_ERROR;

        printf("%" PRIu64 " keys, %" PRIu64 " registrations, %" PRIu64 " remembered answers: all is well\n",
               census.n_entries, census.n_registrations, census.n_answers);
        return EXIT_DONE;
}

enum exit_code directory_run(const struct options *options) {
        CLEANUP(directory_deinit) struct directory directory = { 0 };
        const char *word = options->n_words > 0 ? options->words[0] : "*";
        enum exit_code code;

        if (options->command == &commands[COMMAND_CHECK])
                return check(word);
        if (options->command == &commands[COMMAND_BACKUP])
                return storage_sqlite_backup(word, options->words[1]) < 0 ? EXIT_STORE_ERROR : EXIT_DONE;

        /* where there is nothing a storage makes itself a directory: what was mistyped would be empty, and all well */
        if (options->command == &commands[COMMAND_EXPORT] && storage_sqlite_find(options->data_dir) < 0)
                return EXIT_STORE_ERROR;
        code = directory_open(&directory, options->data_dir);
        if (code != EXIT_DONE)
                return code;
        return options->command == &commands[COMMAND_EXPORT]
                       ? export_all(&directory, slice_from_string(word))
                       : import_all(&directory, word);
}
