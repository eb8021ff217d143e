/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/time_units.h"
#include "engine/commands.h"
#include "support/result.h"
#include "unit/support/table.h"

#define ENOUGH (64 << 20)

/* Of the reply to a request without a Message Expiry Interval that is executed at the begin of a second. */
#define LIFETIME_S 121

/* Only the fields that dedup.c uses are set. */
static struct engine engine;
static struct dedup *const dedup = &engine.dedup;
static struct effects effects;
static struct reply reply;

/* The request with this number of this client. Valid until the next one. */
static const struct request *request_of(uint64_t client, uint64_t number) {
        static uint64_t client_id, payload;
        static struct request request;

        client_id = client;
        payload = number;
        request = (struct request){ .verb = VERB_SET,
                                    .client = { (const uint8_t *)&client_id, sizeof(client_id) },
                                    .payload = { (const uint8_t *)&payload, sizeof(payload) },
                                    .has_timestamp = true };
        return &request;
}

static struct request_step step_of(uint64_t client, uint64_t number, int64_t now_s) {
        effects_reset(&effects);
        reply = (struct reply){ 0 };
        return (struct request_step){ .engine = &engine,
                                      .request = request_of(client, number),
                                      .now.mono_ns = now_s * NS_PER_S,
                                      .effects = &effects,
                                      .reply = &reply,
                                      .is_authorized = true };
}

/* The number of the reply, or 0. */
static uint64_t remember_for(uint64_t client, uint64_t number, int64_t deadline_s) {
        struct request_step step = step_of(client, number, deadline_s - LIFETIME_S);

        cr_assert_eq(dedup_repeat(&step), DEDUP_NEW);
        reply.result.version.wall_ms = (int64_t)number;
        dedup_remember(&step);
        return effects.n_changes > 0 ? effects.changes[0].execution.reply_number : 0;
}

/* Each number is of another client. */
static uint64_t remember(uint64_t number, int64_t deadline_s) {
        return remember_for(number, number, deadline_s);
}

/* The reply to the request that remember() executes. */
static int restore_until(uint64_t number, uint64_t request_number, int64_t deadline_ns) {
        const struct request *request = request_of(request_number, request_number);
        const struct slice parts[6] = { [0] = request->client, [3] = request->payload };
        struct digest digests[6], digest = hash_parts(&engine.config.digest_key, parts, 6, digests);

        return dedup_restore(dedup, number, &digest,
                             (struct result){ .version = { .wall_ms = (int64_t)request_number } },
                             deadline_ns);
}

static int restore(uint64_t number, uint64_t request_number, int64_t deadline_s) {
        return restore_until(number, request_number, deadline_s * NS_PER_S);
}

static bool is_remembered_for(uint64_t client, uint64_t number, int64_t now_s) {
        struct request_step step = step_of(client, number, now_s);

        if (dedup_repeat(&step) == DEDUP_NEW)
                return false;
        cr_expect_eq(reply.result.version.wall_ms, (int64_t)number);
        return true;
}

static bool is_remembered(uint64_t number, int64_t now_s) {
        return is_remembered_for(number, number, now_s);
}

Test(dedup, repeats_all_fields_of_the_result) {
        CLEANUP(buf_deinit) struct buf given = { 0 }, repeated = { 0 };
        struct request_step step = step_of(1, 1, 0);

        dedup_init(dedup, ENOUGH);
        cr_assert_eq(dedup_repeat(&step), DEDUP_NEW);
        reply.result = result_extreme(OUTCOME_DELETED);
        result_append(&given, reply.result);
        dedup_remember(&step);

        step = step_of(1, 1, 0);
        cr_assert_eq(dedup_repeat(&step), DEDUP_REPLIED);
        result_append(&repeated, reply.result);
        cr_expect_str_eq(buf_text(&repeated), buf_text(&given));
        dedup_deinit(dedup);
}

Test(dedup, remembers_until_the_deadline) {
        dedup_init(dedup, ENOUGH);
        remember(1, 10);
        cr_expect(is_remembered(1, 9));
        cr_expect_not(is_remembered(2, 0));
        cr_expect_eq(dedup->n_replies, 1);
        cr_expect_not(is_remembered(1, 10));
        dedup_deinit(dedup);
}

Test(dedup, drops_exactly_the_expired_replies) {
        dedup_init(dedup, ENOUGH);
        cr_expect_eq(dedup_next_deadline(dedup), INT64_MAX);
        for (uint64_t i = 1; i <= 5; i++)
                remember(i, (int64_t)i * 10);
        cr_expect_eq(dedup_next_deadline(dedup), 10 * NS_PER_S);

        dedup_forget_expired(dedup, 30 * NS_PER_S, 100);
        cr_expect_eq(dedup->n_replies, 2);
        cr_expect_eq(dedup_next_deadline(dedup), 40 * NS_PER_S);
        cr_expect(is_remembered(4, 0));
        cr_expect_not(is_remembered(3, 0));
        cr_expect_eq(dedup->n_dropped_early, 0);
        dedup_deinit(dedup);
}

