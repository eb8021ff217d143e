/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

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

/* The number of the reply, or 0. */
static uint64_t remember_for(struct dedup *dedup, uint64_t client, uint64_t number, int64_t deadline_s) {
        struct digest client_digest = { 0 }, digest = digest_of(number);
        const struct result result = { .version = { .wall_ms = (int64_t)number } };
        struct remembered_reply *reply = dedup_find(dedup, &digest);
        const struct remembered_reply *added;

        memcpy(client_digest.bytes, &client,
               sizeof(client)); /* clients below DEDUP_N_GROUPS have groups of their own */
        if (reply)
                dedup_forget(dedup, reply);
        while ((reply = dedup_excess(dedup)))
                dedup_drop(dedup, reply, 0);
        added = dedup_add(dedup, &client_digest, &digest, result, deadline_s * NS_PER_S);
        return added ? added->number : 0;
}

/* Each number is of another client. */
static uint64_t remember(struct dedup *dedup, uint64_t number, int64_t deadline_s) {
        return remember_for(dedup, number, number, deadline_s);
}

/* The reply to the request with the digest of this number. */
static int restore(struct dedup *dedup, uint64_t number, uint64_t request, int64_t deadline_s) {
        const struct result result = { .version = { .wall_ms = (int64_t)request } };
        struct digest digest = digest_of(request);

        return dedup_restore(dedup, number, &digest, result, deadline_s * NS_PER_S);
}

static bool is_remembered(const struct dedup *dedup, uint64_t number, int64_t now_s) {
        struct digest digest = digest_of(number);
        const struct remembered_reply *reply = dedup_find(dedup, &digest);

        if (!reply || dedup_is_expired(reply, now_s * NS_PER_S))
                return false;
        cr_expect_eq(reply->result.version.wall_ms, (int64_t)number);
        return true;
}

Test(dedup, returns_all_fields_of_a_reply) {
        struct result given = { { 1696374425000, INT32_MAX - 1 }, 12, true };
        struct digest digest = digest_of(1);
        const struct remembered_reply *reply, *added;
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        cr_expect_null(dedup_find(&dedup, &digest));
        added = dedup_add(&dedup, &digest, &digest, given, 10);
        reply = dedup_find(&dedup, &digest);
        cr_assert_not_null(reply);
        cr_expect_eq(reply, added);
        cr_expect_eq(reply->result.version.wall_ms, given.version.wall_ms);
        cr_expect_eq(reply->result.version.counter, given.version.counter);
        cr_expect_eq(reply->result.outcome, given.outcome);
        cr_expect(reply->result.has_version);
        cr_expect_eq(reply->number, 1);
        dedup_deinit(&dedup);
}

Test(dedup, remembers_until_the_deadline) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        remember(&dedup, 1, 10);
        cr_expect(is_remembered(&dedup, 1, 9));
        cr_expect_not(is_remembered(&dedup, 1, 10)); /* its deadline has passed, although the reply exists */
        cr_expect_not(is_remembered(&dedup, 2, 0));
        cr_expect_eq(dedup.n_replies, 1);
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
        cr_expect_eq(dedup.n_replies, 2);
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
        cr_expect_eq(dedup.n_replies, 7);
        dedup_forget_expired(&dedup, 10 * NS_PER_S, 100);
        cr_expect_eq(dedup.n_replies, 0);
        dedup_deinit(&dedup);
}

/* A reply with a late deadline before it: the reply expires, although it stays in memory. */
Test(dedup, keeps_an_expired_reply_behind_one_that_has_not_expired) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        remember(&dedup, 1, 100);
        remember(&dedup, 2, 10);
        remember(&dedup, 3, 200);
        dedup_forget_expired(&dedup, 99 * NS_PER_S, 100);
        cr_expect_eq(dedup.n_replies, 3);
        cr_expect(is_remembered(&dedup, 1, 99));
        cr_expect_not(is_remembered(&dedup, 2, 99));
        cr_expect_eq(dedup.forgotten_number, 0);

        dedup_forget_expired(&dedup, 100 * NS_PER_S, 100);
        cr_expect_eq(dedup.n_replies, 1);
        cr_expect_eq(dedup.forgotten_number, 2);
        cr_expect_eq(dedup_next_deadline(&dedup), 200 * NS_PER_S);
        dedup_deinit(&dedup);
}

