/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Commands" and "Errors": fencing tokens, checks 9, 11 and 12. */

#include "unit/engine/world.h"
#include "unit/support/table.h"

#define MINUTE 60000

static struct world world;

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(fence, .init = setup, .fini = teardown);

static const struct {
        const char *name;
        struct request request;
        enum outcome outcome;
} fenced[] = {
        /* the key "k" has the value "v" and the token 50:5:m */
        { "SET without", SET("k", "w"), OUTCOME_FENCE_REQUIRED },
        { "DEL without", DEL("k"), OUTCOME_FENCE_REQUIRED },
        { "VDEL without", VDEL("k", "v"), OUTCOME_FENCE_REQUIRED },
        { "VDEL without, another value", VDEL("k", "w"), OUTCOME_FENCE_REQUIRED },
        { "SET with NX, without", SET("k", "w", NX), OUTCOME_FENCE_REQUIRED },
        { "SET with the same", SET("k", "w", FENCE(50, 5, "m")), OUTCOME_DONE },
        { "SET with a newer wall clock", SET("k", "w", FENCE(51, 0, "a")), OUTCOME_DONE },
        { "SET with a newer counter", SET("k", "w", FENCE(50, 6, "a")), OUTCOME_DONE },
        { "SET with a newer node", SET("k", "w", FENCE(50, 5, "n")), OUTCOME_DONE },
        { "SET with an older wall clock", SET("k", "w", FENCE(49, 9, "z")), OUTCOME_FENCE_TOO_OLD },
        { "SET with an older counter", SET("k", "w", FENCE(50, 4, "z")), OUTCOME_FENCE_TOO_OLD },
        { "SET with an older node", SET("k", "w", FENCE(50, 5, "l")), OUTCOME_FENCE_TOO_OLD },
        { "SET with NX and an older one", SET("k", "w", NX, FENCE(49, 0, "m")), OUTCOME_FENCE_TOO_OLD },
        { "SET with NX and the same", SET("k", "w", NX, FENCE(50, 5, "m")), OUTCOME_CONDITION_NOT_MET },
        { "DEL with the same", DEL("k", FENCE(50, 5, "m")), OUTCOME_DELETED },
        { "DEL with a newer one", DEL("k", FENCE(51, 0, "m")), OUTCOME_DELETED },
        { "DEL with an older one", DEL("k", FENCE(49, 0, "m")), OUTCOME_FENCE_TOO_OLD },
        { "VDEL with the same", VDEL("k", "v", FENCE(50, 5, "m")), OUTCOME_DELETED },
        { "VDEL with an older one", VDEL("k", "v", FENCE(49, 0, "m")), OUTCOME_FENCE_TOO_OLD },
        { "VDEL with an older one, another value", VDEL("k", "w", FENCE(49, 0, "m")),
          OUTCOME_FENCE_TOO_OLD },
        { "VDEL with the same, another value", VDEL("k", "w", FENCE(50, 5, "m")),
          OUTCOME_CONDITION_NOT_MET },
        { "GET needs none", GET("k"), OUTCOME_VALUE },
        { "KEYNOTIFY needs none", WATCH("c", "k"), OUTCOME_DONE },
};

Test(fence, accepts_the_same_or_a_newer_token) {
        for (size_t i = 0; i < N_ROWS(fenced); i++) {
                const struct reply *reply;

                world_deinit(&world);
                world_init(&world, world_config());
                ask(&world, SET("k", "v", FENCE(50, 5, "m")));
                reply = ask(&world, fenced[i].request);
                cr_expect_eq(reply->result.outcome, fenced[i].outcome, ROW(fenced, i));
                if (fenced[i].outcome == OUTCOME_FENCE_REQUIRED ||
                    fenced[i].outcome == OUTCOME_FENCE_TOO_OLD) {
                        cr_expect_not(reply->result.has_version, ROW(fenced, i));
                        cr_expect(has(&world, S("k"), S("v")), ROW(fenced, i));
                }
        }
}

Test(fence, is_raised_by_a_newer_token_and_never_lowered) {
        ask(&world, SET("k", "v", FENCE(50, 0, "m")));
        ask(&world, SET("k", "v", FENCE(60, 0, "m")));
        cr_expect(asked(&world, SET("k", "w", FENCE(50, 0, "m")), OUTCOME_FENCE_TOO_OLD));
        cr_expect(asked(&world, SET("k", "w", FENCE(60, 0, "m")), OUTCOME_DONE));
        cr_expect(asked(&world, DEL("k", FENCE(59, 0, "m")), OUTCOME_FENCE_TOO_OLD));
}

Test(fence, is_set_on_a_key_that_had_none) {
        ask(&world, SET("k", "v"));
        cr_expect(asked(&world, SET("k", "w", FENCE(50, 0, "m")), OUTCOME_DONE));
        cr_expect(asked(&world, SET("k", "x"), OUTCOME_FENCE_REQUIRED));
}

Test(fence, is_not_changed_by_a_request_that_fails) {
        ask(&world, SET("k", "v", FENCE(50, 0, "m")));
        cr_expect(asked(&world, SET("k", "w", NX, FENCE(60, 0, "m")), OUTCOME_CONDITION_NOT_MET));
        cr_expect(asked(&world, VDEL("k", "w", FENCE(60, 0, "m")), OUTCOME_CONDITION_NOT_MET));
        cr_expect(asked(&world, SET("k", "w", FENCE(55, 0, "m")), OUTCOME_DONE));
}

