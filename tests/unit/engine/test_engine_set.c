/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Commands": SET, GET and their versions. */

#include "unit/engine/world.h"
#include "unit/support/table.h"

static struct world world;

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(set, .init = setup, .fini = teardown);

Test(set, stores_a_value_that_get_finds) {
        cr_expect(has_none(&world, S("k")));
        cr_expect(asked(&world, SET("k", "v"), OUTCOME_DONE));
        cr_expect(has(&world, S("k"), S("v")));
        cr_expect(asked(&world, SET("k", "w"), OUTCOME_DONE));
        cr_expect(has(&world, S("k"), S("w")));
        cr_expect(has_none(&world, S("K")));
}

Test(set, stores_an_empty_value_as_a_value) {
        const struct reply *reply;

        ask(&world, SET("k", ""));
        reply = ask(&world, GET("k"));
        cr_assert_eq(reply->result.outcome, OUTCOME_VALUE);
        cr_expect(slice_equal(entry_value(reply->entry), S("")));
        cr_expect(reply->result.has_version);
        cr_expect(asked(&world, SET("k", "v", NX), OUTCOME_CONDITION_NOT_MET));
        cr_expect(asked(&world, VDEL("k", ""), OUTCOME_DELETED));
}

Test(set, takes_keys_and_values_of_any_bytes) {
        ask(&world, SET("\0\r\n\xFF", "\r\n$-1\r\n\0"));
        cr_expect(has(&world, S("\0\r\n\xFF"), S("\r\n$-1\r\n\0")));
        cr_expect(has_none(&world, S("\0\r\n")));
}

Test(set, replies_with_the_version_that_get_returns) {
        struct version version;
        const struct reply *reply;

        reply = ask(&world, SET("k", "v"));
        cr_assert(reply->result.has_version);
        version = reply->result.version;
        pass_ms(&world, 100);
        reply = ask(&world, GET("k"));
        cr_assert(reply->result.has_version);
        cr_expect_eq(version_number(reply->result.version), version_number(version));
        cr_expect_not(ask(&world, GET("none"))->result.has_version);
}

Test(set, gives_the_version_of_the_protocols_example) {
        struct version version = ask(&world, SET("k", "v", TS(WORLD_WALL_MS, 0, "Client1")))->result.version;

        cr_expect_eq(version.wall_ms, WORLD_WALL_MS);
        cr_expect_eq(version.counter, 1);
}

Test(set, gives_versions_greater_than_the_request_and_all_before) {
        int64_t before = 0;

        for (int i = 0; i < 100; i++) {
                int64_t remote_ms = WORLD_WALL_MS + (i * 7919) % 30000;
                int64_t version =
                        version_number(ask(&world, SET("k", "v", TS(remote_ms, 3, "c")))->result.version);

                cr_expect_gt(version, remote_ms * 1000 + 3, "step %d", i);
                cr_expect_gt(version, before, "step %d", i);
                before = version;
                if (i == 50)
                        world.now.wall_ms -= 30000; /* the system clock steps back */
        }
}

Test(set, gives_greater_versions_after_the_system_clock_stepped_back_an_hour) {
        int64_t before = version_number(ask(&world, SET("k", "v"))->result.version);

        world.now.wall_ms -= 3600000;
        cr_expect_gt(version_number(ask(&world, SET("k", "w"))->result.version), before);
}

static const struct {
        const char *name;
        struct request request;
        enum outcome outcome;
        struct slice after; /* the key's value; data NULL: none */
} conditions[] = {
        /* the key "k" has the value "old"; "none" has none; "empty" is empty */
        { "always", SET("k", "new"), OUTCOME_DONE, S("new") },
        { "NX, there is a value", SET("k", "new", NX), OUTCOME_CONDITION_NOT_MET, S("old") },
        { "NX, the same value", SET("k", "old", NX), OUTCOME_CONDITION_NOT_MET, S("old") },
        { "NX, there is none", SET("none", "new", NX), OUTCOME_DONE, S("new") },
        { "NX, an empty value is one", SET("empty", "new", NX), OUTCOME_CONDITION_NOT_MET, S("") },
        { "NEX, equal", SET("k", "new", NEX("old")), OUTCOME_DONE, S("new") },
        { "NEX, equal to what it has", SET("k", "old", NEX("old")), OUTCOME_DONE, S("old") },
        { "NEX, another", SET("k", "new", NEX("new")), OUTCOME_CONDITION_NOT_MET, S("old") },
        { "NEX, the start of the value", SET("k", "new", NEX("ol")), OUTCOME_CONDITION_NOT_MET, S("old") },
        { "NEX, more than the value", SET("k", "new", NEX("older")), OUTCOME_CONDITION_NOT_MET, S("old") },
        { "NEX, case counts", SET("k", "new", NEX("OLD")), OUTCOME_CONDITION_NOT_MET, S("old") },
        { "NEX, a NUL more", SET("k", "new", NEX("old\0")), OUTCOME_CONDITION_NOT_MET, S("old") },
        { "NEX, nothing", SET("k", "new", NEX("")), OUTCOME_CONDITION_NOT_MET, S("old") },
        { "NEX, there is none", SET("none", "new", NEX("other")), OUTCOME_DONE, S("new") },
        { "NEX, empty and equal", SET("empty", "new", NEX("")), OUTCOME_DONE, S("new") },
        { "NEX, empty and another", SET("empty", "new", NEX("x")), OUTCOME_CONDITION_NOT_MET, S("") },
};

Test(set_conditions, change_nothing_if_not_met) {
        for (size_t i = 0; i < N_ROWS(conditions); i++) {
                struct request request = conditions[i].request;
                struct slice key = request.key;
                const struct reply *reply;
                int64_t stored;

                world_init(&world, world_config());
                ask(&world, SET("empty", ""));
                stored = version_number(ask(&world, SET("k", "old"))->result.version);
                if (slice_equal(key, S("empty")))
                        stored = version_number(ask(&world, GET("empty"))->result.version);

                reply = ask(&world, request);
                cr_expect_eq(reply->result.outcome, conditions[i].outcome, ROW(conditions, i));
                cr_assert(reply->result.has_version, ROW(conditions, i));
                if (conditions[i].outcome == OUTCOME_DONE)
                        cr_expect_gt(version_number(reply->result.version), stored, ROW(conditions, i));
                else
                        cr_expect_eq(version_number(reply->result.version), stored, ROW(conditions, i));
                cr_expect(has(&world, key, conditions[i].after), ROW(conditions, i));
                world_deinit(&world);
        }
}

Test(set, takes_a_key_again_after_it_was_deleted) {
        ask(&world, SET("k", "v"));
        ask(&world, DEL("k"));
        cr_expect(asked(&world, SET("k", "w", NX), OUTCOME_DONE));
        cr_expect(has(&world, S("k"), S("w")));
}

Test(set, keeps_the_value_of_a_reply_until_the_batch_ends) {
        struct request requests[] = { GET("k"), SET("k", "new"), GET("k"), DEL("k"), GET("k") };

        ask(&world, SET("k", "old"));
        begin_batch(&world);
        for (size_t i = 0; i < 5; i++)
                ask_in_batch(&world, requests[i]);
        cr_assert_eq(world.n_replies, 5);
        cr_expect(slice_equal(entry_value(world.replies[0].entry), S("old")));
        cr_expect(slice_equal(entry_value(world.replies[2].entry), S("new")));
        cr_expect_eq(world.replies[3].result.outcome, OUTCOME_DELETED);
        cr_expect_eq(world.replies[4].result.outcome, OUTCOME_NO_VALUE);
}
