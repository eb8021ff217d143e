/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The engine with a policy: check 10 of PROTOCOL.md "Errors", the keys that SCAN lists, and ended
 * registrations.
 */

#include <stdio.h>

#include "policy/policy_build.h"
#include "unit/engine/world.h"

/* Verified clients may read r*, write w*, and read and write u/{user}. */
static struct policy *make_policy(const char *readable) {
        struct policy *policy;

        cr_assert_eq(policy_new(&policy), 0);
        cr_assert_eq(policy_add_rule(policy, S("read")), 0);
        policy_set_access(policy, ACCESS_READ);
        cr_assert_eq(policy_add_principal(policy, POLICY_ANYONE, S("")), 0);
        cr_assert_eq(policy_add_keys(policy, POLICY_PATTERN, slice_from_string(readable), 1), 0);
        cr_assert_eq(policy_add_rule(policy, S("write")), 0);
        policy_set_access(policy, ACCESS_WRITE);
        cr_assert_eq(policy_add_principal(policy, POLICY_ANYONE, S("")), 0);
        cr_assert_eq(policy_add_keys(policy, POLICY_PATTERN, S("w*"), 2), 0);
        cr_assert_eq(policy_add_rule(policy, S("users")), 0);
        policy_set_access(policy, ACCESS_READWRITE);
        cr_assert_eq(policy_add_principal(policy, POLICY_ANYONE, S("")), 0);
        cr_assert_eq(policy_add_keys(policy, POLICY_STRING, S("u/{user}"), 3), 0);
        cr_assert_eq(policy_compile(policy, false), 0);
        return policy;
}

#define VERIFIED .client = BYTES("c"), .connection = 1
#define AS(name) VERIFIED, .user = BYTES(name)
#define OWN      .is_own = true

Test(engine_policy, denies_requests_without_changing_anything) {
        struct policy *policy = make_policy("r*");
        struct world world;
        int64_t clock_ms;

        world_init(&world, world_config());
        engine_set_policy(world.engine, policy);
        cr_expect(asked(&world, SET("w1", "v", VERIFIED), OUTCOME_DONE));
        cr_expect(asked(&world, GET("w1", VERIFIED), OUTCOME_NOT_AUTHORIZED));
        cr_expect(asked(&world, SET("r1", "v", VERIFIED), OUTCOME_NOT_AUTHORIZED));
        cr_expect(asked(&world, GET("r1", VERIFIED), OUTCOME_NO_VALUE));
        cr_expect(asked(&world, DEL("r1", VERIFIED), OUTCOME_NOT_AUTHORIZED));
        cr_expect(asked(&world, VDEL("r1", "v", VERIFIED), OUTCOME_NOT_AUTHORIZED));
        cr_expect(asked(&world, WATCH("c", "w1", .connection = 1), OUTCOME_NOT_AUTHORIZED));
        cr_expect(asked(&world, UNWATCH("c", "w1", .connection = 1), OUTCOME_NOT_AUTHORIZED));
        cr_expect(asked(&world, WATCH("c", "r1", .connection = 1), OUTCOME_DONE));
        cr_expect(asked(&world, SET("u/me", "v", AS("me")), OUTCOME_DONE));
        cr_expect(asked(&world, SET("u/me", "v", AS("you")), OUTCOME_NOT_AUTHORIZED));

        clock_ms = engine_stats(world.engine).clock.wall_ms;
        cr_expect(asked(&world, SET("x", "v", VERIFIED, TS(WORLD_WALL_MS + 50000, 0, "c")),
                        OUTCOME_NOT_AUTHORIZED));
        cr_expect_eq(engine_stats(world.engine).clock.wall_ms, clock_ms);
        world_deinit(&world);
        policy_free(policy);
}

Test(engine_policy, denies_unverified_clients) {
        struct policy *policy = make_policy("*");
        struct world world;

        world_init(&world, world_config());
        engine_set_policy(world.engine, policy);
        cr_expect(asked(&world, GET("r1", .client = BYTES("c")), OUTCOME_NOT_AUTHORIZED));
        cr_expect(asked(&world, SCAN("*", .client = BYTES("c")), OUTCOME_NOT_AUTHORIZED));
        cr_expect(asked(&world, GET("r1", OWN), OUTCOME_NO_VALUE));
        world_deinit(&world);
        policy_free(policy);
}

