/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "base/time_units.h"
#include "engine/dedup.h"
#include "unit/support/secrets.h"
#include "unit/support/table.h"

#define S      SLICE_LITERAL
#define ENOUGH (64 << 20)

static struct digest digest_of(uint64_t number) {
        struct slice part = { (const uint8_t *)&number, sizeof(number) };
        struct digest digest_of_part;

        return hash_parts(HASH_KEY(1), &part, 1, &digest_of_part);
}

#define NO_SLOT UINT32_MAX

/* The slot, or NO_SLOT. */
static uint32_t remember_for(struct dedup *dedup, uint64_t client, uint64_t number, int64_t deadline_s) {
        struct digest client_digest = { 0 };
        struct reply_row row = { .digest = digest_of(number),
                                 .reply = { .version_wall_ms = (int64_t)number },
                                 .deadline_ns = deadline_s * NS_PER_S };
        struct dedup_record *record = dedup_find(dedup, &row.digest);

        memcpy(client_digest.bytes, &client,
               sizeof(client)); /* clients below DEDUP_N_GROUPS have groups of their own */
        if (record)
                dedup_forget(dedup, record);
        return dedup_add(dedup, &client_digest, &row) ? row.slot : NO_SLOT;
}

/* Each number is of another client. */
static uint32_t remember(struct dedup *dedup, uint64_t number, int64_t deadline_s) {
        return remember_for(dedup, number, number, deadline_s);
}

static bool is_remembered(const struct dedup *dedup, uint64_t number, int64_t now_s) {
        struct digest digest = digest_of(number);
        const struct dedup_record *record = dedup_find(dedup, &digest);

        if (!record || dedup_is_expired(dedup, record, now_s * NS_PER_S))
                return false;
        cr_expect_eq(record->reply.version_wall_ms, (int64_t)number);
        return true;
}

Test(dedup, returns_all_fields_of_a_reply) {
        struct remembered_reply given = { 1696374425000, INT32_MAX - 1, 12, true };
        struct digest digest = digest_of(1);
        struct reply_row row = { .digest = digest, .reply = given, .deadline_ns = 10 };
        const struct dedup_record *record;
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        cr_expect_null(dedup_find(&dedup, &digest));
        cr_assert(dedup_add(&dedup, &digest, &row));
        record = dedup_find(&dedup, &digest);
        cr_assert_not_null(record);
        cr_expect_eq(record->reply.version_wall_ms, given.version_wall_ms);
        cr_expect_eq(record->reply.version_counter, given.version_counter);
        cr_expect_eq(record->reply.outcome, given.outcome);
        cr_expect(record->reply.has_version);
        cr_expect_eq(record->slot, row.slot);
        dedup_deinit(&dedup);
}

Test(dedup, remembers_until_the_deadline) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        remember(&dedup, 1, 10);
        cr_expect(is_remembered(&dedup, 1, 9));
        cr_expect_not(
                is_remembered(&dedup, 1, 10)); /* its deadline has passed, although the record exists */
        cr_expect_not(is_remembered(&dedup, 2, 0));
        cr_expect_eq(dedup.n_records, 1);
        dedup_deinit(&dedup);
}

Test(dedup, drops_exactly_the_expired_replies) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        cr_expect_eq(dedup_next_deadline(&dedup), INT64_MAX);
        for (uint64_t i = 1; i <= 5; i++)
                remember(&dedup, i, (int64_t)i * 10);
        cr_expect_eq(dedup_next_deadline(&dedup), 10 * NS_PER_S);

        dedup_forget_expired(&dedup, 30 * NS_PER_S, 100);
        cr_expect_eq(dedup.n_records, 2);
        cr_expect_eq(dedup_next_deadline(&dedup), 40 * NS_PER_S);
        cr_expect(is_remembered(&dedup, 4, 0));
        cr_expect_not(is_remembered(&dedup, 3, 0));
        cr_expect_eq(dedup.n_dropped_early, 0);
        dedup_deinit(&dedup);
}