Test(dedup, counts_only_replies_dropped_before_their_deadline) {
        struct digest digests[] = { digest_of(1), digest_of(2) };
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        remember(&dedup, 1, 10);
        remember(&dedup, 2, 11);
        for (size_t i = 0; i < N_ROWS(digests); i++)
                dedup_drop(&dedup, dedup_find(&dedup, &digests[i]), 10 * NS_PER_S);
        cr_expect_eq(dedup.n_replies, 0);
        cr_expect_eq(dedup.n_dropped_early, 1);
        dedup_deinit(&dedup);
}

Test(dedup, the_client_with_the_most_replies_loses_its_oldest_one) {
        struct dedup dedup;

        dedup_init(&dedup, 50000);
        remember_for(&dedup, 1, 0, 10);
        for (uint64_t i = 1; i <= 3 * dedup.n_replies_max; i++)
                remember_for(&dedup, 2, i, 1000);

        cr_expect(is_remembered(&dedup, 0, 0), "client 1 has only one reply, so it must stay, although its "
                                               "deadline is the earliest");
        cr_expect(is_remembered(&dedup, 3 * dedup.n_replies_max, 0));
        cr_expect_not(is_remembered(&dedup, 1, 0));
        cr_expect_eq(dedup.n_replies, dedup.n_replies_max);
        cr_expect_eq(dedup.n_dropped_early, 3 * dedup.n_replies_max + 1 - dedup.n_replies);
        dedup_deinit(&dedup);
}

/*
 * One client after the other fills the memory. Other clients, with earlier deadlines, still have
 * their replies remembered.
 */
Test(dedup, clients_that_fill_the_memory_in_succession_drop_no_reply_to_another) {
        struct dedup dedup;
        uint64_t number = 100;

        dedup_init(&dedup, 50000);
        for (uint64_t client = 1; client <= 10; client++)
                for (uint64_t i = 0; i < dedup.n_replies_max; i++)
                        remember_for(&dedup, client, number++, 1000);
        for (uint64_t honest = 0; honest < 20; honest++)
                remember_for(&dedup, 20 + honest, honest, 10);

        for (uint64_t honest = 0; honest < 20; honest++)
                cr_expect(is_remembered(&dedup, honest, 0), "%lu", honest);
        dedup_deinit(&dedup);
}

Test(dedup, many_clients_with_many_replies_drop_no_restored_reply_and_no_reply_of_another) {
        struct dedup dedup;
        uint64_t number = 1;

        dedup_init(&dedup, 50000);
        cr_assert_eq(restore(&dedup, 1, 0, 10), 0);
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
        cr_expect_eq(remember(&dedup, 1, 10), 0);
        cr_expect_eq(dedup.n_dropped_early, 1);
        cr_expect_not(is_remembered(&dedup, 1, 0));
        cr_expect_eq(dedup.n_replies, 0);
        cr_expect_eq(dedup_next_deadline(&dedup), INT64_MAX);
        dedup_deinit(&dedup);
}

Test(dedup, frees_all_memory_when_empty) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        for (uint64_t i = 0; i < 100000; i++)
                remember(&dedup, i, 10 + (int64_t)i / 1000);
        dedup_forget_expired(&dedup, 100 * NS_PER_S, UINT32_MAX);
        cr_expect_eq(dedup.n_replies, 9000);
        dedup_forget_expired(&dedup, INT64_MAX, UINT32_MAX);
        cr_expect_eq(dedup.n_replies, 0);
        for (size_t i = 0; i < DEDUP_N_SHARDS; i++)
                cr_assert_null(dedup.shards[i]);
        cr_expect_null(dedup.oldest);
        dedup_deinit(&dedup);
}

