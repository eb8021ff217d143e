/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starved: each allocation of the engine fails in a run of its own, alone or with all later ones. A
 * request that fails has changed nothing.
 */

#include <errno.h>
#include <stdio.h>

#include "engine/internal.h"
#include "support/limits.h"
#include "unit/engine/world.h"
#include "unit/support/entries.h"
#include "unit/support/memory.h"
#include "unit/support/table.h"

#define FOR_EVER UINT64_MAX

Test(starved_engine, is_created_completely_or_not_at_all) {
        struct engine_config config = { .node_id = S("StateStore"),
                                        .table_key = { { 1 } },
                                        .limits = TEST_LIMITS };
        struct engine *engine = NULL;

        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, n % 2 ? 1 : FOR_EVER);
                r = engine_new(&engine, &config);
                if (memory_stop_failing() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM, "allocation %lu", n);
                cr_assert_null(engine);
        }
        engine_free(engine);
}

Test(starved_engine, restores_a_key_or_changes_nothing) {
        const struct entry_fields stored = { S("k"), S("v"), { 1, 0 }, 10, NULL };
        struct engine_config config = world_config();
        struct engine *engine;
        int r = -ENOMEM;

        cr_assert_eq(engine_new(&engine, &config), 0);
        for (uint64_t n = 1; r < 0; n++) {
                memory_starve(n, n % 2 ? 1 : FOR_EVER);
                r = engine_put_entry(engine, &stored);
                cr_assert_eq(r, memory_stop_failing() > 0 ? -ENOMEM : 0, "allocation %lu", n);
                cr_expect_eq(engine_stats(engine).n_keys, r == 0, "allocation %lu", n);
        }
        engine_free(engine);
}

static const struct {
        const char *name;
        struct request request;
        enum outcome outcome;
} requests[] = {
        /*
         * "k" has the value "v", "past" has expired, "none" does not exist; a client watches each
         */
        { "SET", SET("k", "w", PX(10)), OUTCOME_DONE },
        { "SET of a new key", SET("none", "w", PX(10)), OUTCOME_DONE },
        { "SET of an expired key", SET("past", "w"), OUTCOME_DONE },
        { "DEL", DEL("k"), OUTCOME_DELETED },
        { "SET with a number", SET("k", "w", .number = 1), OUTCOME_DONE },
        { "DEL with a number", DEL("past", .number = 2), OUTCOME_NOTHING },
        { "DEL of an expired key", DEL("past"), OUTCOME_NOTHING },
        { "VDEL", VDEL("k", "v"), OUTCOME_DELETED },
        { "KEYNOTIFY", WATCH("d", "k"), OUTCOME_DONE },
        { "STOP", UNWATCH("c", "k"), OUTCOME_DONE },
};

static struct engine *engine_of_requests(void) {
        struct engine_config config = world_config();
        const struct entry_fields present = { S("k"), S("v"), { 1, 0 }, DEADLINE_NEVER, NULL };
        const struct entry_fields past = { S("past"), S("v"), { 1, 0 }, 1, NULL };
        struct engine *engine;

        cr_assert_eq(engine_new(&engine, &config), 0);
        cr_assert_eq(engine_put_entry(engine, &present), 0);
        cr_assert_eq(engine_put_entry(engine, &past), 0);
        cr_assert_eq(engine_put_registration(engine, S("c"), S(""), S("k"), 0), 0);
        cr_assert_eq(engine_put_registration(engine, S("c"), S(""), S("past"), 0), 0);
        cr_assert_eq(engine_put_registration(engine, S("c"), S(""), S("none"), 0), 0);
        return engine;
}

/*
 * The state is unchanged, except that the expired key may be removed, with a row and a
 * notification.
 */
static void check_unchanged(const struct engine *engine, const struct effects *effects, const char *name) {
        bool has_gone = !find_entry(engine, S("past"));
        struct entry *entry = find_entry(engine, S("k"));

        cr_assert_not_null(entry, "%s", name);
        cr_expect(slice_equal(entry_value(entry), S("v")), "%s", name);
        cr_expect_null(find_entry(engine, S("none")), "%s", name);
        cr_expect_eq(engine_stats(engine).n_registrations, 3, "%s", name);
        cr_expect_eq(effects->n_changes, has_gone, "%s", name);
        cr_expect_eq(effects->n_notifications, has_gone, "%s", name);
}

Test(starved_engine, changes_nothing_if_it_replies_out_of_memory) {
        struct now now = { .wall_ms = WORLD_WALL_MS, .mono_ns = 5000 };

        for (size_t i = 0; i < N_ROWS(requests); i++) {
                struct reply reply = { 0 };
                const struct request *request = &requests[i].request;
                uint64_t n_failed = 1, n_refused = 0;

                for (uint64_t n = 1; n_failed > 0; n++) {
                        struct engine *engine = engine_of_requests();
                        struct effects effects = { 0 };

                        memory_starve(n, n % 2 ? 1 : FOR_EVER);
                        engine_request(engine, request, &reply, now, &effects);
                        n_failed = memory_stop_failing();
                        if (reply.result.outcome == OUTCOME_OUT_OF_MEMORY) {
                                cr_expect_gt(n_failed, 0, ROW(requests, i));
                                check_unchanged(engine, &effects, requests[i].name);
                                n_refused++;
                                effects_reset(&effects);
                                reply_deinit(&reply);
                                engine_request(engine, request, &reply, now, &effects);
                        }
                        cr_expect_eq(reply.result.outcome, requests[i].outcome, ROW(requests, i));
                        reply_deinit(&reply);
                        effects_deinit(&effects);
                        engine_free(engine);
                }
                cr_expect_gt(n_refused, 0, ROW(requests, i));
        }
}