/* The check is after those of the timestamps and before those of the fence. */
Test(engine_policy, is_checked_in_the_order_of_the_protocol) {
        struct policy *policy = make_policy("r*");
        struct world world;

        world_init(&world, world_config());
        cr_expect(asked(&world, SET("fenced", "v", OWN, FENCE(WORLD_WALL_MS, 0, "t")), OUTCOME_DONE));
        engine_set_policy(world.engine, policy);
        cr_expect(asked(&world, SET("fenced", "v", VERIFIED), OUTCOME_NOT_AUTHORIZED));
        cr_expect(asked(&world, SET("fenced", "v", VERIFIED, TS(WORLD_WALL_MS + 70000, 0, "c")),
                        OUTCOME_TIMESTAMP_TOO_FAR));
        cr_expect(asked(&world, SET("fenced", "v", VERIFIED, FENCE(WORLD_WALL_MS + 70000, 0, "c")),
                        OUTCOME_FENCE_TOO_FAR));
        world_deinit(&world);
        policy_free(policy);
}

Test(engine_policy, limits_scan_to_readable_keys) {
        struct policy *policy = make_policy("r*");
        const struct reply *reply;
        struct world world;

        world_init(&world, world_config());
        for (size_t i = 0; i < 3; i++) {
                cr_expect(asked(&world, SET("r1", "v", OWN), OUTCOME_DONE));
                cr_expect(asked(&world, SET("w1", "v", OWN), OUTCOME_DONE));
                cr_expect(asked(&world, SET("u/me", "v", OWN), OUTCOME_DONE));
        }
        engine_set_policy(world.engine, policy);
        reply = ask(&world, SCAN("*", VERIFIED));
        cr_assert_eq(reply->result.outcome, OUTCOME_PAGE);
        cr_assert_eq(reply->page->n_entries, 1);
        cr_expect(slice_equal(entry_key(reply->page->entries[0]), S("r1")));
        reply = ask(&world, SCAN("*", AS("me")));
        cr_assert_eq(reply->result.outcome, OUTCOME_PAGE);
        cr_expect_eq(reply->page->n_entries, 2);
        reply = ask(&world, SCAN("w*", VERIFIED));
        cr_assert_eq(reply->result.outcome, OUTCOME_PAGE);
        cr_expect_eq(reply->page->n_entries, 0);
        world_deinit(&world);
        policy_free(policy);
}

/* Otherwise a client could find out how many keys exist that it may not read. */
Test(engine_policy, unreadable_keys_do_not_change_where_a_page_ends) {
        static uint8_t pattern[SCAN_PAGE_STEPS_MAX + 5]; /* one match uses up the page */
        struct policy *policy = make_policy("r*");
        struct request scan = SCAN("", VERIFIED);
        const struct reply *reply;
        struct world world;

        memset(pattern, 'x', sizeof(pattern));
        memcpy(pattern, "w[", 2);
        memcpy(pattern + sizeof(pattern) - 2, "]*", 2);
        scan.key = (struct slice){ pattern, sizeof(pattern) };
        world_init(&world, world_config());
        cr_expect(asked(&world, SET("w1", "v", OWN), OUTCOME_DONE));
        cr_expect(asked(&world, SET("w2", "v", OWN), OUTCOME_DONE));
        cr_expect(asked(&world, SET("w3", "v", OWN), OUTCOME_DONE));

        reply = ask(&world, scan);
        cr_assert_eq(reply->result.outcome, OUTCOME_PAGE);
        cr_expect(reply->page->has_next);

        engine_set_policy(world.engine, policy);
        reply = ask(&world, scan);
        cr_assert_eq(reply->result.outcome, OUTCOME_PAGE);
        cr_expect_not(reply->page->has_next);
        world_deinit(&world);
        policy_free(policy);
}

/* A denial is not remembered: a new policy decides a repeated request again. */
Test(engine_policy, decides_a_denied_request_again_when_repeated) {
        struct policy *policy = make_policy("r*");
        struct request request = SET("x", "v", VERIFIED, TS(WORLD_WALL_MS, 0, "c"),
                                     .timestamp_text = BYTES("t"), .payload = BYTES("p"));
        struct world world;

        world_init(&world, world_config());
        engine_set_policy(world.engine, policy);
        cr_expect(asked(&world, request, OUTCOME_NOT_AUTHORIZED));
        cr_expect_eq(world.effects.n_changes, 0);
        engine_set_policy(world.engine, NULL);
        cr_expect(asked(&world, request, OUTCOME_DONE));
        world_deinit(&world);
        policy_free(policy);
}