Test(dedup, drops_at_most_the_given_number) {
        dedup_init(dedup, ENOUGH);
        for (uint64_t i = 1; i <= 10; i++)
                remember(i, 10);
        dedup_forget_expired(dedup, 10 * NS_PER_S, 3);
        cr_expect_eq(dedup->n_replies, 7);
        dedup_forget_expired(dedup, 10 * NS_PER_S, 100);
        cr_expect_eq(dedup->n_replies, 0);
        dedup_deinit(dedup);
}

/* A reply with a late deadline before it: the reply expires, although it stays in memory. */
Test(dedup, keeps_an_expired_reply_behind_one_that_has_not_expired) {
        dedup_init(dedup, ENOUGH);
        remember(1, 100);
        remember(2, 10);
        remember(3, 10);
        remember(4, 200);
        dedup_forget_expired(dedup, 99 * NS_PER_S, 100);
        cr_expect_eq(dedup->n_replies, 4);
        cr_expect(is_remembered(1, 99));
        cr_expect_not(is_remembered(3, 99));
        cr_expect_eq(dedup->forgotten_number, 0);

        dedup_forget_expired(dedup, 100 * NS_PER_S, 100);
        cr_expect_eq(dedup->n_replies, 1);
        cr_expect_eq(dedup->forgotten_number, 2);
        cr_expect_eq(dedup_next_deadline(dedup), 200 * NS_PER_S);
        dedup_deinit(dedup);
}

/* A repeated request whose reply has expired drops the reply, from the storage too. */
Test(dedup, counts_only_replies_dropped_before_their_deadline) {
        dedup_init(dedup, ENOUGH);
        remember(1, 10);
        remember(2, 11);
        cr_expect_not(is_remembered(1, 10));
        cr_expect_eq(effects.n_forgotten, 1);
        cr_expect_eq(dedup->n_dropped_early, 0);
        dedup_set_limit(dedup, 0);
        remember(3, 131);
        cr_expect_eq(dedup->n_replies, 0);
        cr_expect_eq(dedup->n_dropped_early, 2, "replies 2 and 3");
        dedup_deinit(dedup);
}

Test(dedup, the_client_with_the_most_replies_loses_its_oldest_one) {
        dedup_init(dedup, 50000);
        remember_for(1, 0, 10);
        for (uint64_t i = 1; i <= 3 * dedup->n_replies_max; i++)
                remember_for(2, i, 1000);

        cr_expect(is_remembered_for(1, 0, 0), "client 1 has only one reply, so it must stay, although its "
                                              "deadline is the earliest");
        cr_expect(is_remembered_for(2, 3 * dedup->n_replies_max, 0));
        cr_expect_not(is_remembered_for(2, 1, 0));
        cr_expect_eq(dedup->n_replies, dedup->n_replies_max);
        cr_expect_eq(dedup->n_dropped_early, 3 * dedup->n_replies_max + 1 - dedup->n_replies);
        dedup_deinit(dedup);
}

/*
 * One client after the other fills the memory. Other clients, with earlier deadlines, still have
 * their replies remembered.
 */
Test(dedup, clients_that_fill_the_memory_in_succession_drop_no_reply_to_another) {
        uint64_t number = 100;

        dedup_init(dedup, 50000);
        for (uint64_t client = 1; client <= 10; client++)
                for (uint64_t i = 0; i < dedup->n_replies_max; i++)
                        remember_for(client, number++, 1000);
        for (uint64_t honest = 0; honest < 20; honest++)
                remember_for(20 + honest, honest, 10);

        for (uint64_t honest = 0; honest < 20; honest++)
                cr_expect(is_remembered_for(20 + honest, honest, 0), "%lu", honest);
        dedup_deinit(dedup);
}

Test(dedup, many_clients_with_many_replies_drop_no_restored_reply_and_no_reply_of_another) {
        uint64_t number = 1;

        dedup_init(dedup, 50000);
        cr_assert_eq(restore(1, 0, 10), 0);
        remember_for(1, number++, 10);
        for (int i = 0; i < 1000; i++) {
                for (uint64_t client = 2; client < 10; client++)
                        remember_for(client, number++, 1000);
        }

        cr_expect(is_remembered(0, 0));
        cr_expect(is_remembered(1, 0));
        dedup_deinit(dedup);
}

Test(dedup, remembers_nothing_with_a_limit_of_0) {
        dedup_init(dedup, 0);
        cr_expect_eq(remember(1, 10), 0);
        cr_expect_eq(dedup->n_dropped_early, 1);
        cr_expect_not(is_remembered(1, 0));
        cr_expect_eq(dedup->n_replies, 0);
        cr_expect_eq(dedup_next_deadline(dedup), INT64_MAX);
        dedup_deinit(dedup);
}

