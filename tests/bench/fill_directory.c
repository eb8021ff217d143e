/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fills a data directory as statestored does, without a broker: batches of SETs pass the engine,
 * and each batch is one commit. Prints the rates, which are the limits of the storage.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bench/arguments.h"
#include "bench/fail.h"
#include "bench/keys.h"
#include "bench/stopwatch.h"
#include "storage/sqlite/sqlite.h"

#define VALUE_LENGTH 100

struct filler {
        struct state *state;
        struct storage *storage;
        struct effects effects;
        uint64_t n_commits, n_rows;
};

struct options {
        uint64_t n_keys, n_keys_a_commit;
        uint64_t n_distinct; /* keys; each is set again and again */
        uint64_t n_watchers; /* of each key */
};

static struct now read_clock(void) {
        return (struct now){ stopwatch_wall_ms(), stopwatch_ns() };
}

static void set(struct filler *filler, uint64_t number, uint64_t n_distinct, struct now now) {
        static const uint8_t value[VALUE_LENGTH] = "value";
        uint8_t key[KEY_LENGTH];
        struct reply reply;
        struct request request = {
                .verb = VERB_SET,
                .key = { key, sizeof(key) },
                .value = { value, sizeof(value) },
                .has_timestamp = true,
                .timestamp = { now.wall_ms, 0, SLICE_LITERAL("bench") },
                .client = SLICE_LITERAL("bench"),
                .correlation_data = { (const uint8_t *)&number, sizeof(number) },
        };

        key_write(key, number % n_distinct);
        engine_request(filler->state->engine, &request, &reply, now, &filler->effects);
        if (reply.result.outcome == OUTCOME_OUT_OF_MEMORY)
                fail("out of memory");
        reply_deinit(&reply);
}

static void commit(struct filler *filler, struct now now) {
        struct change_set change_set;

        if (state_stage(filler->state, &filler->effects) < 0 ||
            state_make_change_set(filler->state, &filler->effects, now, &change_set) < 0)
                fail("out of memory");
        if (storage_commit(filler->storage, &change_set) < 0)
                fail("the storage has failed");
        state_commit(filler->state, &change_set);
        filler->n_commits++;
        filler->n_rows += filler->effects.n_changes;
        effects_reset(&filler->effects);

        /* count the notifications as delivered: the next commit deletes their rows */
        state_acknowledge(filler->state, filler->state->notifications.last_sequence);
}

static void add_watchers(struct filler *filler, const struct options *options) {
        for (uint64_t i = 0; i < options->n_distinct; i++)
                for (uint64_t j = 0; j < options->n_watchers; j++) {
                        uint8_t key[KEY_LENGTH];
                        char client[32];

                        key_write(key, i);
                        snprintf(client, sizeof(client), "watcher-%" PRIu64, j);
                        if (engine_put_registration(filler->state->engine, slice_from_string(client),
                                                    (struct slice){ 0 }, (struct slice){ key, sizeof(key) },
                                                    j + 1) < 0)
                                fail("out of memory");
                }
}

static void fill(struct filler *filler, const struct options *options) {
        for (uint64_t number = 0; number < options->n_keys;) {
                struct now now = read_clock();

                for (uint64_t i = 0; i < options->n_keys_a_commit && number < options->n_keys; i++)
                        set(filler, number++, options->n_distinct, now);
                commit(filler, now);
        }
}

static void open_filler(struct filler *filler, const char *directory) {
        struct engine_config config = {
                .node_id = SLICE_LITERAL("StateStore"),
                .limits = { .max_keys = UINT64_MAX,
                            .max_bytes = UINT64_MAX,
                            .max_remembered_bytes = UINT64_C(64) << 20 },
        };

        if (storage_sqlite_open(&filler->storage, directory) < 0 ||
            storage_load_state(&filler->state, filler->storage, &config, read_clock()) < 0 ||
            storage_lead(filler->storage, &filler->state->header) != 0)
                fail("%s: cannot fill the directory", directory);
}

int main(int n_arguments, char **arguments) {
        struct options options = { .n_keys = 1000000, .n_keys_a_commit = 1000, .n_distinct = UINT64_MAX };
        struct filler filler = { 0 };
        const char *directory = NULL;
        int64_t begin_ns;
        double seconds;

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "directory", ARGUMENT_TEXT, &directory },
                               { "keys", ARGUMENT_NUMBER, &options.n_keys },
                               { "keys-a-commit", ARGUMENT_NUMBER, &options.n_keys_a_commit },
                               { "distinct-keys", ARGUMENT_NUMBER, &options.n_distinct },
                               { "watchers", ARGUMENT_NUMBER, &options.n_watchers },
                               { 0 },
                       });
        if (!directory)
                fail("--directory: a directory was expected");

        open_filler(&filler, directory);
        if (options.n_watchers > 0)
                add_watchers(&filler, &options);
        begin_ns = stopwatch_ns();
        fill(&filler, &options);
        seconds = (double)(stopwatch_ns() - begin_ns) / NS_PER_S;

        printf("sets_per_s %.0f\n", (double)options.n_keys / seconds);
        printf("commits_per_s %.1f\n", (double)filler.n_commits / seconds);
        printf("rows_per_commit %.1f\n", (double)filler.n_rows / (double)filler.n_commits);

        effects_deinit(&filler.effects);
        state_free(filler.state);
        storage_close(filler.storage);
        return 0;
}
