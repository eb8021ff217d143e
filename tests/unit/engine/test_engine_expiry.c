/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Commands": PX, and expired keys. */

#include <stdio.h>

#include "base/array.h"
#include "unit/engine/world.h"
#include "unit/support/table.h"

static struct world world;

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(expiry, .init = setup, .fini = teardown);

static const int64_t lifetimes_ms[] = { 1, 2, 999, 1000, 10000, 86400000, INT64_C(3155760000000) };

Test(expiry, happens_at_the_exact_nanosecond) {
        for (size_t i = 0; i < ARRAY_LENGTH(lifetimes_ms); i++) {
                int64_t px_ms = lifetimes_ms[i];

                ask(&world, SET("k", "v", PX(px_ms)));
                cr_expect_eq(engine_next_deadline(world.engine), world.now.mono_ns + px_ms * 1000000);
                pass_ns(&world, px_ms * 1000000 - 1);
                tick(&world);
                cr_expect(has(&world, S("k"), S("v")), "%ld ms", px_ms);
                pass_ns(&world, 1);
                cr_expect(has_none(&world, S("k")), "%ld ms", px_ms);
        }
}

/* PROTOCOL.md "Details of a key": rounded up, so never 0 for a key that expires. */
Test(expiry, is_in_the_details_of_a_get) {
        ask(&world, SET("k", "v", PX(3000)));
        ask(&world, SET("endless", "v"));

        cr_expect_eq(ask(&world, GET("k", .wants_details = true))->expires_in_ms, 3000);
        pass_ns(&world, 1);
        cr_expect_eq(ask(&world, GET("k", .wants_details = true))->expires_in_ms, 3000);
        pass_ns(&world, 999999);
        cr_expect_eq(ask(&world, GET("k", .wants_details = true))->expires_in_ms, 2999);
        pass_ns(&world, INT64_C(2999000000) - 1);
        cr_expect_eq(ask(&world, GET("k", .wants_details = true))->expires_in_ms, 1);
        cr_expect_not(ask(&world, GET("k"))->has_details);
        pass_ns(&world, 1);
        cr_expect_not(ask(&world, GET("k", .wants_details = true))->has_details);

        cr_expect(ask(&world, GET("endless", .wants_details = true))->has_details);
        cr_expect_eq(ask(&world, GET("endless", .wants_details = true))->expires_in_ms, 0);
}

static const struct {
        const char *name;
        int64_t px_ms;
} endless[] = {
        { "the largest there is", INT64_MAX },
        { "past the range in nanoseconds", INT64_MAX / 1000000 + 1 },
        { "past the range when added to the present time", INT64_MAX / 1000000 },
};

Test(expiry, never_happens_beyond_the_clock_range) {
        world.now.mono_ns = 1000000000;
        for (size_t i = 0; i < N_ROWS(endless); i++) {
                cr_expect(asked(&world, SET("k", "v", PX(endless[i].px_ms)), OUTCOME_DONE), ROW(endless, i));
                cr_expect_eq(engine_next_deadline(world.engine), INT64_MAX, ROW(endless, i));
                tick(&world);
                cr_expect(has(&world, S("k"), S("v")), ROW(endless, i));
        }
        world.now.mono_ns = INT64_MAX - 1; /* the last possible time */
        tick(&world);
        cr_expect(has(&world, S("k"), S("v")));
}

static const struct {
        const char *name;
        struct request request;
        enum outcome outcome; /* as if the key did not exist */
        const char *notified, *notified_by_tick;
} commands[] = {
        { "GET", GET("k"), OUTCOME_NO_VALUE, "", "c:k gone " },
        { "DEL", DEL("k"), OUTCOME_NOTHING, "c:k gone ", "" },
        { "DEL, with the token that it had", DEL("k", FENCE(9, 0, "c")), OUTCOME_NOTHING, "c:k gone ", "" },
        { "VDEL", VDEL("k", "v"), OUTCOME_NOTHING, "c:k gone ", "" },
        { "VDEL, another value", VDEL("k", "w"), OUTCOME_NOTHING, "c:k gone ", "" },
        { "SET", SET("k", "w"), OUTCOME_DONE, "c:k gone c:k=w ", "" },
        { "SET with NX", SET("k", "w", NX), OUTCOME_DONE, "c:k gone c:k=w ", "" },
        { "SET with NEX", SET("k", "w", NEX("other")), OUTCOME_DONE, "c:k gone c:k=w ", "" },
        { "SET with an older token", SET("k", "w", FENCE(1, 0, "c")), OUTCOME_DONE, "c:k gone c:k=w ", "" },
};