Test(dedup, drops_at_most_the_given_number) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        for (uint64_t i = 1; i <= 10; i++)
                remember(&dedup, i, 10);
        dedup_forget_expired(&dedup, 10 * NS_PER_S, 3);
        cr_expect_eq(dedup.n_records, 7);
        dedup_forget_expired(&dedup, 10 * NS_PER_S, 100);
        cr_expect_eq(dedup.n_records, 0);
        dedup_deinit(&dedup);
}

Test(dedup, drops_the_earliest_deadline_at_its_limit_and_counts_it) {
        struct dedup dedup;
        uint64_t n_max;

        dedup_init(&dedup, 50000);
        n_max = dedup.n_records_max;
        cr_assert(n_max > 10 && n_max < 50000 / (2 * sizeof(struct digest)), "%lu records", n_max);

        /* later insertion, earlier deadline */
        for (uint64_t i = 0; i < n_max; i++)
                remember(&dedup, i, (int64_t)(1000000 - i));
        cr_expect_eq(dedup.n_records, n_max);
        cr_expect_eq(dedup.n_dropped_early, 0);

        remember(&dedup, n_max, 1000001);
        cr_expect_eq(dedup.n_records, n_max);
        cr_expect_eq(dedup.n_dropped_early, 1);
        cr_expect_not(is_remembered(&dedup, n_max - 1, 0));
        cr_expect(is_remembered(&dedup, n_max, 0));
        cr_expect(is_remembered(&dedup, 0, 0));
        dedup_deinit(&dedup);
}

Test(dedup, the_client_with_the_most_replies_loses_its_oldest_one) {
        struct dedup dedup;

        dedup_init(&dedup, 50000);
        remember_for(&dedup, 1, 0, 10);
        for (uint64_t i = 1; i <= 3 * dedup.n_records_max; i++)
                remember_for(&dedup, 2, i, 1000);

        cr_expect(is_remembered(&dedup, 0, 0), "client 1 has only one reply, so it must stay, although its "
                                               "deadline is the earliest");
        cr_expect(is_remembered(&dedup, 3 * dedup.n_records_max, 0));
        cr_expect_not(is_remembered(&dedup, 1, 0));
        cr_expect_eq(dedup.n_records, dedup.n_records_max);
        cr_expect_eq(dedup.n_dropped_early, 3 * dedup.n_records_max + 1 - dedup.n_records);
        dedup_deinit(&dedup);
}

/* One client after the other fills the memory. Other clients, with earlier deadlines, still have their replies remembered. */
Test(dedup, clients_that_fill_the_memory_in_succession_drop_no_reply_to_another) {
        struct dedup dedup;
        uint64_t number = 100;

        dedup_init(&dedup, 50000);
        for (uint64_t client = 1; client <= 10; client++)
                for (uint64_t i = 0; i < dedup.n_records_max; i++)
                        remember_for(&dedup, client, number++, 1000);
        for (uint64_t honest = 0; honest < 20; honest++)
                remember_for(&dedup, 20 + honest, honest, 10);

        for (uint64_t honest = 0; honest < 20; honest++)
                cr_expect(is_remembered(&dedup, honest, 0), "%lu", honest);
        dedup_deinit(&dedup);
}

Test(dedup, many_clients_with_many_replies_drop_no_restored_reply_and_no_reply_of_another) {
        struct reply_row restored = { .digest = digest_of(0), .deadline_ns = 10 * NS_PER_S };
        struct dedup dedup;
        uint64_t number = 1;

        dedup_init(&dedup, 50000);
        cr_assert_eq(dedup_restore(&dedup, &restored), 0);
        remember_for(&dedup, 1, number++, 10);
        for (int i = 0; i < 1000; i++) {
                for (uint64_t client = 2; client < 10; client++)
                        remember_for(&dedup, client, number++, 1000);
        }

        cr_expect(is_remembered(&dedup, 0, 0));
        cr_expect(is_remembered(&dedup, 1, 0));
        dedup_deinit(&dedup);
}

Test(dedup, remembers_nothing_with_a_limit_of_0) {
        struct dedup dedup;

        dedup_init(&dedup, 0);
        cr_expect_eq(remember(&dedup, 1, 10), NO_SLOT);
        cr_expect_eq(dedup.n_dropped_early, 1);
        cr_expect_not(is_remembered(&dedup, 1, 0));
        cr_expect_eq(dedup.n_records, 0);
        cr_expect_eq(dedup_next_deadline(&dedup), INT64_MAX);
        dedup_deinit(&dedup);
}

