/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "state/notification_queue.h"
#include "state/recipients.h"
#include "unit/support/watched_changes.h"

#define S SLICE_LITERAL

static struct registrations table;
static struct effects effects;
static struct notification_queue queue;

static void setup(void) {
        registrations_init(&table, HASH_KEY(1));
}

static void teardown(void) {
        notification_queue_deinit(&queue);
        effects_deinit(&effects);
        registrations_deinit(&table);
}

TestSuite(notification_queue, .init = setup, .fini = teardown);

static void commit(void) {
        cr_assert_eq(notification_queue_stage(&queue, &effects), 0);
        notification_queue_commit(&queue);
        effects_reset(&effects);
}

static void commit_changes(size_t n) {
        while (n-- > 0)
                change_key(&effects, &table, S("k"), S("v"));
        commit();
}

/* client: the client id; it is encoded only without a connection. */
static void expect_recipient(struct slice *recipients, uint64_t connection, struct slice client) {
        struct recipient recipient;

        cr_assert(recipients_next(recipients, &recipient));
        cr_expect_eq(recipient.connection, connection);
        cr_expect_eq(recipient.client_length, client.length);
        cr_expect(slice_equal(recipient.client, connection == 0 ? client : (struct slice){ 0 }));
}

Test(notification_queue, stages_each_change_once_with_all_recipients) {
        const struct pending_notification *staged;
        struct slice recipients;
        size_t n;

        add_watcher(&table, S("c"), S("k"), 7);
        add_watcher(&table, S("d\0\xFF"), S("k"), UINT64_MAX);
        add_watcher(&table, S("c"), S("l"), 7);
        change_key(&effects, &table, S("k"), S("v"));
        change_key(&effects, &table, S("l"), (struct slice){ 0 });
        change_key(&effects, &table, S("without watchers"), S("v"));
        cr_assert_eq(notification_queue_stage(&queue, &effects), 0);

        staged = notification_queue_staged(&queue, &n);
        cr_assert_eq(n, 2);
        cr_expect_eq(staged[0].sequence, 1);
        cr_expect_eq(staged[0].version.counter, 0);
        cr_expect(slice_equal(staged[0].key, S("k")));
        cr_expect_eq(staged[0].entry, effects.watched_changes[0].entry, "the value is copied");
        recipients = staged[0].recipients;
        expect_recipient(&recipients, 7, S("c"));
        expect_recipient(&recipients, UINT64_MAX, S("d\0\xFF"));
        cr_expect_eq(recipients.length, 0);
        cr_expect_eq(staged[1].sequence, 2);
        cr_expect_null(staged[1].value.data);
        recipients = staged[1].recipients;
        expect_recipient(&recipients, 7, S("c"));
        cr_expect_eq(recipients.length, 0);
}

/* A client id may have 64 kB, and each notification has all its recipients. */
Test(notification_queue, client_id_of_a_known_connection_is_not_stored) {
        static uint8_t client[UINT16_MAX];
        const struct pending_notification *staged;
        struct slice recipients;
        size_t n;

        memset(client, 'c', sizeof(client));
        for (uint64_t i = 0; i < 3; i++) {
                client[0] = (uint8_t)i;
                add_watcher(&table, (struct slice){ client, sizeof(client) }, S("k"), 7 + i);
        }
        change_key(&effects, &table, S("k"), S("v"));
        registrations_remove(&table, registrations_of_key(&table, hash_bytes(HASH_KEY(1), S("k")), S("k")));
        cr_assert_eq(notification_queue_stage(&queue, &effects), 0);

        staged = notification_queue_staged(&queue, &n);
        cr_assert_eq(n, 1);
        recipients = staged[0].recipients;
        cr_expect_eq(recipients.length, 3 * 10);
        for (uint64_t i = 0; i < 3; i++)
                expect_recipient(&recipients, 7 + i, (struct slice){ client, sizeof(client) });
        cr_expect_eq(queue.n_bytes, strlen("kv") + 3 * 10);
}

Test(notification_queue, client_id_is_stored_if_the_connection_is_unknown) {
        const struct pending_notification *staged;
        struct slice recipients;
        size_t n;

        add_watcher(&table, S("c"), S("k"), 7);
        add_watcher(&table, S("\0\xFF"), S("k"), 0);
        add_watcher(&table, S(""), S("k"), 0);
        add_watcher(&table, S("e"), S("k"), 8);
        change_key(&effects, &table, S("k"), S("v"));
        cr_assert_eq(notification_queue_stage(&queue, &effects), 0);

        staged = notification_queue_staged(&queue, &n);
        cr_assert_eq(n, 1);
        cr_expect(slice_equal(staged[0].key, S("k")));
        recipients = staged[0].recipients;
        expect_recipient(&recipients, 7, S("c"));
        expect_recipient(&recipients, 0, S("\0\xFF"));
        expect_recipient(&recipients, 0, S(""));
        expect_recipient(&recipients, 8, S("e"));
        cr_expect_eq(recipients.length, 0);
}