Test(dedup, counts_a_deadline_to_the_end_of_its_second) {
        struct digest digest = digest_of(1);
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        cr_assert(dedup_add(&dedup, &digest, &digest, (struct result){ 0 }, NS_PER_S + 1));
        cr_expect_not(dedup_is_expired(dedup_find(&dedup, &digest), 2 * NS_PER_S - 1));
        cr_expect(dedup_is_expired(dedup_find(&dedup, &digest), 2 * NS_PER_S));
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

/* The storage stores a reply by its number, so no number is used twice. */
Test(dedup, numbers_ascend) {
        uint64_t last = 0;
        struct dedup dedup;

        dedup_init(&dedup, 50000);
        for (uint64_t i = 1; i < 10000; i++) {
                uint64_t number = remember(&dedup, i, (int64_t)i);

                cr_assert_gt(number, last, "reply %lu", i);
                last = number;
                if (i % 3 == 0)
                        dedup_forget_expired(&dedup, (int64_t)(i - 50) * NS_PER_S, 10);
                cr_assert_lt(dedup.forgotten_number, number);
        }
        dedup_deinit(&dedup);
}

Test(dedup, numbers_ascend_beyond_the_restored_ones) {
        static const uint64_t retained[] = { 3, 4, 300, UINT32_MAX + UINT64_C(700) };
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        for (size_t i = 0; i < N_ROWS(retained); i++)
                cr_assert_eq(restore(&dedup, retained[i], i, 1000), 0);
        for (size_t i = 0; i < N_ROWS(retained); i++)
                cr_expect(is_remembered(&dedup, i, 0), "%lu", i);
        cr_expect_eq(dedup.n_dropped_early, 0);
        cr_expect_eq(remember(&dedup, 10000, 1000), UINT32_MAX + UINT64_C(701));
        dedup_deinit(&dedup);
}

Test(dedup, rejects_numbers_that_do_not_ascend) {
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        cr_assert_eq(restore(&dedup, 1, 1, 10), 0);
        cr_expect_eq(restore(&dedup, 1, 2, 10), -EBADMSG);
        cr_expect_eq(restore(&dedup, 0, 3, 10), -EBADMSG);
        cr_expect_eq(dedup.n_replies, 1);
        dedup_deinit(&dedup);
}

/*
 * The store may have dropped a reply early, executed the request again, and ended before a commit
 * removed the first.
 */
Test(dedup, restores_the_later_one_of_two_replies_to_the_same_request) {
        struct digest digest = digest_of(7);
        const struct remembered_reply *reply;
        struct dedup dedup;

        dedup_init(&dedup, ENOUGH);
        cr_assert_eq(restore(&dedup, 1, 7, 10), 0);
        cr_assert_eq(restore(&dedup, 5, 7, 10), 0);
        cr_expect_eq(dedup.n_replies, 1);
        reply = dedup_find(&dedup, &digest);
        cr_assert_not_null(reply);
        cr_expect_eq(reply->number, 5);
        dedup_deinit(&dedup);
}

static void restore_many(struct dedup *dedup, uint64_t n) {
        for (uint64_t i = 1; i <= n; i++)
                cr_assert_eq(restore(dedup, i, i, 500), 0);
}

Test(dedup, restores_the_last_replies_below_its_limit) {
        struct dedup dedup;
        uint64_t n_max;

        dedup_init(&dedup, 10000);
        n_max = dedup.n_replies_max;
        restore_many(&dedup, 4 * n_max);
        cr_expect_eq(dedup.n_replies, n_max);
        cr_expect_eq(dedup.n_dropped_early, 3 * n_max);
        for (uint64_t i = 1; i <= 4 * n_max; i++)
                cr_expect_eq(is_remembered(&dedup, i, 0), i > 3 * n_max, "%lu", i);
        dedup_deinit(&dedup);
}

Test(dedup, restores_nothing_with_a_limit_of_0) {
        struct dedup dedup;

        dedup_init(&dedup, 0);
        restore_many(&dedup, 10);
        cr_expect_eq(dedup.n_replies, 0);
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

        cr_expect_eq(dedup.n_replies, dedup.n_replies_max);
        for (uint64_t i = 0; i < 10; i++)
                remember_for(&dedup, 2, number++, 10);
        for (uint64_t i = 0; i < 10; i++)
                cr_expect(is_remembered(&dedup, number - 1 - i, 0));
        dedup_deinit(&dedup);
}
