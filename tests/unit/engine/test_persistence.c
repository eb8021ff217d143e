/* SPDX-License-Identifier: Apache-2.0 */

/* Which keys storage keeps, and which a restart may have lost. */

#include <criterion/criterion.h>

#include "engine/engine.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct engine_config all = { .persist = PERSIST_ALL };
static const struct engine_config none = { .persist = PERSIST_NONE };
static const struct engine_config custom = { .persist = PERSIST_CUSTOM };

static struct engine_config matching(struct slice pattern) {
        return (struct engine_config){ .persist = PERSIST_CUSTOM, .persist_pattern = pattern };
}

Test(persistence, keeps_what_the_policy_says_whatever_the_request_asks_for) {
        struct engine_config a = matching(S("a*"));

        cr_expect(persistence_keeps(&all, S("k")));
        cr_expect_not(persistence_keeps(&none, S("k")));
        cr_expect_not(persistence_keeps(&custom, S("k")));
        cr_expect(persistence_keeps(&a, S("ab")));
        cr_expect_not(persistence_keeps(&a, S("ba")));
}

Test(persistence, has_a_digest_that_tells_policies_apart) {
        struct engine_config a = matching(S("a*")), b = matching(S("b*"));
        struct engine_config ignored = { .persist = PERSIST_ALL, .persist_pattern = S("a*") };

        cr_expect_eq(persistence_digest(&all), PERSISTENCE_ALL);
        cr_expect_eq(persistence_digest(&ignored), PERSISTENCE_ALL);
        cr_expect_eq(persistence_digest(&none), persistence_digest(&custom)); /* neither keeps a key */
        cr_expect_neq(persistence_digest(&none), PERSISTENCE_ALL);
        cr_expect_neq(persistence_digest(&none), persistence_digest(&a));
        cr_expect_neq(persistence_digest(&a), persistence_digest(&b));
}

Test(persistence, of_before_a_restart_says_what_that_may_have_lost) {
        struct engine_config a = matching(S("a*")), b = matching(S("b*"));

        cr_expect_not(persistence_may_have_lost(&none, PERSISTENCE_ALL, S("k")));
        cr_expect(persistence_may_have_lost(&all, persistence_digest(&none), S("k")));
        cr_expect(persistence_may_have_lost(&all, PERSISTENCE_UNKNOWN, S("k")));
        cr_expect_not(persistence_may_have_lost(&a, persistence_digest(&a), S("ab")));
        cr_expect(persistence_may_have_lost(&a, persistence_digest(&a), S("ba")));
        cr_expect(persistence_may_have_lost(&b, persistence_digest(&a), S("ba")));
}
