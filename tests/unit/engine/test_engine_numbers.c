/* SPDX-License-Identifier: Apache-2.0 */

/* Requests in frames of the plugin: which are sent again, and which are executed again. */

#include "unit/engine/world.h"

#define N(run, n) .id = { (run), (n) }

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

        cr_expect_eq(reply->outcome, outcome);
        return reply->execution == EXECUTION_REPEATED;
}

/* Content does not tell: these requests have neither a timestamp nor long Correlation Data. */
Test(numbers, of_an_executed_request_get_its_reply) {
        const struct reply *reply;
        int64_t version;

        ask(&world, SET("k", "v"));
        reply = ask(&world, DEL("k", N(7, 1)));
        cr_expect_eq(reply->outcome, OUTCOME_DELETED);
        version = version_number(reply->version);
        ask(&world, SET("k", "later"));
        pass_ms(&world, 3600000);

        reply = ask(&world, DEL("k", N(7, 1)));
        cr_expect_eq(reply->outcome, OUTCOME_DELETED);
        cr_expect_eq(reply->execution, EXECUTION_REPEATED);
        cr_expect(reply->has_version);
        cr_expect_eq(version_number(reply->version), version);
        cr_expect_eq(world.effects.n_rows + world.effects.n_executions, 0);
        cr_expect(has(&world, S("k"), S("later")));
}

Test(numbers, of_the_next_request_or_of_another_broker_are_other_requests) {
        ask(&world, SET("k", "v", N(7, 1)));
        cr_expect_not(is_repeated(DEL("k", N(7, 2)), OUTCOME_DELETED));
        cr_expect_not(is_repeated(DEL("k", N(8, 1)), OUTCOME_NOTHING));
        cr_expect_not(is_repeated(DEL("k", N(8, 2)), OUTCOME_NOTHING));
        cr_expect_not(is_repeated(DEL("k"), OUTCOME_NOTHING));
        cr_expect(is_repeated(SET("k", "v", N(7, 1)), OUTCOME_DONE));
        cr_expect(is_repeated(DEL("k", N(8, 1)), OUTCOME_NOTHING));
        cr_expect(has_none(&world, S("k")));
}

/* A client that had no PUBACK sends the request again, and the plugin gives it another number. */
Test(numbers, of_a_request_with_equal_content_get_its_reply_too) {
        const struct request first = SET("k", "v", N(7, 1), TS(WORLD_WALL_MS, 0, "c"),
                                         .timestamp_text = BYTES("t"), .payload = BYTES("p"));
        struct request second = first;

        second.id.number = 2;
        ask(&world, first);
        ask(&world, SET("k", "later", N(7, 3)));
        cr_expect(is_repeated(second, OUTCOME_DONE));
        pass_ms(&world, 3600000);
        tick(&world);
        cr_expect(is_repeated(second, OUTCOME_DONE), "its number is known, the content no more");
        cr_expect(has(&world, S("k"), S("later")));
}

Test(numbers, of_reads_and_errors_are_executed_again) {
        ask(&world, SET("k", "v", FENCE(WORLD_WALL_MS, 0, "c")));
        cr_expect_not(is_repeated(DEL("k", N(7, 1)), OUTCOME_FENCE_REQUIRED));
        cr_expect_not(is_repeated(GET("k", N(7, 2)), OUTCOME_VALUE));
        cr_expect_eq(world.effects.n_executions, 0);
        ask(&world, DEL("k", FENCE(WORLD_WALL_MS, 0, "c")));
        ask(&world, SET("k", "w"));
        cr_expect_not(is_repeated(GET("k", N(7, 2)), OUTCOME_VALUE));
        cr_expect_not(is_repeated(DEL("k", N(7, 1)), OUTCOME_DELETED));
        cr_expect(is_repeated(DEL("k", N(7, 1)), OUTCOME_DELETED));
}

Test(numbers, of_a_failed_commit_are_executed_again) {
        ask(&world, SET("k", "v"));
        begin_batch(&world);
        ask_in_batch(&world, DEL("k", N(7, 1)));
        ask_in_batch(&world, DEL("k", N(7, 2)));
        cr_expect_eq(world.effects.n_executions, 2);
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);

        cr_expect(has(&world, S("k"), S("v")));
        cr_expect_not(is_repeated(DEL("k", N(7, 1)), OUTCOME_DELETED));
        cr_expect_not(is_repeated(DEL("k", N(7, 2)), OUTCOME_NOTHING));
}

/* The plugin sends them again in their order, so they end as before. */
Test(numbers, of_keynotify_are_executed_again) {
        ask(&world, WATCH("c", "k", N(7, 1), .connection = 1));
        ask(&world, SET("k", "v", N(7, 2)));
        ask(&world, UNWATCH("c", "k", N(7, 3), .connection = 1));

        cr_expect_not(is_repeated(WATCH("c", "k", N(7, 1), .connection = 1), OUTCOME_DONE));
        cr_expect(is_repeated(SET("k", "v", N(7, 2)), OUTCOME_DONE));
        cr_expect_str_eq(notified(&world), "", "the change was before the registration");
        cr_expect_not(is_repeated(UNWATCH("c", "k", N(7, 3), .connection = 1), OUTCOME_DONE));
        ask(&world, SET("k", "w", N(7, 4)));
        cr_expect_str_eq(notified(&world), "");
}