Test(dedup, reuses_the_slots_of_dropped_replies) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        for (uint64_t i = 0; i < 1000; i++)
                remember(&dedup, i, 10);
        for (int64_t round = 1; round <= 100; round++) {
                dedup_forget_expired(&dedup, round * 10 * NS_PER_S, 1000);
                for (uint64_t i = 0; i < 1000; i++)
                        cr_assert_lt(remember(&dedup, i, round * 10 + 10), 1000);
                cr_assert_eq(dedup.n_records, 1000);
        }
        for (uint64_t i = 0; i < 1000; i++)
                cr_assert(is_remembered(&dedup, i, 1005));
        dedup_deinit(&dedup);
}

Test(dedup, frees_all_memory_when_empty) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        for (uint64_t i = 0; i < 100000; i++)
                remember(&dedup, i, 10 + (int64_t)i / 1000);
        dedup_forget_expired(&dedup, 100 * NS_PER_S, UINT32_MAX);
        cr_expect_eq(dedup.n_records, 9000);
        dedup_forget_expired(&dedup, INT64_MAX, UINT32_MAX);
        cr_expect_eq(dedup.n_records, 0);
        for (size_t i = 0; i < DEDUP_N_SHARDS; i++)
                cr_assert_null(dedup.shards[i]);
        cr_expect_eq(dedup.n_slots, 0);
        dedup_deinit(&dedup);
}

/* Each block is mapped by itself: it begins at the start of a page. A block of malloc() does not: its header comes first. */
Test(dedup, blocks_are_mapped_and_not_allocated_on_the_heap) {
        uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        for (uint64_t i = 0; i < (uint64_t)3 * DEDUP_BLOCK_RECORDS; i++)
                remember(&dedup, i, 10);
        cr_assert_eq(dedup.n_slots, 3 * DEDUP_BLOCK_RECORDS);
        for (size_t i = 0; i < 3; i++)
                cr_expect_eq((uintptr_t)dedup.blocks[i] % page_bytes, 0);
        dedup_deinit(&dedup);
}

Test(dedup, counts_a_deadline_to_the_end_of_its_second) {
        struct digest digest = digest_of(1);
        struct reply_row row = { .digest = digest, .deadline_ns = NS_PER_S + 1 };
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        cr_assert(dedup_add(&dedup, &digest, &row));
        cr_expect_not(dedup_is_expired(&dedup, dedup_find(&dedup, &digest), 2 * NS_PER_S - 1));
        cr_expect(dedup_is_expired(&dedup, dedup_find(&dedup, &digest), 2 * NS_PER_S));
        dedup_deinit(&dedup);
}

/* No tick for a long time, or stored deadlines far in the future. */
Test(dedup, keeps_its_order_if_deadlines_are_far_apart) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        for (uint64_t i = 0; i < 100; i++)
                remember(&dedup, i, 10 + (int64_t)i);
        remember(&dedup, 1000, 10 + DEDUP_SPAN_S - 1);
        cr_expect_eq(dedup.n_records, 101);
        remember(&dedup, 1001, 10 + DEDUP_SPAN_S);
        cr_expect_eq(dedup.n_records, 101);
        cr_expect_not(is_remembered(&dedup, 0, 0));
        remember(&dedup, 1002, INT64_MAX / NS_PER_S);
        cr_expect_eq(dedup.n_records, 1);

        remember(&dedup, 1003, 5);
        cr_expect(is_remembered(&dedup, 1003, 5));
        cr_expect_eq(dedup_next_deadline(&dedup), (INT64_MAX / NS_PER_S - DEDUP_SPAN_S + 1) * NS_PER_S);
        remember(&dedup, 1004, -5);
        dedup_forget_expired(&dedup, INT64_MAX, 1000);
        cr_expect_eq(dedup.n_records, 0);
        remember(&dedup, 1005, 5);
        cr_expect_eq(dedup_next_deadline(&dedup), 5 * NS_PER_S);
        dedup_deinit(&dedup);
}