Test(expiry, applies_to_every_command_before_a_tick) {
        for (size_t i = 0; i < N_ROWS(commands); i++) {
                const struct reply *reply;

                world_deinit(&world);
                world_init(&world, world_config());
                ask(&world, WATCH("c", "k"));
                ask(&world, SET("k", "v", PX(10), FENCE(9, 0, "c")));
                pass_ms(&world, 10);

                reply = ask(&world, commands[i].request);
                cr_expect_eq(reply->result.outcome, commands[i].outcome, ROW(commands, i));
                cr_expect_eq(reply->result.has_version, commands[i].outcome == OUTCOME_DONE,
                             ROW(commands, i));
                cr_expect_str_eq(notified(&world), commands[i].notified, ROW(commands, i));
                tick(&world);
                cr_expect_str_eq(notified(&world), commands[i].notified_by_tick, ROW(commands, i));
        }
}

Test(expiry, applies_to_scan_before_a_tick) {
        ask(&world, SET("k", "v", PX(10)));
        cr_assert_eq(ask(&world, SCAN("*"))->result.outcome, OUTCOME_PAGE);
        cr_expect_eq(world.replies[0].page->n_entries, 1);
        pass_ms(&world, 10);
        ask(&world, SCAN("*"));
        cr_expect_eq(world.replies[0].page->n_entries, 0);
}

Test(expiry, is_cleared_by_a_set_without_px) {
        ask(&world, SET("k", "v", PX(10)));
        ask(&world, SET("k", "v"));
        cr_expect_eq(engine_next_deadline(world.engine), INT64_MAX);
        pass_ms(&world, 1000000);
        tick(&world);
        cr_expect(has(&world, S("k"), S("v")));
}

Test(expiry, is_renewed_by_a_set_with_px) {
        ask(&world, SET("k", "v", PX(10)));
        pass_ms(&world, 9);
        cr_expect(asked(&world, SET("k", "v", NEX("v"), PX(10)), OUTCOME_DONE));
        pass_ms(&world, 9);
        tick(&world);
        cr_expect(has(&world, S("k"), S("v")));
        pass_ms(&world, 1);
        cr_expect(has_none(&world, S("k")));
}

Test(expiry, can_be_shortened) {
        ask(&world, SET("k", "v", PX(1000)));
        ask(&world, SET("k", "v", PX(10)));
        pass_ms(&world, 10);
        cr_expect(has_none(&world, S("k")));
}

Test(expiry, ignores_steps_of_the_system_clock) {
        ask(&world, SET("early", "v", PX(1000)));
        world.now.wall_ms += 86400000;
        tick(&world);
        cr_expect(has(&world, S("early"), S("v")));

        world.now.wall_ms -= 2 * 86400000;
        pass_ms(&world, 1000);
        tick(&world);
        cr_expect(has_none(&world, S("early")));
}

static void set_many(int n, int64_t px_ms) {
        char key[16];

        for (int i = 0; i < n; i++) {
                struct request request = SET("", "v", PX(px_ms));

                snprintf(key, sizeof(key), "key-%d", i);
                request.key = slice_from_string(key);
                cr_assert(asked(&world, request, OUTCOME_DONE));
        }
}

Test(tick, expires_a_limited_number_of_keys, .init = setup, .fini = teardown) {
        set_many(2 * ENGINE_STEP_CHANGES_MAX + 1, 10);
        pass_ms(&world, 10);
        tick(&world);
        cr_expect_eq(world.effects.n_changes, ENGINE_STEP_CHANGES_MAX);
        cr_expect_eq(engine_stats(world.engine).n_keys, ENGINE_STEP_CHANGES_MAX + 1);
        cr_expect_leq(engine_next_deadline(world.engine), world.now.mono_ns);
        tick(&world);
        cr_expect_eq(engine_stats(world.engine).n_keys, 1);
        tick(&world);
        cr_expect_eq(engine_stats(world.engine).n_keys, 0);
        cr_expect_eq(engine_next_deadline(world.engine), INT64_MAX);
}

#define LONG_KEY_BYTES 30000