Test(dedup, frees_all_memory_when_empty) {
        dedup_init(dedup, ENOUGH);
        for (uint64_t i = 0; i < 100000; i++)
                remember(i, 10 + (int64_t)i / 1000);
        dedup_forget_expired(dedup, 100 * NS_PER_S, UINT32_MAX);
        cr_expect_eq(dedup->n_replies, 9000);
        dedup_forget_expired(dedup, INT64_MAX, UINT32_MAX);
        cr_expect_eq(dedup->n_replies, 0);
        for (size_t i = 0; i < DEDUP_N_SHARDS; i++)
                cr_assert_null(dedup->shards[i]);
        cr_expect_null(dedup->oldest);
        dedup_deinit(dedup);
}

Test(dedup, counts_a_deadline_to_the_end_of_its_second) {
        dedup_init(dedup, ENOUGH);
        cr_assert_eq(restore_until(1, 1, NS_PER_S + 1), 0);
        cr_expect_eq(dedup_next_deadline(dedup), 2 * NS_PER_S);
        dedup_deinit(dedup);
}

/* The storage stores a reply by its number, so no number is used twice. */
Test(dedup, numbers_ascend) {
        uint64_t last = 0;

        dedup_init(dedup, 50000);
        for (uint64_t i = 1; i < 10000; i++) {
                uint64_t number = remember(i, (int64_t)i);

                cr_assert_gt(number, last, "reply %lu", i);
                last = number;
                if (i % 3 == 0)
                        dedup_forget_expired(dedup, (int64_t)(i - 50) * NS_PER_S, 10);
                cr_assert_lt(dedup->forgotten_number, number);
        }
        dedup_deinit(dedup);
}

Test(dedup, numbers_ascend_beyond_the_restored_ones) {
        static const uint64_t retained[] = { 3, 4, 300, UINT32_MAX + UINT64_C(700) };

        dedup_init(dedup, ENOUGH);
        for (size_t i = 0; i < N_ROWS(retained); i++)
                cr_assert_eq(restore(retained[i], i, 1000), 0);
        for (size_t i = 0; i < N_ROWS(retained); i++)
                cr_expect(is_remembered(i, 0), "%lu", i);
        cr_expect_eq(dedup->n_dropped_early, 0);
        cr_expect_eq(remember(10000, 1000), UINT32_MAX + UINT64_C(701));
        dedup_deinit(dedup);
}

Test(dedup, rejects_numbers_that_do_not_ascend) {
        dedup_init(dedup, ENOUGH);
        cr_assert_eq(restore(1, 1, 10), 0);
        cr_expect_eq(restore(1, 2, 10), -EBADMSG);
        cr_expect_eq(restore(0, 3, 10), -EBADMSG);
        cr_expect_eq(dedup->n_replies, 1);
        dedup_deinit(dedup);
}

/*
 * The store may have dropped a reply early, executed the request again, and ended before a commit
 * removed the first.
 */
Test(dedup, restores_the_later_one_of_two_replies_to_the_same_request) {
        dedup_init(dedup, ENOUGH);
        cr_assert_eq(restore(1, 7, 10), 0);
        cr_assert_eq(restore(5, 7, 10), 0);
        cr_expect_eq(dedup->n_replies, 1);
        cr_expect(is_remembered(7, 0));
        cr_expect_eq(dedup->last_number, 5);
        dedup_deinit(dedup);
}

static void restore_many(uint64_t n) {
        for (uint64_t i = 1; i <= n; i++)
                cr_assert_eq(restore(i, i, 500), 0);
}

Test(dedup, restores_the_last_replies_below_its_limit) {
        uint64_t n_max;

        dedup_init(dedup, 10000);
        n_max = dedup->n_replies_max;
        restore_many(4 * n_max);
        cr_expect_eq(dedup->n_replies, n_max);
        cr_expect_eq(dedup->n_dropped_early, 3 * n_max);
        for (uint64_t i = 1; i <= 4 * n_max; i++)
                cr_expect_eq(is_remembered(i, 0), i > 3 * n_max, "%lu", i);
        dedup_deinit(dedup);
}

Test(dedup, restores_nothing_with_a_limit_of_0) {
        dedup_init(dedup, 0);
        restore_many(10);
        cr_expect_eq(dedup->n_replies, 0);
        cr_expect_eq(dedup->n_dropped_early, 10);
        dedup_deinit(dedup);
}

Test(dedup, a_client_with_many_replies_makes_room_for_others_after_the_limit_was_lowered) {
        uint64_t number = 0;

        dedup_init(dedup, 100000);
        while (dedup->n_dropped_early == 0)
                remember_for(1, number++, 1000);
        dedup_set_limit(dedup, 50000);
        for (int i = 0; i < 1000; i++)
                remember_for(1, number++, 1000);

        cr_expect_eq(dedup->n_replies, dedup->n_replies_max);
        for (uint64_t i = 0; i < 10; i++)
                remember_for(2, number++, 10);
        for (uint64_t i = 0; i < 10; i++)
                cr_expect(is_remembered_for(2, number - 1 - i, 0));
        dedup_deinit(dedup);
}