/* If it were not remembered, the plugin would let it be executed again. */
Test(starved_engine, remembers_each_numbered_request_that_it_executes) {
        const struct request del = DEL("k", .number = 1);
        const struct now now = { .wall_ms = WORLD_WALL_MS, .mono_ns = 5000 };
        struct reply reply = { 0 };

        for (uint64_t n = 1, n_failed = 1; n_failed > 0; n++) {
                struct engine *engine = engine_of_requests();
                struct effects effects = { 0 };
                bool is_executed;

                memory_starve(n, n % 2 ? 1 : FOR_EVER);
                engine_request(engine, &del, &reply, now, &effects);
                n_failed = memory_stop_failing();
                is_executed = reply.result.outcome == OUTCOME_DELETED;
                engine_request(engine, &del, &reply, now, &effects);
                cr_expect_eq(reply.result.outcome, OUTCOME_DELETED, "allocation %lu", n);
                cr_expect_eq(reply.execution == EXECUTION_REPEATED, is_executed, "allocation %lu", n);
                effects_deinit(&effects);
                engine_free(engine);
        }
}

/* A tick that runs out of memory notifies the watchers of all lost keys again. */
Test(starved_engine, notifies_the_watchers_of_lost_keys_in_the_end) {
        struct event tick = { .type = EVENT_TICK };
        struct now now = { .wall_ms = WORLD_WALL_MS };
        uint64_t n_failed = 1;

        for (uint64_t n = 1; n_failed > 0; n++) {
                struct engine *engine = engine_of_requests();
                struct effects effects = { 0 };
                int r;

                engine_restore_lost_keys(engine);
                memory_starve(n, 1);
                r = engine_step(engine, &tick, now, &effects);
                n_failed = memory_stop_failing();
                cr_expect_eq(r, n_failed > 0 ? -ENOMEM : 0, "allocation %lu", n);
                if (r < 0) {
                        effects_reset(&effects);
                        cr_assert_eq(engine_step(engine, &tick, now, &effects), 0);
                }
                cr_expect_eq(effects.n_notifications, 1, "allocation %lu", n);
                cr_expect_not(engine_may_lose_keys(engine));
                effects_deinit(&effects);
                engine_free(engine);
        }
}

/*
 * Keys of one shard: deleting all of them frees the table of the shard, and an undo allocates it
 * again.
 */
#define N_SAME_SHARD 6

static char same_shard[N_SAME_SHARD][16];

static void find_keys_of_one_shard(const struct engine *engine) {
        for (unsigned int i = 0, n = 0; n < N_SAME_SHARD; i++) {
                snprintf(same_shard[n], sizeof(same_shard[n]), "%u", i);
                n += keyspace_hash(&engine->keyspace, slice_from_string(same_shard[n])) >>
                             (64 - KEYSPACE_SHARD_BITS) ==
                     0;
        }
}

static void step(struct engine *engine, struct request request, struct effects *effects) {
        struct reply reply;

        engine_request(engine, &request, &reply, (struct now){ 1, 1 }, effects);
        reply_deinit(&reply);
}

/* Step the request for each of these keys. */
static void step_each(struct engine *engine, struct request request, struct effects *effects) {
        for (size_t i = 0; i < N_SAME_SHARD; i++) {
                request.key = slice_from_string(same_shard[i]);
                step(engine, request, effects);
        }
}

/* An undo reports failure if it cannot undo everything. */
Test(starved_engine, undoes_everything_or_reports_failure) {
        struct engine_config config = world_config();

        for (uint64_t n = 1, n_failed = 1; n_failed > 0; n++) {
                struct effects effects = { 0 };
                struct engine *engine;
                int r;

                cr_assert_eq(engine_new(&engine, &config), 0);
                find_keys_of_one_shard(engine);
                step_each(engine, SET("", "v"), &effects);
                step(engine, SET("k", "old", PX(10)), &effects);
                step(engine, WATCH("c", "k"), &effects);

                effects_reset(&effects);
                step_each(engine, DEL(""), &effects);
                step(engine, SET("k", "new"), &effects);
                step(engine, UNWATCH("c", "k"), &effects);
                step(engine, WATCH("d", "k"), &effects);

                memory_starve(n, 1);
                r = engine_undo(engine, &effects);
                n_failed = memory_stop_failing();
                cr_assert_eq(r, n_failed > 0 ? -ENOMEM : 0, "allocation %lu", n);
                if (r == 0) {
                        cr_expect(slice_equal(entry_value(find_entry(engine, S("k"))), S("old")));
                        cr_expect_eq(engine_stats(engine).n_keys, N_SAME_SHARD + 1);
                        cr_expect_not_null(engine_find_registration(engine, S("c"), S("k")));
                        cr_expect_null(engine_find_registration(engine, S("d"), S("k")));
                        cr_expect_gt(n, 3, "only %lu allocations were tried", n);
                }
                effects_deinit(&effects);
                engine_free(engine);
        }
}
