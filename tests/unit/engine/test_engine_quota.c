/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Errors", check 14: keys, bytes and registrations have their limits. */

#include <stdio.h>

#include "unit/engine/world.h"
#include "unit/support/entries.h"
#include "unit/support/table.h"

static struct world world;

static void init_keys(uint64_t max_keys) {
        struct engine_config config = world_config();

        config.limits.max_keys = max_keys;
        world_init(&world, config);
}

static void limit_bytes(struct engine *engine, uint64_t max_bytes) {
        struct engine_limits limits = engine_config(engine)->limits;

        limits.max_bytes = max_bytes;
        engine_set_limits(engine, limits);
}

static void init_bytes(uint64_t max_bytes) {
        struct engine_config config = world_config();

        config.limits.max_bytes = max_bytes;
        world_init(&world, config);
}

Test(quota, of_keys_applies_only_to_new_keys) {
        init_keys(2);
        cr_expect(asked(&world, SET("a", "v"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("b", "v"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("c", "v"), OUTCOME_QUOTA_EXCEEDED));
        cr_expect_not(world.replies[0].result.has_version);
        cr_expect(has_none(&world, S("c")));
        cr_expect(asked(&world, SET("a", "a longer value than before"), OUTCOME_DONE));
        ask(&world, DEL("b"));
        cr_expect(asked(&world, SET("c", "v"), OUTCOME_DONE));
        world_deinit(&world);
}

Test(quota, of_0_keys_rejects_every_key) {
        init_keys(0);
        cr_expect(asked(&world, SET("a", "v"), OUTCOME_QUOTA_EXCEEDED));
        cr_expect(asked(&world, GET("a"), OUTCOME_NO_VALUE));
        cr_expect(asked(&world, WATCH("c", "a"), OUTCOME_DONE));
        world_deinit(&world);
}

Test(quota, of_bytes_is_exact) {
        uint64_t cost = entry_cost(1, 10, NULL);

        init_bytes(cost);
        cr_expect(asked(&world, SET("a", "0123456789"), OUTCOME_DONE));
        world_deinit(&world);

        init_bytes(cost - 1);
        cr_expect(asked(&world, SET("a", "0123456789"), OUTCOME_QUOTA_EXCEEDED));
        cr_expect_eq(engine_stats(world.engine).n_bytes, 0);
        cr_expect(asked(&world, SET("a", "012345678"), OUTCOME_DONE));
        world_deinit(&world);
}

Test(quota, of_bytes_allows_changes_without_growth) {
        init_bytes(entry_cost(1, 5, NULL));
        ask(&world, SET("a", "12345"));
        cr_expect(asked(&world, SET("a", "54321"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("a", "123456"), OUTCOME_QUOTA_EXCEEDED));
        cr_expect(has(&world, S("a"), S("54321")));
        cr_expect(asked(&world, SET("a", "1"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("a", "12345"), OUTCOME_DONE));
        world_deinit(&world);
}

/* Data stored under a higher limit may exceed this one. It can still be reduced. */
Test(quota, of_bytes_allows_a_store_over_it_to_shrink) {
        init_bytes(1 << 20);
        ask(&world, SET("a", "0123456789"));
        limit_bytes(world.engine, 1);
        cr_expect(asked(&world, SET("a", "01234567"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("a", "012345678"), OUTCOME_QUOTA_EXCEEDED));
        cr_expect(asked(&world, DEL("a"), OUTCOME_DELETED));
        world_deinit(&world);
}

Test(quota, of_bytes_counts_fencing_tokens) {
        struct hlc fence = { 50, 0, S("m") };

        init_bytes(entry_cost(1, 1, &fence) - 1);
        cr_expect(asked(&world, SET("a", "v", FENCE(50, 0, "m")), OUTCOME_QUOTA_EXCEEDED));
        cr_expect(asked(&world, SET("a", "v"), OUTCOME_DONE));
        world_deinit(&world);
}

Test(quota, of_bytes_counts_registrations) {
        uint64_t cost = registration_cost(S("c"), S("k"), S(""));

        init_bytes(cost + entry_cost(1, 1, NULL));
        cr_expect(asked(&world, WATCH("c", "k"), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("c", "l"), OUTCOME_QUOTA_EXCEEDED));
        cr_expect(asked(&world, WATCH("c", "k"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("a", "v"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("b", "v"), OUTCOME_QUOTA_EXCEEDED));
        ask(&world, UNWATCH("c", "k"));
        cr_expect(asked(&world, SET("b", "v"), OUTCOME_DONE));
        world_deinit(&world);
}

Test(quota, of_registrations_applies_only_to_new_ones) {
        struct engine_config config = world_config();

        config.limits.max_registrations = 2;
        world_init(&world, config);
        cr_expect(asked(&world, WATCH("c", "a"), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("d", "a"), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("c", "b"), OUTCOME_QUOTA_EXCEEDED));
        cr_expect_not(world.replies[0].result.has_version);
        cr_expect(asked(&world, WATCH("c", "a"), OUTCOME_DONE));
        ask(&world, UNWATCH("d", "a"));
        cr_expect(asked(&world, WATCH("c", "b"), OUTCOME_DONE));
        world_deinit(&world);
}

/*
 * With the plugin a recipient takes 10 bytes; else also the bytes of the client id. A key of which the
 * client is registered already has room for its repeated KEYNOTIFY.
 */
Test(quota, of_the_recipients_of_a_key_limits_all_clients_together) {
        const unsigned n_max = ENGINE_RECIPIENTS_BYTES_MAX / 10;
        static uint8_t long_id[30000];
        struct engine_config config = world_config();
        struct request request = WATCH("c", "k");
        char client[16];

        config.limits.max_registrations = 100000;
        world_init(&world, config);
        for (unsigned i = 0; i < n_max; i++) {
                snprintf(client, sizeof(client), "c%u", i);
                request.client = slice_from_string(client);
                request.connection = 1 + i;
                cr_assert(asked(&world, request, OUTCOME_DONE), "%u", i);
        }
        cr_expect(asked(&world, request, OUTCOME_DONE));
        request.client = S("another");
        request.connection = 1 + n_max;
        cr_expect(asked(&world, request, OUTCOME_QUOTA_EXCEEDED));
        cr_expect(asked(&world, WATCH("another", "k2", .connection = 1 + n_max), OUTCOME_DONE));
        happen(&world, (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 1 });
        cr_expect(asked(&world, request, OUTCOME_DONE));
        world_deinit(&world);

        memset(long_id, 'x', sizeof(long_id));
        world_init(&world, config);
        for (unsigned i = 0; i < 5; i++) {
                long_id[0] = (uint8_t)i;
                request = WATCH("", "k");
                request.client = (struct slice){ long_id, sizeof(long_id) };
                cr_expect(asked(&world, request, i < 4 ? OUTCOME_DONE : OUTCOME_QUOTA_EXCEEDED), "%u", i);
        }
        world_deinit(&world);
}

static struct request watch_number(const char *client, unsigned n, char key[static 16]) {
        struct request request = WATCH("", "");

        snprintf(key, 16, "k%u", n);
        request.client = slice_from_string(client);
        request.key = slice_from_string(key);
        return request;
}

static const struct {
        const char *name;
        uint64_t max_registrations, max_of_client;
} shares[] = {
        { "a small limit has no shares", 200, 200 }, { "the smallest share", 1024, 256 },
        { "still the smallest share", 1027, 256 },   { "a quarter", 1028, 257 },
        { "a quarter of many", 4000, 1000 },
};

Test(quota, of_registrations_limits_one_client_to_a_share) {
        for (size_t i = 0; i < N_ROWS(shares); i++) {
                struct engine_config config = world_config();
                unsigned n = (unsigned)shares[i].max_of_client;
                char key[16];

                config.limits.max_registrations = shares[i].max_registrations;
                world_init(&world, config);
                for (unsigned j = 0; j < n; j++)
                        cr_assert(asked(&world, watch_number("greedy", j, key), OUTCOME_DONE), "%s: %u",
                                  shares[i].name, j);
                cr_expect(asked(&world, watch_number("greedy", n, key), OUTCOME_QUOTA_EXCEEDED),
                          ROW(shares, i));
                cr_expect(asked(&world, watch_number("greedy", 0, key), OUTCOME_DONE), ROW(shares, i));
                cr_expect_eq(ask(&world, watch_number("other", 0, key))->result.outcome == OUTCOME_DONE,
                             shares[i].max_of_client < shares[i].max_registrations, ROW(shares, i));

                ask(&world, UNWATCH("greedy", "k1"));
                cr_expect(asked(&world, watch_number("greedy", n, key), OUTCOME_DONE), ROW(shares, i));
                cr_expect_eq(engine_client_usage(world.engine, S("greedy")).n_registrations, n,
                             ROW(shares, i));
                happen(&world, (struct event){ .type = EVENT_CLIENT_DISCONNECTED, .client = S("greedy") });
                cr_expect_eq(engine_client_usage(world.engine, S("greedy")).n_registrations, 0,
                             ROW(shares, i));
                cr_expect(asked(&world, watch_number("greedy", n, key), OUTCOME_DONE), ROW(shares, i));
                world_deinit(&world);
        }
}

/* With a key of this length, 100 registrations exceed the minimum of the share. */
#define LONG_KEY_LENGTH 6000

Test(quota, of_bytes_limits_the_registrations_of_one_client_to_a_share) {
        static uint8_t name[LONG_KEY_LENGTH];
        struct engine_config config = world_config();
        struct request request = WATCH("greedy", "");
        uint64_t n_bytes;
        unsigned n = 0;

        memset(name, 'k', sizeof(name));
        request.key = (struct slice){ name, sizeof(name) };
        config.limits.max_bytes = 8 * ENGINE_CLIENT_BYTES_MIN;
        world_init(&world, config);
        do
                name[0] = (uint8_t)n++;
        while (ask(&world, request)->result.outcome == OUTCOME_DONE);

        n_bytes = engine_client_usage(world.engine, S("greedy")).n_bytes;
        cr_expect_leq(n_bytes, 2 * ENGINE_CLIENT_BYTES_MIN);
        cr_expect_gt(n_bytes, 2 * ENGINE_CLIENT_BYTES_MIN - 5 * LONG_KEY_LENGTH);
        cr_expect(asked(&world, WATCH("other", "key"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("key", "v"), OUTCOME_DONE));

        happen(&world, (struct event){ .type = EVENT_CLIENT_DISCONNECTED, .client = S("greedy") });
        tick(&world);
        cr_expect_eq(engine_client_usage(world.engine, S("greedy")).n_bytes, 0);
        cr_expect(asked(&world, request, OUTCOME_DONE));
        world_deinit(&world);
}

Test(quota, removes_expired_keys_first) {
        init_keys(2);
        ask(&world, WATCH("c", "a"));
        ask(&world, SET("a", "v", PX(10)));
        ask(&world, SET("b", "v"));
        cr_expect(asked(&world, SET("d", "v"), OUTCOME_QUOTA_EXCEEDED));
        pass_ms(&world, 10);
        cr_expect(asked(&world, SET("d", "v"), OUTCOME_DONE));
        cr_expect_str_eq(notified(&world), "c:a gone ");
        tick(&world);
        cr_expect_str_eq(notified(&world), "");
        world_deinit(&world);
}

Test(quota, removes_expired_keys_for_registrations) {
        init_bytes(entry_cost(1, 1000, NULL));
        cr_expect(asked(&world, SET("a", "v", PX(10)), OUTCOME_DONE));
        limit_bytes(world.engine, registration_cost(S("c"), S("k"), S("")));
        cr_expect(asked(&world, WATCH("c", "k"), OUTCOME_QUOTA_EXCEEDED));
        pass_ms(&world, 10);
        cr_expect(asked(&world, WATCH("c", "k"), OUTCOME_DONE));
        world_deinit(&world);
}

/* Set more keys than a step removes, which expire after 10 ms. */
static void set_many(void) {
        char key[16];

        for (int i = 0; i < 3 * ENGINE_STEP_CHANGES_MAX; i++) {
                struct request request = SET("", "v", PX(10));

                snprintf(key, sizeof(key), "k%d", i);
                request.key = slice_from_string(key);
                cr_assert(asked(&world, request, OUTCOME_DONE));
        }
}

/* The value needs the room of more expired keys than a step may remove. */
Test(quota, removes_expired_keys_in_bounded_steps) {
        static uint8_t value[1 << 18];
        struct request request = SET("large", "");

        world_init(&world, world_config());
        set_many();
        limit_bytes(world.engine, engine_stats(world.engine).n_bytes);
        request.value = (struct slice){ value, 2 * ENGINE_STEP_CHANGES_MAX * entry_cost(1, 1, NULL) };
        cr_assert_lt(request.value.length, sizeof(value));
        cr_expect(asked(&world, SET("a", "v"), OUTCOME_QUOTA_EXCEEDED));
        pass_ms(&world, 10);
        cr_expect(asked(&world, SET("a", "v"), OUTCOME_DONE));
        cr_expect(asked(&world, request, OUTCOME_QUOTA_EXCEEDED));
        cr_expect_leq(world.effects.n_changes, ENGINE_STEP_CHANGES_MAX);
        cr_expect_leq(engine_next_deadline(world.engine), world.now.mono_ns);
        cr_expect(asked(&world, request, OUTCOME_QUOTA_EXCEEDED));
        cr_expect_leq(world.effects.n_changes, ENGINE_STEP_CHANGES_MAX);
        cr_expect(asked(&world, request, OUTCOME_DONE));
        world_deinit(&world);
}

Test(quota, removes_registrations_of_disconnected_clients_first) {
        struct engine_config config = world_config();
        unsigned n_left;
        char key[16];

        config.limits.max_registrations = 3 * ENGINE_STEP_CHANGES_MAX;
        world_init(&world, config);
        for (unsigned i = 0; i < 3 * ENGINE_STEP_CHANGES_MAX; i++)
                cr_assert(asked(&world, watch_number("c", i, key), OUTCOME_DONE));
        happen(&world, (struct event){ .type = EVENT_CLIENT_DISCONNECTED, .client = S("c") });
        n_left = (unsigned)engine_stats(world.engine).n_registrations;
        cr_expect_eq(n_left, 2 * ENGINE_STEP_CHANGES_MAX);
        for (unsigned i = n_left; i < 3 * ENGINE_STEP_CHANGES_MAX; i++)
                cr_assert(asked(&world, watch_number("d", i, key), OUTCOME_DONE));
        cr_expect(asked(&world, watch_number("d", 0, key), OUTCOME_DONE));
        cr_expect_leq(world.effects.n_changes, ENGINE_STEP_CHANGES_MAX);

        limit_bytes(world.engine, engine_stats(world.engine).n_bytes);
        cr_expect(asked(&world, SET("a", "v"), OUTCOME_DONE));
        cr_expect_gt(world.effects.n_changes, 1);
        world_deinit(&world);
}

Test(quota, is_checked_after_the_condition_and_the_fence) {
        init_keys(1);
        ask(&world, SET("a", "v", FENCE(50, 0, "m")));
        limit_bytes(world.engine, 1);
        cr_expect(asked(&world, SET("a", "a longer value"), OUTCOME_FENCE_REQUIRED));
        cr_expect(asked(&world, SET("a", "a longer value", FENCE(1, 0, "m")), OUTCOME_FENCE_TOO_OLD));
        cr_expect(
                asked(&world, SET("a", "a longer value", NX, FENCE(50, 0, "m")), OUTCOME_CONDITION_NOT_MET));
        cr_expect(asked(&world, SET("a", "a longer value", FENCE(50, 0, "m")), OUTCOME_QUOTA_EXCEEDED));
        world_deinit(&world);
}

Test(quota, lowered_keeps_stored_keys) {
        struct engine_config config = world_config();

        world_init(&world, config);
        ask(&world, SET("a", "v"));
        ask(&world, SET("b", "v"));
        ask(&world, WATCH("c", "a"));
        config.limits.max_keys = 1;
        config.limits.max_registrations = 0;
        engine_set_limits(world.engine, config.limits);
        cr_expect(has(&world, S("a"), S("v")));
        cr_expect(has(&world, S("b"), S("v")));
        cr_expect(asked(&world, SET("d", "v"), OUTCOME_QUOTA_EXCEEDED));
        cr_expect(asked(&world, SET("a", "w"), OUTCOME_DONE));
        cr_expect_str_eq(notified(&world), "c:a=w ");
        cr_expect(asked(&world, WATCH("c", "b"), OUTCOME_QUOTA_EXCEEDED));

        config.limits.max_keys = 3;
        config.limits.max_bytes = 1;
        engine_set_limits(world.engine, config.limits);
        cr_expect(asked(&world, SET("d", "v"), OUTCOME_QUOTA_EXCEEDED));
        config.limits.max_bytes = 1 << 20;
        engine_set_limits(world.engine, config.limits);
        cr_expect(asked(&world, SET("d", "v"), OUTCOME_DONE));
        world_deinit(&world);
}

static const struct {
        const char *name;
        struct request request;
        enum outcome outcome;
} failures[] = {
        { "NX", SET("k", "w", NX, FENCE(60, 0, "m"), PX(5)), OUTCOME_CONDITION_NOT_MET },
        { "NEX", SET("k", "w", NEX("x"), FENCE(60, 0, "m")), OUTCOME_CONDITION_NOT_MET },
        { "VDEL", VDEL("k", "w", FENCE(60, 0, "m")), OUTCOME_CONDITION_NOT_MET },
        { "no fencing token", SET("k", "w"), OUTCOME_FENCE_REQUIRED },
        { "an older fencing token", DEL("k", FENCE(49, 0, "m")), OUTCOME_FENCE_TOO_OLD },
        { "a fencing token too far ahead", SET("k", "w", FENCE(INT64_MAX, 0, "m")), OUTCOME_FENCE_TOO_FAR },
        { "a timestamp too far ahead", SET("k", "w", FENCE(60, 0, "m"), TS(INT64_MAX, 0, "c")),
          OUTCOME_TIMESTAMP_TOO_FAR },
        { "too many keys", SET("new", "w"), OUTCOME_QUOTA_EXCEEDED },
        { "too many bytes", SET("k", "a longer value", FENCE(60, 0, "m")), OUTCOME_QUOTA_EXCEEDED },
        { "too many registrations", WATCH("other", "k"), OUTCOME_QUOTA_EXCEEDED },
        { "KEYNOTIFY without a client id", WATCH("", "k"), OUTCOME_CLIENT_UNKNOWN },
        { "SCAN with an invalid token", SCAN("*", .value = BYTES("token")), OUTCOME_SYNTAX_ERROR },
};

Test(failure, changes_nothing) {
        for (size_t i = 0; i < N_ROWS(failures); i++) {
                struct engine_limits limits;
                struct engine *engine;
                struct hlc fence;
                int64_t deadline_ns;
                int64_t version;

                world_init(&world, world_config());
                engine = world.engine;
                ask(&world, WATCH("c", "k"));
                version = version_number(
                        ask(&world, SET("k", "v", PX(1000), FENCE(50, 0, "m")))->result.version);
                deadline_ns = world.now.mono_ns + 1000 * INT64_C(1000000);
                limits = engine_config(engine)->limits;
                limits.max_keys = 1;
                limits.max_registrations = 1;
                limits.max_bytes = engine_stats(engine).n_bytes;
                engine_set_limits(engine, limits);
                pass_ms(&world, 5);

                cr_expect_eq(ask(&world, failures[i].request)->result.outcome, failures[i].outcome,
                             ROW(failures, i));
                cr_expect_eq(world.effects.n_notifications, 0, ROW(failures, i));
                cr_expect_eq(version_number(ask(&world, GET("k"))->result.version), version,
                             ROW(failures, i));
                cr_expect(has(&world, S("k"), S("v")), ROW(failures, i));
                cr_expect_eq(keyspace_deadline(engine_keyspace(engine), find_entry(engine, S("k"))),
                             deadline_ns, ROW(failures, i));
                cr_assert(entry_fence(find_entry(engine, S("k")), &fence), ROW(failures, i));
                cr_expect_eq(fence.wall_ms, 50, ROW(failures, i));
                cr_expect_eq(engine_stats(engine).n_keys, 1, ROW(failures, i));
                cr_expect_eq(engine_stats(engine).n_registrations, 1, ROW(failures, i));
                cr_expect_eq(engine_stats(engine).n_bytes, engine_config(engine)->limits.max_bytes,
                             ROW(failures, i));
                world_deinit(&world);
        }
}

/* The small keys expire first, so the steps remove only them. */
Test(quota, of_bytes_limits_expired_values_behind_expired_small_keys) {
        static const uint8_t value[100000];
        const uint64_t max_bytes = 2000000;
        bool is_refused = false;
        char key[16];

        init_bytes(max_bytes);
        for (int i = 0; i < 6000; i++) {
                struct request small = SET("", "", PX(1));

                snprintf(key, sizeof(key), "small-%d", i);
                small.key = slice_from_string(key);
                cr_assert(asked(&world, small, OUTCOME_DONE));
        }
        for (int i = 0; i < 90; i++) {
                struct request large = SET("", "", PX(1));

                pass_ms(&world, 2);
                snprintf(key, sizeof(key), "large-%d", i);
                large.key = slice_from_string(key);
                large.value = (struct slice){ value, sizeof(value) };
                is_refused |= asked(&world, large, OUTCOME_QUOTA_EXCEEDED);
        }
        cr_expect(is_refused);
        cr_expect_leq(engine_stats(world.engine).n_bytes, max_bytes * 5 / 4);
        world_deinit(&world);
}