/* Set watched keys whose notifications exceed the bytes of a step. */
static void set_long_watched(int n, int64_t px_ms) {
        static uint8_t key[LONG_KEY_BYTES];
        struct request watch = WATCH("c", ""), set = SET("", "v", PX(px_ms));

        watch.key = set.key = (struct slice){ key, sizeof(key) };
        for (key[0] = 1; key[0] <= n; key[0]++) {
                cr_assert(asked(&world, watch, OUTCOME_DONE));
                cr_assert(asked(&world, set, OUTCOME_DONE));
        }
}

Test(tick, expires_long_keys_in_steps_of_limited_bytes, .init = setup, .fini = teardown) {
        size_t n_bytes_of_one, n_steps = 0;

        set_long_watched(1, 10);
        pass_ms(&world, 10);
        tick(&world);
        n_bytes_of_one = world.effects.n_bytes;

        set_long_watched(20, 10);
        pass_ms(&world, 10);
        while (engine_next_deadline(world.engine) <= world.now.mono_ns) {
                tick(&world);
                n_steps++;
                cr_expect_gt(world.effects.n_changes, 0);
                cr_expect_lt(world.effects.n_bytes, ENGINE_STEP_BYTES_MAX + n_bytes_of_one);
        }
        cr_expect_gt(n_steps, 1);
        cr_expect_eq(engine_stats(world.engine).n_keys, 0);
}

/* The bytes of the batch before a step do not count. */
Test(tick, expires_a_long_key_in_a_large_batch, .init = setup, .fini = teardown) {
        static uint8_t value[ENGINE_STEP_BYTES_MAX];
        struct request large = SET("large", "");

        large.value = (struct slice){ value, sizeof(value) };
        set_long_watched(1, 10);
        pass_ms(&world, 10);
        begin_batch(&world);
        ask_in_batch(&world, large);
        happen_in_batch(&world, (struct event){ .type = EVENT_TICK });
        cr_expect_eq(engine_stats(world.engine).n_keys, 1);
}

Test(tick, request_removes_a_long_key_in_a_large_batch, .init = setup, .fini = teardown) {
        static uint8_t value[ENGINE_STEP_BYTES_MAX];
        struct request large = SET("large", ""), small = SET("small", "v");
        struct engine_limits limits = world_config().limits;

        set_long_watched(1, 10);
        pass_ms(&world, 10);
        begin_batch(&world);
        large.value = (struct slice){ value, sizeof(value) };
        ask_in_batch(&world, large);
        limits.max_bytes = engine_stats(world.engine).n_bytes;
        engine_set_limits(world.engine, limits);
        ask_in_batch(&world, small);
        cr_expect_eq(world.replies[world.n_replies - 1].result.outcome, OUTCOME_DONE);
        cr_expect_eq(engine_stats(world.engine).n_keys, 2);
}

/* A request removes expired keys to make room. */
Test(tick, request_removes_long_keys_in_steps_of_limited_bytes, .init = setup, .fini = teardown) {
        static uint8_t value[20 * LONG_KEY_BYTES];
        struct request large = SET("large", "");
        struct engine_limits limits = world_config().limits;

        set_long_watched(20, 10);
        limits.max_bytes = engine_stats(world.engine).n_bytes;
        engine_set_limits(world.engine, limits);
        large.value = (struct slice){ value, sizeof(value) };
        pass_ms(&world, 10);
        cr_expect(asked(&world, large, OUTCOME_QUOTA_EXCEEDED));
        cr_expect_gt(world.effects.n_changes, 0);
        cr_expect_lt(world.effects.n_changes, 20);
}

Test(tick, notifies_in_the_order_of_deadlines, .init = setup, .fini = teardown) {
        ask(&world, WATCH("c", "a"));
        ask(&world, WATCH("c", "b"));
        ask(&world, WATCH("c", "d"));
        ask(&world, SET("a", "v", PX(30)));
        ask(&world, SET("b", "v", PX(10)));
        ask(&world, SET("d", "v", PX(20)));
        pass_ms(&world, 29);
        tick(&world);
        cr_expect_str_eq(notified(&world), "c:b gone c:d gone ");
        pass_ms(&world, 1);
        tick(&world);
        cr_expect_str_eq(notified(&world), "c:a gone ");
}

Test(tick, does_nothing_if_no_deadline_has_passed, .init = setup, .fini = teardown) {
        tick(&world);
        ask(&world, SET("k", "v", PX(10)));
        tick(&world);
        cr_expect_eq(world.effects.n_notifications, 0);
        cr_expect(has(&world, S("k"), S("v")));
}
