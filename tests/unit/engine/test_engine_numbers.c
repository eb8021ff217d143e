/* SPDX-License-Identifier: Apache-2.0 */

/* Requests in frames of the plugin: which are sent again, and which are executed again. */

#include <inttypes.h>

#include "unit/engine/world.h"
#include "unit/support/table.h"

#define N(n) .number = (n)

static struct world world;

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(numbers, .init = setup, .fini = teardown);

static bool is_repeated(struct request request, enum outcome outcome) {
        const struct reply *reply = ask(&world, request);

        cr_expect_eq(reply->result.outcome, outcome);
        return reply->execution == EXECUTION_REPEATED;
}

/* Content does not tell: these requests have neither a timestamp nor long Correlation Data. */
Test(numbers, of_an_executed_request_get_its_reply) {
        const struct reply *reply;
        int64_t version;

        ask(&world, SET("k", "v"));
        reply = ask(&world, DEL("k", N(1)));
        cr_expect_eq(reply->result.outcome, OUTCOME_DELETED);
        version = version_number(reply->result.version);
        ask(&world, SET("k", "later"));
        pass_ms(&world, 3600000);

        reply = ask(&world, DEL("k", N(1)));
        cr_expect_eq(reply->result.outcome, OUTCOME_DELETED);
        cr_expect_eq(reply->execution, EXECUTION_REPEATED);
        cr_expect(reply->result.has_version);
        cr_expect_eq(version_number(reply->result.version), version);
        cr_expect_eq(world.effects.n_changes, 0);
        cr_expect(has(&world, S("k"), S("later")));
}

Test(numbers, of_the_next_request_are_another_request) {
        ask(&world, SET("k", "v", N(1)));
        cr_expect_not(is_repeated(DEL("k", N(2)), OUTCOME_DELETED));
        cr_expect_not(is_repeated(DEL("k"), OUTCOME_NOTHING));
        cr_expect(is_repeated(SET("k", "v", N(1)), OUTCOME_DONE));
        cr_expect(has_none(&world, S("k")));
}

Test(numbers, of_another_broker_run_are_other_requests) {
        ask(&world, SET("k", "v", N(1)));
        engine_forget_executions(world.engine);
        cr_expect_not(is_repeated(DEL("k", N(1)), OUTCOME_DELETED));
        cr_expect(is_repeated(DEL("k", N(1)), OUTCOME_DELETED));
}

/* A client that had no PUBACK sends the request again, and the plugin gives it another number. */
Test(numbers, of_a_request_with_equal_content_get_its_reply_too) {
        const struct request first = SET("k", "v", N(1), TS(WORLD_WALL_MS, 0, "c"),
                                         .timestamp_text = BYTES("t"), .payload = BYTES("p"));
        struct request second = first;

        second.number = 2;
        ask(&world, first);
        ask(&world, SET("k", "later", N(3)));
        cr_expect(is_repeated(second, OUTCOME_DONE));
        pass_ms(&world, 3600000);
        tick(&world);
        cr_expect(is_repeated(second, OUTCOME_DONE), "its number is known, the content no more");
        cr_expect(has(&world, S("k"), S("later")));
}

Test(numbers, of_reads_and_errors_are_executed_again) {
        ask(&world, SET("k", "v", FENCE(WORLD_WALL_MS, 0, "c")));
        cr_expect_not(is_repeated(DEL("k", N(1)), OUTCOME_FENCE_REQUIRED));
        cr_expect_not(is_repeated(GET("k", N(2)), OUTCOME_VALUE));
        cr_expect_eq(world.effects.n_changes, 0);
        ask(&world, DEL("k", FENCE(WORLD_WALL_MS, 0, "c")));
        ask(&world, SET("k", "w"));
        cr_expect_not(is_repeated(GET("k", N(2)), OUTCOME_VALUE));
        cr_expect_not(is_repeated(DEL("k", N(1)), OUTCOME_DELETED));
        cr_expect(is_repeated(DEL("k", N(1)), OUTCOME_DELETED));
}

Test(numbers, of_a_failed_commit_are_executed_again) {
        ask(&world, SET("k", "v"));
        begin_batch(&world);
        ask_in_batch(&world, DEL("k", N(1)));
        ask_in_batch(&world, DEL("k", N(2)));
        cr_expect_eq(world.effects.n_changes, 3, "an entry and two executions");
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);

        cr_expect(has(&world, S("k"), S("v")));
        cr_expect_not(is_repeated(DEL("k", N(1)), OUTCOME_DELETED));
        cr_expect_not(is_repeated(DEL("k", N(2)), OUTCOME_NOTHING));
}

/* Each record without an end, and no more than EXECUTIONS_PLACES. */
Test(numbers, are_known_for_all_records_without_an_end) {
        const uint64_t n_max = COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX;

        for (uint64_t number = 1; number <= 3 * EXECUTIONS_PLACES; number++) {
                cr_assert_not(is_repeated(SET("k", "v", N(number)), OUTCOME_DONE), "%" PRIu64, number);
                if (number >= n_max)
                        cr_assert(is_repeated(SET("k", "v", N(number - n_max + 1)), OUTCOME_DONE),
                                  "%" PRIu64, number);
        }
        cr_expect_not(is_repeated(SET("k", "v", N(1)), OUTCOME_DONE));
        cr_expect_not(is_repeated(SET("k", "v", N(1 + EXECUTIONS_PLACES)), OUTCOME_DONE));
}

