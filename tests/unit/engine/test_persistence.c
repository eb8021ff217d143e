/* SPDX-License-Identifier: Apache-2.0 */

/* Which keys are stored, and which keys a restart may have lost. */

#include <criterion/criterion.h>
#include <string.h>

#include "engine/engine.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct engine_config all = { .persist = PERSIST_ALL };
static const struct engine_config none = { .persist = PERSIST_NONE };
static const struct engine_config custom = { .persist = PERSIST_CUSTOM };

static struct engine_config matching(struct slice pattern) {
        return (struct engine_config){ .persist = PERSIST_CUSTOM, .persist_pattern = pattern };
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

Test(persistence, has_different_digests_for_different_policies) {
        struct engine_config a = matching(S("a*")), b = matching(S("b*"));
        struct engine_config ignored = { .persist = PERSIST_ALL, .persist_pattern = S("a*") };

        cr_expect_eq(persistence_digest(&all), PERSISTENCE_ALL);
        cr_expect_eq(persistence_digest(&ignored), PERSISTENCE_ALL);
        cr_expect_eq(persistence_digest(&none),
                     persistence_digest(&custom)); /* neither has a pattern: a restart may lose any key */
        cr_expect_neq(persistence_digest(&none), PERSISTENCE_ALL);
        cr_expect_neq(persistence_digest(&none), persistence_digest(&a));
        cr_expect_neq(persistence_digest(&a), persistence_digest(&b));
}

Test(persistence, finds_the_keys_that_a_restart_may_have_lost) {
        struct engine_config a = matching(S("a*")), b = matching(S("b*"));

        cr_expect_not(persistence_may_have_lost(&none, PERSISTENCE_ALL, S("k")));
        cr_expect(persistence_may_have_lost(&all, persistence_digest(&none), S("k")));
        cr_expect(persistence_may_have_lost(&all, PERSISTENCE_UNKNOWN, S("k")));
        cr_expect_not(persistence_may_have_lost(&a, persistence_digest(&a), S("ab")));
        cr_expect(persistence_may_have_lost(&a, persistence_digest(&a), S("ba")));
        cr_expect(persistence_may_have_lost(&b, persistence_digest(&a), S("ba")));
}
