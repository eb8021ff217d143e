/* SPDX-License-Identifier: Apache-2.0 */

/* Keys of a seed are set without a client. */

#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "base/time_units.h"
#include "pipeline/seeding.h"
#include "support/limits.h"
#include "unit/support/entries.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

#define WALL_MS INT64_C(1696374425000)
#define MONO_NS INT64_C(5000000)

static struct engine *engine;
static struct effects effects;
static const struct now now = { WALL_MS, MONO_NS };

static void setup(void) {
        struct engine_config config = { .node_id = S("StateStore"), .limits = TEST_LIMITS };

        config.limits.max_keys = 2;
        cr_assert_eq(engine_new(&engine, &config), 0);
}

static void teardown(void) {
        effects_deinit(&effects);
        engine_free(engine);
}

TestSuite(seeding, .init = setup, .fini = teardown);

static enum outcome set(const char *line, enum set_condition condition) {
        CLEANUP(exported_key_deinit) struct exported_key exported = { 0 };
        const char *fault;

        cr_assert_eq(exported_key_read(&exported, slice_from_string(line), &fault), 0);
        return seeding_set(engine, &exported, condition, now, &effects);
}

static bool has(const char *key, const char *value) {
        struct entry *entry = find_entry(engine, slice_from_string(key));

        return entry && slice_equal(entry_value(entry), slice_from_string(value));
}

Test(seeding, value_expiry_and_token_are_set_and_stored) {
        struct hlc fence;

        cr_expect_eq(set("{\"key\":\"k\",\"value\":\"v\",\"deadline\":1696374426000,\"token\":\"7:1:n\"}",
                         SET_IF_ABSENT),
                     OUTCOME_DONE);
        cr_expect(has("k", "v"));
        cr_expect_eq(keyspace_deadline(engine_keyspace(engine), find_entry(engine, S("k"))),
                     MONO_NS + NS_PER_S);
        cr_expect(entry_fence(find_entry(engine, S("k")), &fence));
        cr_expect_eq(fence.wall_ms, 7);
        cr_expect_eq(effects.n_changes, 1);
        cr_expect_eq(effects.changes[0].type, CHANGE_ENTRY);
}

Test(seeding, empty_value_is_set) {
        cr_expect_eq(set("{\"key\":\"k\",\"value\":\"\"}", SET_IF_ABSENT), OUTCOME_DONE);
        cr_expect(has("k", ""));
}

Test(seeding, existing_key_is_not_overwritten) {
        cr_expect_eq(set("{\"key\":\"k\",\"value\":\"v\",\"token\":\"7:1:n\"}", SET_IF_ABSENT),
                     OUTCOME_DONE);
        cr_expect_eq(set("{\"key\":\"k\",\"value\":\"w\"}", SET_IF_ABSENT), OUTCOME_CONDITION_NOT_MET);
        cr_expect(has("k", "v"));
        cr_expect_eq(effects.n_changes, 1);
}

Test(seeding, existing_key_is_overwritten_on_request) {
        cr_expect_eq(set("{\"key\":\"k\",\"value\":\"v\"}", SET_ALWAYS), OUTCOME_DONE);
        cr_expect_eq(set("{\"key\":\"k\",\"value\":\"w\"}", SET_ALWAYS), OUTCOME_DONE);
        cr_expect(has("k", "w"));
}

Test(seeding, expired_key_is_skipped) {
        cr_expect_eq(set("{\"key\":\"k\",\"value\":\"v\",\"deadline\":1696374425000}", SET_ALWAYS),
                     OUTCOME_NOTHING);
        cr_expect_null(find_entry(engine, S("k")));
}

Test(seeding, key_beyond_the_limits_is_refused) {
        cr_expect_eq(set("{\"key\":\"k\",\"value\":\"v\",\"token\":\"1696374485001:0:n\"}", SET_ALWAYS),
                     OUTCOME_FENCE_TOO_FAR);
        cr_expect_eq(set("{\"key\":\"a\",\"value\":\"v\"}", SET_ALWAYS), OUTCOME_DONE);
        cr_expect_eq(set("{\"key\":\"b\",\"value\":\"v\"}", SET_ALWAYS), OUTCOME_DONE);
        cr_expect_eq(set("{\"key\":\"c\",\"value\":\"v\"}", SET_ALWAYS), OUTCOME_QUOTA_EXCEEDED);
}
