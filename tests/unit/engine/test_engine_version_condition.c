/* SPDX-License-Identifier: Apache-2.0 */

/* A change under the condition that the key has a version: only clients inside the process send it. */

#include "unit/engine/world.h"
#include "unit/support/table.h"

#define ABSENT         .version_condition = VERSION_NONE
#define EXPECTED(ms)   .version_condition = VERSION_EXPECTED, .expected_version = { ms, 0 }
#define STORED_VERSION 7000

static struct world world;

static const struct {
        const char *name;
        struct request request;
        enum outcome outcome;
} conditions[] = {
        /* the key "k" has the value "v" and STORED_VERSION; the key "f" has a fencing token, too */
        { "SET of its version", SET("k", "w", EXPECTED(STORED_VERSION)), OUTCOME_DONE },
        { "SET of another version", SET("k", "w", EXPECTED(STORED_VERSION + 1)), OUTCOME_VERSION_CHANGED },
        { "SET of no version", SET("k", "w", ABSENT), OUTCOME_VERSION_CHANGED },
        { "SET of a key that does not exist", SET("none", "w", ABSENT), OUTCOME_DONE },
        { "SET of a deleted key", SET("none", "w", EXPECTED(STORED_VERSION)), OUTCOME_VERSION_CHANGED },
        { "SET with NX", SET("k", "w", NX, EXPECTED(STORED_VERSION)), OUTCOME_CONDITION_NOT_MET },
        { "SET with NX, another version", SET("k", "w", NX, ABSENT), OUTCOME_VERSION_CHANGED },
        { "DEL of its version", DEL("k", EXPECTED(STORED_VERSION)), OUTCOME_DELETED },
        { "DEL of another version", DEL("k", EXPECTED(STORED_VERSION - 1)), OUTCOME_VERSION_CHANGED },
        { "DEL of no version", DEL("none", ABSENT), OUTCOME_NOTHING },
        { "DEL of a deleted key", DEL("none", EXPECTED(STORED_VERSION)), OUTCOME_VERSION_CHANGED },
        { "VDEL of its version", VDEL("k", "v", EXPECTED(STORED_VERSION)), OUTCOME_DELETED },
        { "VDEL, another value", VDEL("k", "w", EXPECTED(STORED_VERSION)), OUTCOME_CONDITION_NOT_MET },
        { "VDEL of another version", VDEL("k", "v", EXPECTED(1)), OUTCOME_VERSION_CHANGED },
        { "the fencing token comes first", SET("f", "w", EXPECTED(1)), OUTCOME_FENCE_REQUIRED },
        { "an expired key does not exist", SET("x", "w", ABSENT), OUTCOME_DONE },
};

Test(version_condition, is_checked_in_the_step_of_the_change) {
        for (size_t i = 0; i < N_ROWS(conditions); i++) {
                struct request request = conditions[i].request;
                struct version stored;

                world_init(&world, world_config());
                ask(&world, SET("f", "v", FENCE(50, 5, "m")));
                ask(&world, SET("x", "v", .has_px = true, .px_ms = 1));
                stored = ask(&world, SET("k", "v"))->result.version;
                pass_ms(&world, 10);
                request.expected_version.wall_ms += stored.wall_ms - STORED_VERSION;
                request.expected_version.counter = stored.counter;
                cr_expect_eq(ask(&world, request)->result.outcome, conditions[i].outcome,
                             ROW(conditions, i));
                cr_expect_eq(
                        has(&world, S("k"), S("v")),
                        conditions[i].outcome != OUTCOME_DELETED &&
                                !(conditions[i].outcome == OUTCOME_DONE && slice_equal(request.key, S("k"))),
                        ROW(conditions, i));
                world_deinit(&world);
        }
}

Test(version_condition, differs_in_the_counter) {
        struct request request = SET("k", "w", EXPECTED(0));

        world_init(&world, world_config());
        request.expected_version = ask(&world, SET("k", "v"))->result.version;
        request.expected_version.counter++;
        cr_expect(asked(&world, request, OUTCOME_VERSION_CHANGED));
        request.expected_version.counter--;
        cr_expect(asked(&world, request, OUTCOME_DONE));
        world_deinit(&world);
}

/* Otherwise the second of two people would be told that his change is made. */
Test(version_condition, is_checked_again_for_an_equal_request) {
        struct request request =
                SET("k", "w", ABSENT, TS(1000, 0, "console"), .is_inner = true, .client = S("console/alice"),
                    .correlation_data = S("0123456789abcdef"));

        world_init(&world, world_config());
        cr_expect(asked(&world, request, OUTCOME_DONE));
        cr_expect(asked(&world, request, OUTCOME_VERSION_CHANGED));
        world_deinit(&world);
}
