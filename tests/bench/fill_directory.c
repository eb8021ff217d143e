/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fills a data directory as statestored does, without a broker: batches of SETs through the engine, each batch a
 * commit. What it prints is the storage's own limit.
 */

#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "bench/arguments.h"
#include "bench/fail.h"
#include "bench/keys.h"
#include "bench/stopwatch.h"
#include "storage/restore.h"

#define VALUE_LENGTH 100

struct filler {
        struct engine *engine;
        struct storage *storage;
        struct effects effects;
        uint64_t n_commits, n_rows;
};

static struct now read_clock(void) {
        return (struct now){ stopwatch_wall_ms(), stopwatch_ns() };
}

static void set(struct filler *filler, uint64_t number, struct now now) {
        static const uint8_t value[VALUE_LENGTH] = "value";
        uint8_t key[KEY_LENGTH];
        struct request request = {
                .verb = VERB_SET,
                .key = { key, sizeof(key) },
                .value = { value, sizeof(value) },
                .has_timestamp = true,
                .timestamp = { now.wall_ms, 0, SLICE_LITERAL("bench") },
                .client = SLICE_LITERAL("bench"),
                .correlation_data = { (const uint8_t *)&number, sizeof(number) },
        };

        key_write(key, number);
        if (engine_step(filler->engine, &(struct event){ .type = EVENT_REQUEST, .request = &request }, now,
                        &filler->effects) < 0)
                fail("out of memory");
}

static void commit(struct filler *filler, struct now now) {
        struct storage_batch batch = {
                .rows = filler->effects.rows,
                .n_rows = filler->effects.n_rows,
                .clock = engine_stats(filler->engine).clock,
                .now = now,
        };

        if (storage_commit(filler->storage, &batch) < 0)
                fail("the storage has failed");
        filler->n_commits++;
        filler->n_rows += batch.n_rows;
        effects_reset(&filler->effects);
}

static void fill(struct filler *filler, uint64_t n_keys, uint64_t n_keys_a_commit) {
        for (uint64_t number = 0; number < n_keys;) {
                struct now now = read_clock();
                uint64_t end = number + n_keys_a_commit < n_keys ? number + n_keys_a_commit : n_keys;

                while (number < end)
                        set(filler, number++, now);
                commit(filler, now);
        }
}

static void open_filler(struct filler *filler, const char *directory) {
        struct engine_config config = {
                .node_id = SLICE_LITERAL("StateStore"),
                .max_keys = UINT64_MAX,
                .max_bytes = UINT64_MAX,
                .max_remembered_bytes = UINT64_C(64) << 20,
        };
        struct storage_header header;

        if (storage_sqlite_open(&filler->storage, directory) < 0 ||
            restore_engine(&filler->engine, &header, filler->storage, &config, read_clock()) < 0)
                fail("%s: cannot be filled", directory);
}

int main(int n_arguments, char **arguments) {
        uint64_t n_keys = 1000000, n_keys_a_commit = 1000;
        struct filler filler = { 0 };
        const char *directory = NULL;
        int64_t begin_ns;
        double seconds;

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "directory", ARGUMENT_TEXT, &directory },
                               { "keys", ARGUMENT_NUMBER, &n_keys },
                               { "keys-a-commit", ARGUMENT_NUMBER, &n_keys_a_commit },
                               { 0 },
                       });
        if (!directory)
                fail("--directory: a directory was expected");

        open_filler(&filler, directory);
        begin_ns = stopwatch_ns();
        fill(&filler, n_keys, n_keys_a_commit);
        seconds = (double)(stopwatch_ns() - begin_ns) / NS_PER_S;

        printf("sets_per_s %.0f\n", (double)n_keys / seconds);
        printf("commits_per_s %.1f\n", (double)filler.n_commits / seconds);
        printf("rows_per_commit %.1f\n", (double)filler.n_rows / (double)filler.n_commits);

        effects_deinit(&filler.effects);
        engine_free(filler.engine);
        storage_close(filler.storage);
        return 0;
}