Test(dedup, drops_a_given_record) {
        struct digest one = digest_of(1);
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        remember(&dedup, 1, 10);
        remember(&dedup, 2, 20);
        dedup_forget(&dedup, dedup_find(&dedup, &one));
        cr_expect_not(is_remembered(&dedup, 1, 0));
        cr_expect(is_remembered(&dedup, 2, 0));
        cr_expect_eq(dedup_next_deadline(&dedup), 20 * NS_PER_S);
        dedup_deinit(&dedup);
}

/* Storage stores a reply by its slot, so two remembered replies must not share one. */
Test(dedup, gives_each_reply_its_own_slot) {
        static uint64_t held_by[1000];
        struct dedup dedup;
        uint64_t n_max;

        dedup_init(&dedup, 50000);
        n_max = dedup.n_records_max;
        cr_assert_leq(n_max, 1000);
        for (uint64_t i = 1; i < 10000; i++) {
                uint32_t slot = remember(&dedup, i, (int64_t)i);

                cr_assert_lt(slot, 1000, "reply %lu", i);
                cr_assert(held_by[slot] == 0 || !is_remembered(&dedup, held_by[slot], 0), "reply %lu", i);
                held_by[slot] = i;
                if (i % 3 == 0)
                        dedup_forget_expired(&dedup, (int64_t)(i - 50) * NS_PER_S, 10);
        }
        dedup_deinit(&dedup);
}

Test(dedup, restores_replies_and_fills_the_slots_between) {
        static const uint32_t retained[] = { 0, 3, 4, 300, 700 };
        bool is_used[1024] = { false };
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        for (size_t i = 0; i < N_ROWS(retained); i++) {
                struct reply_row row = { digest_of(retained[i]),
                                         { .version_wall_ms = retained[i] },
                                         1000 * NS_PER_S,
                                         retained[i] };

                cr_assert_eq(dedup_restore(&dedup, &row), 0);
                is_used[retained[i]] = true;
        }
        cr_expect_eq(dedup.n_records, 5);
        for (size_t i = 0; i < N_ROWS(retained); i++)
                cr_expect(is_remembered(&dedup, retained[i], 0), "slot %u", retained[i]);

        for (uint64_t i = 0; i < 1024 - 5; i++) {
                uint32_t slot = remember(&dedup, 10000 + i, 1000);

                if (slot < 1024) {
                        cr_assert_not(is_used[slot], "slot %u", slot);
                        is_used[slot] = true;
                }
        }
        for (uint32_t slot = 0; slot < 768; slot++)
                cr_expect(is_used[slot], "slot %u", slot);
        cr_expect_eq(dedup.n_dropped_early, 0);
        dedup_deinit(&dedup);
}

Test(dedup, rejects_slots_that_do_not_ascend) {
        struct reply_row one = { .digest = digest_of(1), .deadline_ns = 10, .slot = 1 };
        struct reply_row two = { .digest = digest_of(2), .deadline_ns = 10, .slot = 1 };
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        cr_assert_eq(dedup_restore(&dedup, &one), 0);
        cr_expect_eq(dedup_restore(&dedup, &two), -EBADMSG);
        cr_expect_eq(dedup.n_records, 1);
        dedup_deinit(&dedup);
}

/* Restore this number of replies in consecutive slots, of which the first and the last have the latest deadlines. */
static void restore_many(struct dedup *dedup, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                uint32_t n_to_end = i < n / 2 ? i : n - 1 - i;
                struct reply_row row = { .digest = digest_of(i),
                                         .reply = { .version_wall_ms = i },
                                         .deadline_ns = (500 - n_to_end) * NS_PER_S,
                                         .slot = i };

                cr_assert_eq(dedup_restore(dedup, &row), 0);
        }
}

Test(dedup, restores_the_replies_with_the_latest_deadlines_below_its_limit) {
        struct dedup dedup;
        uint32_t n_max;

        dedup_init(&dedup, 10000);
        n_max = (uint32_t)dedup.n_records_max;
        restore_many(&dedup, 4 * n_max);
        cr_expect_eq(dedup.n_records, n_max);
        cr_expect_eq(dedup.n_dropped_early, 3 * n_max);
        for (uint32_t i = 0; i < n_max / 2; i++) {
                cr_expect(is_remembered(&dedup, i, 0), "%u", i);
                cr_expect(is_remembered(&dedup, 4 * n_max - 1 - i, 0), "%u", 4 * n_max - 1 - i);
        }
        dedup_deinit(&dedup);
}

