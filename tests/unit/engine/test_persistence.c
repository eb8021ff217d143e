/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which keys are stored. After a restart that may have lost keys, the watchers of keys that do not
 * exist are notified.
 */

#include <stdio.h>

#include "engine/internal.h"
#include "policy/policy_build.h"
#include "unit/engine/world.h"

static const struct engine_config all = { .persist = PERSIST_ALL };
static const struct engine_config none = { .persist = PERSIST_NONE };
static const struct engine_config custom = { .persist = PERSIST_CUSTOM };

static struct persist_rule pattern_rule;

static struct engine_config matching(struct slice pattern) {
        pattern_rule.text = pattern;
        return (struct engine_config){ .persist = PERSIST_CUSTOM,
                                       .persist_rules = &pattern_rule,
                                       .n_persist_rules = 1 };
}

Test(persistence, each_rule_selects_keys) {
        static const struct persist_rule rules[] = {
                { S("a*"), false }, { S("b*"), true }, { S("\xFF\0"), true }, { S("d/*"), false }
        };
        const struct engine_config config = { .persist = PERSIST_CUSTOM,
                                              .persist_rules = rules,
                                              .n_persist_rules = 4 };

        cr_expect(persistence_stores(&config, S("ab"), false));
        cr_expect(persistence_stores(&config, S("d/e"), false));
        cr_expect(persistence_stores(&config, S("b*"), false));
        cr_expect(persistence_stores(&config, S("\xFF\0"), false));
        cr_expect_not(persistence_stores(&config, S("bc"), false), "a key is not a pattern");
        cr_expect_not(persistence_stores(&config, S("\xFF"), false));
}

Test(persistence, depends_on_the_request_only_with_custom) {
        struct engine_config a = matching(S("a*"));

        cr_expect(persistence_stores(&all, S("k"), false));
        cr_expect_not(persistence_stores(&none, S("k"), false));
        cr_expect_not(persistence_stores(&custom, S("k"), false));
        cr_expect(persistence_stores(&a, S("ab"), false));
        cr_expect_not(persistence_stores(&a, S("ba"), false));
        cr_expect(persistence_stores(&a, S("ba"), true));
        cr_expect_not(persistence_stores(&none, S("k"), true));
}

Test(persistence, stores_a_key_whose_match_runs_out_of_steps) {
        static uint8_t key[1 << 20];
        struct engine_config config = matching(S("*a*a*a*a*ab"));

        memset(key, 'a', sizeof(key));
        cr_expect(persistence_stores(&config, (struct slice){ key, sizeof(key) }, false));
        cr_expect_not(persistence_stores(&config, (struct slice){ key, 4 }, false));
}

static struct world world;

static void restore_registration(const char *client, const char *key) {
        cr_assert_eq(engine_put_registration(world.engine, slice_from_string(client), S(""),
                                             slice_from_string(key), 7),
                     0);
}

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(lost_keys, .init = setup, .fini = teardown);

Test(lost_keys, watchers_of_each_absent_key_are_notified_once) {
        const struct entry_fields kept = { S("kept"), S("v"), { 1, 0 }, DEADLINE_NEVER, NULL };

        restore_registration("c", "lost");
        restore_registration("d", "lost");
        restore_registration("c", "kept");
        cr_assert_eq(engine_put_entry(world.engine, &kept), 0);
        cr_expect_not(engine_may_lose_keys(world.engine));
        engine_restore_lost_keys(world.engine);
        cr_expect(engine_may_lose_keys(world.engine));
        cr_expect_leq(engine_next_deadline(world.engine), world.now.mono_ns);

        tick(&world);
        cr_expect_str_eq(notified(&world), "c:lost gone d:lost gone ");
        cr_expect_eq(world.effects.n_watched_changes, 1);
        cr_expect_eq(world.effects.n_changes, 0);
        cr_expect_eq(version_number(world.effects.watched_changes[0].version), WORLD_WALL_MS * 1000);
        cr_expect_not(engine_may_lose_keys(world.engine));
        cr_expect_eq(engine_next_deadline(world.engine), INT64_MAX);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 3);
        tick(&world);
        cr_expect_str_eq(notified(&world), "");
}