/* A client without grants must not use up the memory for remembered replies. */
Test(engine_policy, a_refused_timestamp_is_remembered_only_if_the_request_is_granted) {
        struct policy *policy = make_policy("r*");
        struct request request = SET("x", "v", VERIFIED, TS(WORLD_WALL_MS + 3600000, 0, "c"),
                                     .timestamp_text = BYTES("t"), .payload = BYTES("p"));
        struct world world;

        world_init(&world, world_config());
        engine_set_policy(world.engine, policy);
        cr_expect(asked(&world, request, OUTCOME_TIMESTAMP_TOO_FAR));
        cr_expect_eq(world.effects.n_changes, 0);
        engine_set_policy(world.engine, NULL);
        cr_expect(asked(&world, request, OUTCOME_TIMESTAMP_TOO_FAR));
        cr_expect_eq(world.effects.n_changes, 1);
        world_deinit(&world);
        policy_free(policy);
}

static const struct event policy_changed = { .type = EVENT_POLICY_CHANGED };

Test(engine_policy, ends_registrations_that_it_does_not_grant) {
        struct policy *policy = make_policy("r*");
        struct world world;

        world_init(&world, world_config());
        cr_expect(asked(&world, WATCH("c", "r1", .connection = 1), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("c", "x1", .connection = 1), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("d", "x1", .connection = 2), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("e", "u/me", .connection = 3, .user = BYTES("me")), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("f", "u/me", .connection = 4, .user = BYTES("you")), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("g", "r1"), OUTCOME_DONE));

        engine_set_policy(world.engine, policy);
        happen(&world, policy_changed);
        cr_expect_eq(world.effects.n_changes, 4);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 2);
        cr_expect_not_null(engine_find_registration(world.engine, S("c"), S("r1")));
        cr_expect_not_null(engine_find_registration(world.engine, S("e"), S("u/me")));

        /* a failed commit brings them back: the next tick ends them again */
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 6);
        cr_expect_leq(engine_next_deadline(world.engine), world.now.mono_ns);
        tick(&world);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 2);
        cr_expect_eq(world.effects.n_changes, 4);
        world_deinit(&world);
        policy_free(policy);
}

/*
 * The policy does not grant a registration that an undo restores: it ends before its client is
 * notified.
 */
Test(engine_policy, ends_a_registration_that_an_undo_restores_unless_granted) {
        struct policy *policy = make_policy("r*");
        struct world world;

        world_init(&world, world_config());
        cr_expect(asked(&world, WATCH("c", "r1", VERIFIED), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("c", "x1", VERIFIED), OUTCOME_DONE));
        begin_batch(&world);
        ask_in_batch(&world, UNWATCH("c", "r1", VERIFIED));
        ask_in_batch(&world, UNWATCH("c", "x1", VERIFIED));
        engine_set_policy(world.engine, policy);
        happen_in_batch(&world, policy_changed);
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_not_null(engine_find_registration(world.engine, S("c"), S("r1")));
        cr_expect_not_null(engine_find_registration(world.engine, S("c"), S("x1")));

        ask(&world, SET("x1", "v", OWN));
        cr_expect_str_eq(notified(&world), "");
        ask(&world, SET("r1", "v", OWN));
        cr_expect_str_eq(notified(&world), "c:r1=v ");
        tick(&world);
        cr_expect_null(engine_find_registration(world.engine, S("c"), S("x1")));

        /* an undo that restores only granted registrations repeats no check */
        ask(&world, UNWATCH("c", "r1", VERIFIED));
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_gt(engine_next_deadline(world.engine), world.now.mono_ns);
        world_deinit(&world);
        policy_free(policy);
}

#define N_MANY 3000

static struct slice many_key(char letter, unsigned int i) {
        static char key[16];

        snprintf(key, sizeof(key), "%c%u", letter, i);
        return slice_from_string(key);
}

static void watch_many(struct world *world, char letter) {
        for (unsigned int i = 0; i < N_MANY; i++) {
                struct request request = WATCH("c", "k", .connection = 1);

                request.key = many_key(letter, i);
                cr_assert(asked(world, request, OUTCOME_DONE));
        }
}

static unsigned int count_watched(const struct world *world, char letter) {
        unsigned int n = 0;

        for (unsigned int i = 0; i < N_MANY; i++)
                n += engine_find_registration(world->engine, S("c"), many_key(letter, i)) != NULL;
        return n;
}

/*
 * The client watches many keys that the policy grants, and many that it does not grant. Do the
 * first step of the check.
 */
static void begin_many(struct world *world, const struct policy *policy) {
        world_init(world, world_config());
        watch_many(world, 'r');
        watch_many(world, 'x');
        engine_set_policy(world->engine, policy);
        happen(world, policy_changed);
}