Test(dedup, restores_a_reply_in_a_slot_above_its_limit) {
        struct reply_row one = { digest_of(1), { .version_wall_ms = 1 }, 10, 1 };
        struct reply_row two = { .digest = digest_of(2),
                                 .reply = { .version_wall_ms = 2 },
                                 .deadline_ns = 10 };
        struct dedup dedup;
        bool is_used[1000] = { false };

        dedup_init(&dedup, 10000);
        cr_assert_eq(dedup_restore(&dedup, &one), 0);
        two.slot = (uint32_t)dedup.n_records_max + 7;
        cr_assert_eq(dedup_restore(&dedup, &two), 0);
        cr_expect_eq(dedup.n_dropped_early, 0);
        cr_expect(is_remembered(&dedup, 1, 0));
        cr_expect(is_remembered(&dedup, 2, 0));
        is_used[dedup_find(&dedup, &one.digest)->slot] = true;
        is_used[dedup_find(&dedup, &two.digest)->slot] = true;
        for (uint64_t i = 3; i <= dedup.n_records_max; i++) {
                uint32_t slot = remember(&dedup, i, 1000);

                cr_assert_lt(slot, dedup.n_records_max);
                cr_assert_not(is_used[slot], "slot %u", slot);
                is_used[slot] = true;
        }
        dedup_deinit(&dedup);
}

Test(dedup, restores_nothing_with_a_limit_of_0) {
        struct dedup dedup;

        dedup_init(&dedup, 0);
        restore_many(&dedup, 10);
        cr_expect_eq(dedup.n_records, 0);
        cr_expect_eq(dedup.n_dropped_early, 10);
        dedup_deinit(&dedup);
}

Test(dedup, a_client_with_many_replies_makes_room_for_others_after_the_limit_was_lowered) {
        struct dedup dedup;
        uint64_t number = 0;

        dedup_init(&dedup, 100000);
        while (dedup.n_dropped_early == 0)
                remember_for(&dedup, 1, number++, 1000);
        dedup_set_limit(&dedup, 50000);
        for (int i = 0; i < 1000; i++)
                remember_for(&dedup, 1, number++, 1000);

        cr_expect_eq(dedup.n_records, dedup.n_records_max);
        for (uint64_t i = 0; i < 10; i++)
                remember_for(&dedup, 2, number++, 10);
        for (uint64_t i = 0; i < 10; i++)
                cr_expect(is_remembered(&dedup, number - 1 - i, 0));
        dedup_deinit(&dedup);
}

Test(dedup, shrinks_to_a_lower_limit_with_later_additions) {
        struct dedup dedup;
        uint64_t n_before, n_steps = 0;

        dedup_init(&dedup, 1 << 20);
        for (uint64_t i = 0; i < 1000; i++)
                remember(&dedup, i, (int64_t)(1000 + i));
        cr_assert_eq(dedup.n_records, 1000);

        dedup_set_limit(&dedup, 10000);
        cr_expect_eq(dedup.n_records, 1000); /* not all at once */
        cr_expect(is_remembered(&dedup, 0, 0));
        do {
                n_before = dedup.n_records;
                remember(&dedup, 5000 + n_steps, 2000);
                cr_assert_leq(n_before, dedup.n_records + 100, "too many at once");
                cr_assert_lt(n_steps++, 1000);
        } while (dedup.n_records != n_before);
        cr_expect_eq(dedup.n_records, dedup.n_records_max);
        cr_expect_eq(dedup.n_dropped_early, 1000 + n_steps - dedup.n_records_max);
        cr_expect_not(is_remembered(&dedup, 0, 0));

        dedup_set_limit(&dedup, 1 << 20);
        remember(&dedup, 1, 2000);
        cr_expect_eq(dedup.n_records, n_before + 1);
        dedup_deinit(&dedup);
}