/* Its notification suffices: a notification of a deletion after it would be wrong. */
Test(lost_keys, key_that_is_set_before_its_turn_is_not_notified_as_deleted) {
        restore_registration("c", "k");
        engine_restore_lost_keys(world.engine);
        ask(&world, SET("k", "v"));
        cr_expect_str_eq(notified(&world), "c:k=v ");
        tick(&world);
        cr_expect_str_eq(notified(&world), "");
}

#define N_MANY 1000

/*
 * Between the ticks, registrations of keys end and others begin, also of the key whose turn is
 * next.
 */
Test(lost_keys, many_keys_are_notified_in_steps_while_registrations_change) {
        unsigned int n_notified[N_MANY] = { 0 }, n_steps = 0, n_stopped = 0;
        bool is_stopped[N_MANY] = { false };
        char key[16];

        for (unsigned int i = 0; i < N_MANY; i++) {
                snprintf(key, sizeof(key), "k%u", i);
                restore_registration("c", key);
        }
        engine_restore_lost_keys(world.engine);
        while (engine_next_deadline(world.engine) <= world.now.mono_ns) {
                tick(&world);
                cr_assert_lt(n_steps++, N_MANY);
                cr_expect_leq(world.effects.n_notifications, ENGINE_STEP_CHANGES_MAX);
                for (size_t i = 0; i < world.effects.n_notifications; i++) {
                        struct slice name = world.effects.notifications[i].registration->key_name;
                        uint64_t number;

                        cr_assert_eq(parse_uint64(slice_skip(name, 1), &number), 0);
                        n_notified[number]++;
                }
                for (unsigned int i = n_steps; i < N_MANY; i += 16) {
                        struct request stop = UNWATCH("c", "k", .connection = 7);

                        snprintf(key, sizeof(key), "k%u", i);
                        stop.key = slice_from_string(key);
                        n_stopped += ask(&world, stop)->result.outcome == OUTCOME_DONE && n_notified[i] == 0;
                        is_stopped[i] = true;
                }
        }
        cr_expect_geq(n_steps, 4);
        cr_expect_gt(n_stopped, 0);
        for (unsigned int i = 0; i < N_MANY; i++)
                cr_expect(n_notified[i] == 1 || (n_notified[i] == 0 && is_stopped[i]), "key %u", i);
}

Test(lost_keys, long_keys_are_notified_in_steps_of_limited_bytes) {
        static char key[30000];
        unsigned int n_notified = 0, n_steps = 0;

        memset(key, 'x', sizeof(key) - 1);
        for (key[0] = 'a'; key[0] <= 'j'; key[0]++)
                restore_registration("c", key);
        engine_restore_lost_keys(world.engine);
        while (engine_next_deadline(world.engine) <= world.now.mono_ns) {
                tick(&world);
                n_steps++;
                n_notified += (unsigned int)world.effects.n_notifications;
                cr_expect_lt(world.effects.n_bytes, 2 * ENGINE_STEP_BYTES_MAX);
        }
        cr_expect_gt(n_steps, 2);
        cr_expect_eq(n_notified, 10);
}

Test(lost_keys, undo_repeats_the_notifications) {
        restore_registration("c", "lost");
        engine_restore_lost_keys(world.engine);
        tick(&world);
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect(engine_may_lose_keys(world.engine));
        tick(&world);
        cr_expect_str_eq(notified(&world), "c:lost gone ");

        ask(&world, SET("other", "v"));
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_not(engine_may_lose_keys(world.engine));
}

/* The policy was changed while the store did not run. */
Test(lost_keys, client_that_may_not_read_the_key_is_not_notified) {
        struct policy *policy;

        cr_assert_eq(policy_new(&policy), 0);
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE);
        restore_registration("c", "lost");
        engine_restore_lost_keys(world.engine);
        engine_set_policy(world.engine, policy);
        happen(&world, (struct event){ .type = EVENT_POLICY_CHANGED });
        tick(&world);
        cr_expect_str_eq(notified(&world), "");
        policy_free(policy);
}