/* A failed commit puts back what was in the places. */
Test(numbers, of_an_earlier_batch_are_known_after_a_failed_commit) {
        ask(&world, SET("k", "v", N(1)));
        ask(&world, SET("k", "w", N(1 + EXECUTIONS_PLACES)));
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect(is_repeated(SET("k", "v", N(1)), OUTCOME_DONE));
        cr_expect_not(is_repeated(SET("k", "w", N(1 + EXECUTIONS_PLACES)), OUTCOME_DONE));
}

/* A request is remembered by number and by content with one change. */
Test(numbers, and_content_are_forgotten_together_by_a_failed_commit) {
        const struct request set = SET("k", "v", N(1), TS(WORLD_WALL_MS, 0, "c"),
                                       .timestamp_text = BYTES("t"), .payload = BYTES("p"));
        struct request without_number = set;

        without_number.number = 0;
        ask(&world, set);
        cr_expect_eq(world.effects.n_changes, 2, "an entry and an execution");
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_not(is_repeated(without_number, OUTCOME_DONE));
        cr_expect(is_repeated(without_number, OUTCOME_DONE));
        cr_expect_not(is_repeated(GET("k", N(1)), OUTCOME_VALUE));
        cr_expect_not(is_repeated(DEL("k", N(1)), OUTCOME_DELETED));
}

/* If the commit of a batch fails, only the replies to executions of earlier batches stay. */
Test(numbers, and_content_tell_whether_the_execution_is_of_an_earlier_batch) {
        const struct request set = SET("k", "v", N(1), TS(WORLD_WALL_MS, 0, "c"),
                                       .timestamp_text = BYTES("t"), .payload = BYTES("p"));
        struct request equal = set;

        equal.number = 2;
        ask(&world, set);
        ask_in_batch(&world, set);
        ask_in_batch(&world, equal);
        cr_expect_eq(world.replies[1].execution, EXECUTION_REPEATED);
        cr_expect_not(world.replies[1].is_of_earlier_batch);
        cr_expect_eq(world.replies[2].execution, EXECUTION_REPEATED);
        cr_expect_not(world.replies[2].is_of_earlier_batch);

        equal.number = 3;
        cr_expect(ask(&world, set)->is_of_earlier_batch);
        ask_in_batch(&world, equal);
        cr_expect(world.replies[1].is_of_earlier_batch);
}

/* The plugin sends them again in their order, so they end as before. */
Test(numbers, of_keynotify_and_its_stop_end_without_registration) {
        const struct request requests[] = {
                WATCH("c", "k", N(1), .connection = 1),
                SET("k", "v", N(2)),
                UNWATCH("c", "k", N(3), .connection = 1),
        };
        int64_t versions[N_ROWS(requests)];

        for (size_t i = 0; i < N_ROWS(requests); i++)
                versions[i] = version_number(ask(&world, requests[i])->result.version);
        pass_ms(&world, 100);
        for (size_t i = 0; i < N_ROWS(requests); i++) {
                cr_expect(is_repeated(requests[i], OUTCOME_DONE), "request %zu", i);
                cr_expect_eq(version_number(world.replies[0].result.version), versions[i], "request %zu", i);
                cr_expect_str_eq(notified(&world), "", "request %zu", i);
                cr_expect_eq(engine_stats(world.engine).n_registrations, i < 2, "request %zu", i);
        }
        ask(&world, SET("k", "w", N(4)));
        cr_expect_str_eq(notified(&world), "");
}

/* The plugin sends KEYNOTIFY again, and then the end of its connection. */
Test(numbers, of_keynotify_register_again) {
        const struct event closed = { .type = EVENT_CONNECTION_CLOSED, .connection = 1 };

        ask(&world, WATCH("c", "k", N(1), .connection = 1));
        happen(&world, closed);
        cr_expect(is_repeated(WATCH("c", "k", N(1), .connection = 1), OUTCOME_DONE));
        cr_expect_not(world.replies[0].is_of_earlier_batch, "the registration is of this one");
        cr_expect_eq(world.effects.n_changes, 1);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 1);
        happen(&world, closed);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 0);
}

/* KEYNOTIFY was executed. The new error tells the client that it is not registered any more. */
Test(numbers, of_keynotify_get_the_new_reply_if_it_is_an_error) {
        struct engine_config config = world_config();

        config.limits.max_registrations = 1;
        engine_set_limits(world.engine, config.limits);
        ask(&world, WATCH("d", "k", N(1), .connection = 2));
        cr_expect_not(is_repeated(WATCH("c", "k", N(2), .connection = 1), OUTCOME_QUOTA_EXCEEDED));
        happen(&world, (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 2 });
        cr_expect_not(is_repeated(WATCH("c", "k", N(2), .connection = 1), OUTCOME_DONE));
        cr_expect(is_repeated(WATCH("c", "k", N(2), .connection = 1), OUTCOME_DONE));
        cr_expect_not(is_repeated(WATCH("d", "k", N(1), .connection = 2), OUTCOME_QUOTA_EXCEEDED));
}
