/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "base/array.h"
#include "engine/keyspace.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct version version = { 1696374425000, 7 };

static const struct {
        const char *name;
        struct slice key, value;
} entries[] = {
        { "text", S("key"), S("value") },
        { "an empty value", S("key"), S("") },
        { "an absent value", S("key"), { NULL, 0 } },
        { "a value of line ends", S("key"), S("\r\n\n") },
        { "a value that looks like a blob", S("$1\r\n"), S("$1\r\na\r\n") },
        { "NUL in both", S("\0k\0"), S("\0v\0") },
};

Test(entry, holds_copies_of_key_and_value) {
        for (size_t i = 0; i < N_ROWS(entries); i++) {
                struct entry *entry;

                cr_assert_eq(entry_new(&entry, entries[i].key, entries[i].value, version, NULL), 0,
                             ROW(entries, i));
                cr_expect(slice_equal(entry_key(entry), entries[i].key), ROW(entries, i));
                cr_expect(slice_equal(entry_value(entry), entries[i].value), ROW(entries, i));
                cr_expect_neq(entry_key(entry).data, entries[i].key.data, ROW(entries, i));
                cr_expect_null(entry_unref(entry), ROW(entries, i));
        }
}

Test(entry, has_the_version_it_was_made_with) {
        struct entry *entry;

        cr_assert_eq(entry_new(&entry, S("k"), S("v"), version, NULL), 0);
        cr_expect_eq(entry_version(entry).wall_ms, 1696374425000);
        cr_expect_eq(entry_version(entry).counter, 7);
        entry_unref(entry);
}

Test(entry, has_a_fencing_token_only_if_given_one) {
        char node[] = "Client1";
        struct hlc given = { INT64_MAX, UINT64_MAX, { (uint8_t *)node, 7 } }, fence;
        struct entry *fenced, *unfenced;

        cr_assert_eq(entry_new(&fenced, S("k"), S("v"), version, &given), 0);
        cr_assert_eq(entry_new(&unfenced, S("k"), S("v"), version, NULL), 0);
        memset(node, 'x', 7);

        cr_expect_not(entry_fence(unfenced, &fence));
        cr_assert(entry_fence(fenced, &fence));
        cr_expect_eq(fence.wall_ms, INT64_MAX);
        cr_expect_eq(fence.counter, UINT64_MAX);
        cr_expect(slice_equal(fence.node, S("Client1")));
        cr_expect(slice_equal(entry_key(fenced), S("k")));
        cr_expect(slice_equal(entry_value(fenced), S("v")));
        entry_unref(fenced);
        entry_unref(unfenced);
}

Test(entry, lives_until_its_last_reference_is_dropped) {
        struct entry *entry;

        cr_assert_eq(entry_new(&entry, S("k"), S("v"), version, NULL), 0);
        cr_expect_eq(entry_ref(entry), entry);
        entry_unref(entry);
        cr_expect(slice_equal(entry_value(entry), S("v"))); /* a sanitizer reports a read of freed memory */
        entry_unref(entry);
        cr_expect_null(entry_unref(NULL));
}

static const size_t lengths[] = { 1, 9, 10, 11, 99, 100, 101, 65535, 1000000 };

Test(entry, cost_equals_the_cost_computed_from_its_lengths) {
        static uint8_t bytes[1000000];
        struct hlc fence = { 1, 2, S("node") };
        uint64_t before = 0;

        for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
                struct slice text = { bytes, lengths[i] };
                struct entry *entry;

                cr_assert_eq(entry_new(&entry, text, text, version, &fence), 0);
                cr_expect_eq(entry_cost_of(entry), entry_cost(lengths[i], lengths[i], &fence), "%zu", i);
                cr_expect_gt(entry_cost_of(entry), sizeof(*entry) + 2 * lengths[i], "%zu", i);
                cr_expect_gt(entry_cost(lengths[i], lengths[i], &fence),
                             entry_cost(lengths[i], lengths[i], NULL), "%zu", i);
                cr_expect_gt(entry_cost_of(entry), before, "%zu", i);
                before = entry_cost_of(entry);
                entry_unref(entry);
        }
}