Test(notification_queue, staged_changes_are_published_after_the_commit) {
        add_watcher(&table, S("c"), S("k"), 7);
        change_key(&effects, &table, S("k"), S("v"));
        cr_assert_eq(notification_queue_stage(&queue, &effects), 0);
        cr_expect_null(notification_queue_after(&queue, 0));
        cr_expect_eq(queue.n_pending, 0);
        notification_queue_commit(&queue);
        cr_expect_eq(notification_queue_after(&queue, 0)->sequence, 1);
        cr_expect_eq(queue.n_pending, 1);
}

Test(notification_queue, failed_commit_drops_its_changes_and_reuses_their_sequences) {
        const struct pending_notification *second;

        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(1);
        change_key(&effects, &table, S("k"), S("lost"));
        change_key(&effects, &table, S("k"), S("lost"));
        cr_assert_eq(notification_queue_stage(&queue, &effects), 0);
        notification_queue_roll_back(&queue);
        effects_reset(&effects);
        commit_changes(1);

        cr_expect_eq(queue.n_pending, 2);
        second = notification_queue_after(&queue, 1);
        cr_assert_not_null(second);
        cr_expect_eq(second->sequence, 2);
        cr_expect(slice_equal(second->value, S("v")));
}

Test(notification_queue, after_returns_the_next_pending_notification) {
        add_watcher(&table, S("c"), S("k"), 7);
        cr_expect_null(notification_queue_after(&queue, 0));
        commit_changes(3);
        notification_queue_remove(&queue, 1);
        cr_expect_eq(notification_queue_after(&queue, 0)->sequence, 2);
        cr_expect_eq(notification_queue_after(&queue, 1)->sequence, 2);
        cr_expect_eq(notification_queue_after(&queue, 2)->sequence, 3);
        cr_expect_null(notification_queue_after(&queue, 3));
        cr_expect_null(notification_queue_after(&queue, UINT64_MAX));
}

Test(notification_queue, sequences_continue_above_what_was_removed) {
        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(2);
        notification_queue_remove(&queue, 40);
        cr_expect_eq(queue.n_pending, 0);
        cr_expect_eq(queue.n_bytes, 0);
        commit_changes(1);
        cr_expect_eq(notification_queue_after(&queue, 0)->sequence, 41);
}

Test(notification_queue, added_notifications_must_ascend_without_a_gap) {
        struct pending_notification added = { 7, { 950, 2 }, S("k"), S("v"), S("recipients"), NULL };

        queue.last_sequence = 10; /* of the header: loading begins with it */
        cr_assert_eq(notification_queue_add(&queue, &added), 0);
        cr_expect(slice_equal(notification_queue_after(&queue, 0)->value, S("v")));
        cr_expect(slice_equal(notification_queue_after(&queue, 0)->recipients, S("recipients")));
        cr_expect_eq(notification_queue_add(&queue, &added), -EBADMSG, "again");
        added.sequence = 9;
        cr_expect_eq(notification_queue_add(&queue, &added), -EBADMSG, "a gap");
        added.sequence = 8;
        added.key.length = 0;
        cr_expect_eq(notification_queue_add(&queue, &added), -EBADMSG, "no key");
        added.key.length = 1;
        added.value = (struct slice){ 0 };
        cr_expect_eq(notification_queue_add(&queue, &added), 0);
        cr_expect_null(notification_queue_after(&queue, 7)->value.data);

        notification_queue_remove(&queue, 8);
        added.sequence = 20;
        cr_expect_eq(notification_queue_add(&queue, &added), 0, "nothing is pending");
        cr_expect_eq(queue.last_sequence, 20);
}

Test(notification_queue, room_of_removed_changes_is_reused) {
        add_watcher(&table, S("c"), S("k"), 7);
        commit_changes(4);
        for (uint64_t i = 1; i <= 1000; i++) {
                notification_queue_remove(&queue, i);
                commit_changes(1);
                cr_assert_eq(queue.n_pending, 4);
        }
        cr_expect_leq(queue.capacity, 32);
}

Test(recipients, malformed_bytes_end_the_list) {
        struct recipient recipient;
        struct slice no_header = { (const uint8_t *)"123456789", 9 };
        struct slice too_short = { (const uint8_t *)"\0\0\0\0\0\0\0\0\0\3cc", 12 };

        cr_expect_not(recipients_next(&(struct slice){ 0 }, &recipient));
        cr_expect_not(recipients_next(&no_header, &recipient));
        cr_expect_eq(no_header.length, 0);
        cr_expect_not(recipients_next(&too_short, &recipient));
        cr_expect_eq(too_short.length, 0);
}