/* Step all ticks that are due. */
static void end_the_rest(struct world *world) {
        unsigned int n_steps = 1, n_steps_max = 2 * N_MANY / ENGINE_STEP_CHANGES_MAX + 1;

        for (; n_steps <= n_steps_max && engine_next_deadline(world->engine) <= world->now.mono_ns;
             n_steps++) {
                cr_expect_leq(world->effects.n_changes, ENGINE_STEP_CHANGES_MAX);
                tick(world);
        }
        cr_expect_geq(n_steps, 3);
        cr_expect_leq(n_steps, n_steps_max);
}

Test(engine_policy, ends_many_registrations_in_steps_without_notifying_them) {
        struct policy *policy = make_policy("r*");
        struct world world;
        unsigned int i = 0;
        struct request set = SET("k", "v", OWN);

        begin_many(&world, policy);
        cr_expect_eq(count_watched(&world, 'r'), N_MANY);
        cr_assert_gt(count_watched(&world, 'x'), 100);

        while (i < N_MANY && !engine_find_registration(world.engine, S("c"), many_key('x', i)))
                i++;
        set.key = many_key('x', i);
        cr_expect(asked(&world, set, OUTCOME_DONE));
        cr_expect_eq(world.effects.n_notifications, 0);
        cr_expect_eq(world.effects.n_changes, 1);
        cr_expect(asked(&world, SET("r7", "v", OWN), OUTCOME_DONE));
        cr_expect_str_eq(notified(&world), "c:r7=v ");

        end_the_rest(&world);
        cr_expect_eq(count_watched(&world, 'r'), N_MANY);
        cr_expect_eq(count_watched(&world, 'x'), 0);
        world_deinit(&world);
        policy_free(policy);
}

/* A request ends no registration: ticks do. It notifies the watchers that the policy grants. */
Test(engine_policy, notifies_no_watcher_that_remains_to_be_checked) {
        struct policy *policy = make_policy("r*");
        struct request set = SET("x", "v", OWN), watch = WATCH("", "x", .connection = 10);
        struct world world;
        char client[16];

        world_init(&world, world_config());
        watch_many(&world, 'r'); /* so that the key is not checked by the first step */
        for (unsigned int i = 0; i < 10 * ENGINE_STEP_CHANGES_MAX; i++) {
                snprintf(client, sizeof(client), "d%u", i);
                watch.client = slice_from_string(client);
                watch.connection++;
                cr_assert(asked(&world, watch, OUTCOME_DONE));
        }
        engine_set_policy(world.engine, policy);
        happen(&world, policy_changed);
        ask(&world, set);
        cr_expect_eq(world.effects.n_watched_changes, 0);
        cr_expect_eq(world.effects.n_notifications, 0);
        cr_expect_eq(world.effects.n_changes, 1);
        end_the_rest(&world);
        cr_expect_null(engine_registrations_of_key(world.engine, S("x")));
        world_deinit(&world);
        policy_free(policy);
}

Test(engine_policy, restarts_the_check_of_registrations_when_replaced) {
        struct policy *policy = make_policy("r*"), *next = make_policy("x*");
        struct world world;

        begin_many(&world, policy);
        tick(&world);
        engine_set_policy(world.engine, next);
        happen(&world, policy_changed);
        end_the_rest(&world);
        cr_expect_eq(count_watched(&world, 'r'), 0);
        cr_expect_gt(count_watched(&world, 'x'), 100);
        world_deinit(&world);
        policy_free(policy);
        policy_free(next);
}

/*
 * Registrations end for other reasons while the check is in progress, also the registration that is
 * checked next.
 */
Test(engine_policy, checks_the_rest_when_registrations_end_meanwhile) {
        struct policy *policy = make_policy("r*");
        struct request unwatch = UNWATCH("c", "k", .connection = 1);
        struct world world;

        begin_many(&world, policy);
        for (unsigned int i = 0; i < N_MANY; i += 2) {
                unwatch.key = many_key('r', i);
                cr_assert(asked(&world, unwatch, OUTCOME_DONE));
        }
        end_the_rest(&world);
        cr_expect_eq(count_watched(&world, 'r'), N_MANY / 2);
        cr_expect_eq(count_watched(&world, 'x'), 0);
        world_deinit(&world);
        policy_free(policy);
}

Test(engine_policy, counts_the_user_of_a_registration_as_memory) {
        struct world world;

        world_init(&world, world_config());
        cr_expect(asked(&world, WATCH("c", "k", .connection = 1, .user = BYTES("me")), OUTCOME_DONE));
        cr_expect_eq(engine_stats(world.engine).n_bytes, registration_cost(S("c"), S("k"), S("")) + 2);
        cr_expect(asked(&world, UNWATCH("c", "k", .connection = 1, .user = BYTES("me")), OUTCOME_DONE));
        cr_expect_eq(engine_stats(world.engine).n_bytes, 0);
        world_deinit(&world);
}