static const struct {
        const char *name;
        struct request end;
} ends[] = {
        { "DEL", DEL("k", FENCE(50, 0, "m")) },
        { "VDEL", VDEL("k", "v", FENCE(50, 0, "m")) },
        { "expiry", GET("k") },
};

Test(fence, is_removed_with_its_key) {
        for (size_t i = 0; i < N_ROWS(ends); i++) {
                world_deinit(&world);
                world_init(&world, world_config());
                ask(&world, SET("k", "v", PX(10), FENCE(50, 0, "m")));
                if (ends[i].end.verb == VERB_GET)
                        pass_ms(&world, 10);
                ask(&world, ends[i].end);
                cr_expect(asked(&world, SET("k", "w"), OUTCOME_DONE), ROW(ends, i));
                cr_expect(asked(&world, DEL("k"), OUTCOME_DELETED), ROW(ends, i));
        }
}

static const struct {
        const char *name;
        struct request request;
        enum outcome outcome;
} ahead[] = {
        { "a fence a minute ahead", SET("k", "v", FENCE(WORLD_WALL_MS + MINUTE, 0, "m")), OUTCOME_DONE },
        { "a fence over a minute ahead", SET("k", "v", FENCE(WORLD_WALL_MS + MINUTE + 1, 0, "m")),
          OUTCOME_FENCE_TOO_FAR },
        { "a fence at the end of time", DEL("k", FENCE(INT64_MAX, UINT64_MAX, "m")), OUTCOME_FENCE_TOO_FAR },
        { "a fence at the end of time, of a key that does not exist",
          VDEL("none", "v", FENCE(INT64_MAX, 0, "m")), OUTCOME_FENCE_TOO_FAR },
        { "a timestamp a minute ahead", SET("k", "v", TS(WORLD_WALL_MS + MINUTE, 0, "c")), OUTCOME_DONE },
        { "a timestamp over a minute ahead", SET("k", "v", TS(WORLD_WALL_MS + MINUTE + 1, 0, "c")),
          OUTCOME_TIMESTAMP_TOO_FAR },
        { "a timestamp over a minute ahead, of a GET", GET("k", TS(WORLD_WALL_MS + MINUTE + 1, 0, "c")),
          OUTCOME_TIMESTAMP_TOO_FAR },
        { "a timestamp over a minute ahead, of a KEYNOTIFY",
          WATCH("c", "k", TS(WORLD_WALL_MS + MINUTE + 1, 0, "c")), OUTCOME_TIMESTAMP_TOO_FAR },
        { "a timestamp over a minute ahead, of a SCAN", SCAN("*", TS(WORLD_WALL_MS + MINUTE + 1, 0, "c")),
          OUTCOME_TIMESTAMP_TOO_FAR },
        { "both over a minute ahead: the timestamp is checked first",
          SET("k", "v", TS(WORLD_WALL_MS + MINUTE + 1, 0, "c"), FENCE(WORLD_WALL_MS + MINUTE + 1, 0, "m")),
          OUTCOME_TIMESTAMP_TOO_FAR },
};

Test(skew, is_rejected_above_a_minute, .init = setup, .fini = teardown) {
        for (size_t i = 0; i < N_ROWS(ahead); i++) {
                world_deinit(&world);
                world_init(&world, world_config());
                cr_expect_eq(ask(&world, ahead[i].request)->result.outcome, ahead[i].outcome, ROW(ahead, i));
                if (ahead[i].outcome != OUTCOME_DONE) {
                        cr_expect_not(world.replies[0].result.has_version, ROW(ahead, i));
                        cr_expect(has_none(&world, S("k")), ROW(ahead, i));
                }
        }
}

Test(skew, does_not_advance_the_clock_when_rejected, .init = setup, .fini = teardown) {
        ask(&world, GET("k", TS(WORLD_WALL_MS + MINUTE + 1, 0, "c")));
        cr_expect_eq(ask(&world, SET("k", "v"))->result.version.wall_ms, WORLD_WALL_MS);
}

Test(skew, is_measured_against_the_wall_clock_only, .init = setup, .fini = teardown) {
        ask(&world,
            GET("k", TS(WORLD_WALL_MS + MINUTE, 0, "c"))); /* moves the store's clock a minute ahead */
        cr_expect(
                asked(&world, GET("k", TS(WORLD_WALL_MS + MINUTE + 1, 0, "c")), OUTCOME_TIMESTAMP_TOO_FAR));
}

/* The system clock steps back an hour: earlier tokens are an hour ahead. */
Test(skew, accepts_every_token_that_the_store_assigned, .init = setup, .fini = teardown) {
        struct request set = SET("k", "v", .has_fence = true);
        struct version given = ask(&world, SET("lock", "holder"))->result.version;

        world.now.wall_ms -= 3600000;
        set.fence = (struct hlc){ given.wall_ms, given.counter, S("StateStore") };
        cr_expect(asked(&world, set, OUTCOME_DONE));
        cr_expect(asked(&world, SET("k", "w", FENCE(WORLD_WALL_MS, 999, "StateStore")),
                        OUTCOME_FENCE_TOO_FAR));
}
