/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "pipeline/outbox.h"
#include "unit/support/secrets.h"

#define S SLICE_LITERAL

static struct registrations table;
static struct effects effects;
static struct outbox outbox;

static void setup(void) {
        registrations_init(&table, HASH_KEY(1));
}

static void teardown(void) {
        outbox_deinit(&outbox);
        effects_deinit(&effects);
        registrations_deinit(&table);
}

TestSuite(outbox, .init = setup, .fini = teardown);

static void add_watcher(struct slice client, struct slice key, uint64_t connection) {
        cr_assert(registrations_add(&table, registrations_names(&table, client, key), (struct slice){ 0 },
                                    connection));
}

/* value absent: the key is deleted. */
static void change(struct slice key, struct slice value) {
        struct version version = { 1000, (uint32_t)effects.n_changes };
        struct registration *watchers = registrations_of_key(&table, hash_bytes(HASH_KEY(1), key), key);
        struct row row = { .type = ROW_ENTRY };

        if (value.data)
                cr_assert_eq(entry_new(&row.entry.after, key, value, version, NULL), 0);
        cr_assert_eq(effects_reserve_change(&effects, watchers), 0);
        effects_change(&effects, row, watchers, version);
}

static void commit(void) {
        cr_assert_eq(outbox_stage(&outbox, &effects, NULL), 0);
        outbox_commit(&outbox);
        effects_reset(&effects);
}

static void commit_changes(size_t n) {
        while (n-- > 0)
                change(S("k"), S("v"));
        commit();
}

static uint64_t next_sequence(void) {
        const struct pending_notification *next = outbox_next(&outbox);

        return next ? next->sequence : 0;
}

static void publish(size_t n) {
        while (n-- > 0)
                outbox_next_published(&outbox);
}

/* client: the client id; it is encoded only without a connection. */
static void expect_recipient(struct slice *recipients, uint64_t connection, struct slice client) {
        struct recipient recipient;

        cr_assert(recipients_next(recipients, &recipient));
        cr_expect_eq(recipient.connection, connection);
        cr_expect_eq(recipient.client_length, client.length);
        cr_expect(slice_equal(recipient.client, connection == 0 ? client : (struct slice){ 0 }));
}

Test(outbox, stages_each_change_once_with_all_recipients) {
        const struct pending_notification *staged;
        struct slice recipients;
        size_t n;

        add_watcher(S("c"), S("k"), 7);
        add_watcher(S("d\0\xFF"), S("k"), UINT64_MAX);
        add_watcher(S("c"), S("l"), 7);
        change(S("k"), S("v"));
        change(S("l"), (struct slice){ 0 });
        change(S("without watchers"), S("v"));
        cr_assert_eq(outbox_stage(&outbox, &effects, NULL), 0);

        staged = outbox_staged(&outbox, &n);
        cr_assert_eq(n, 2);
        cr_expect_eq(staged[0].sequence, 1);
        cr_expect_eq(staged[0].version.counter, 0);
        cr_expect(slice_equal(staged[0].key, S("k")));
        cr_expect_eq(staged[0].entry, effects.changes[0].entry, "the value is copied");
        recipients = staged[0].recipients;
        expect_recipient(&recipients, 7, S("c"));
        expect_recipient(&recipients, UINT64_MAX, S("d\0\xFF"));
        cr_expect_eq(recipients.length, 0);
        cr_expect_eq(staged[1].sequence, 2);
        cr_expect_null(staged[1].entry);
        recipients = staged[1].recipients;
        expect_recipient(&recipients, 7, S("c"));
        cr_expect_eq(recipients.length, 0);
}

/* A client id may have 64 kB, and each notification has all its recipients. */
Test(outbox, client_id_of_a_known_connection_is_not_stored) {
        static uint8_t client[UINT16_MAX];
        const struct pending_notification *staged;
        struct slice recipients;
        size_t n;

        memset(client, 'c', sizeof(client));
        for (uint64_t i = 0; i < 3; i++) {
                client[0] = (uint8_t)i;
                add_watcher((struct slice){ client, sizeof(client) }, S("k"), 7 + i);
        }
        change(S("k"), S("v"));
        registrations_remove(&table, registrations_of_key(&table, hash_bytes(HASH_KEY(1), S("k")), S("k")));
        cr_assert_eq(outbox_stage(&outbox, &effects, NULL), 0);

        staged = outbox_staged(&outbox, &n);
        cr_assert_eq(n, 1);
        recipients = staged[0].recipients;
        cr_expect_eq(recipients.length, 3 * 10);
        for (uint64_t i = 0; i < 3; i++)
                expect_recipient(&recipients, 7 + i, (struct slice){ client, sizeof(client) });
        cr_expect_eq(outbox.n_bytes, strlen("kv") + 3 * 10);
}

Test(outbox, client_id_is_stored_if_the_connection_is_unknown) {
        const struct pending_notification *staged;
        struct slice recipients;
        size_t n;

        add_watcher(S("c"), S("k"), 7);
        add_watcher(S("\0\xFF"), S("k"), 0);
        add_watcher(S(""), S("k"), 0);
        add_watcher(S("e"), S("k"), 8);
        change(S("k"), S("v"));
        cr_assert_eq(outbox_stage(&outbox, &effects, NULL), 0);

        staged = outbox_staged(&outbox, &n);
        cr_assert_eq(n, 1);
        cr_expect(slice_equal(staged[0].key, S("k")));
        recipients = staged[0].recipients;
        expect_recipient(&recipients, 7, S("c"));
        expect_recipient(&recipients, 0, S("\0\xFF"));
        expect_recipient(&recipients, 0, S(""));
        expect_recipient(&recipients, 8, S("e"));
        cr_expect_eq(recipients.length, 0);
}

Test(outbox, staged_changes_are_published_after_the_commit) {
        add_watcher(S("c"), S("k"), 7);
        change(S("k"), S("v"));
        cr_assert_eq(outbox_stage(&outbox, &effects, NULL), 0);
        cr_expect_null(outbox_next(&outbox));
        cr_expect_eq(outbox.n_pending, 0);
        outbox_commit(&outbox);
        cr_expect_eq(next_sequence(), 1);
        cr_expect_eq(outbox.n_pending, 1);
}

Test(outbox, failed_commit_drops_its_changes_and_reuses_their_sequences) {
        add_watcher(S("c"), S("k"), 7);
        commit_changes(1);
        change(S("k"), S("lost"));
        change(S("k"), S("lost"));
        cr_assert_eq(outbox_stage(&outbox, &effects, NULL), 0);
        outbox_roll_back(&outbox);
        effects_reset(&effects);
        commit_changes(1);

        cr_expect_eq(outbox.n_pending, 2);
        publish(1);
        cr_expect_eq(next_sequence(), 2);
        cr_expect(slice_equal(entry_value(outbox_next(&outbox)->entry), S("v")));
}

Test(outbox, keeps_published_changes_until_they_are_delivered) {
        add_watcher(S("c"), S("k"), 7);
        commit_changes(3);
        publish(2);
        cr_expect_eq(outbox.n_pending, 3);
        cr_expect_eq(next_sequence(), 3);
        outbox_deliver(&outbox, 1);
        cr_expect_eq(outbox.n_pending, 2);
        cr_expect_eq(outbox.delivered_sequence, 1);
        cr_expect_eq(next_sequence(), 3);

        outbox_rewind(&outbox);
        cr_expect_eq(next_sequence(), 2);
        publish(1);
        cr_expect_eq(next_sequence(), 3);
        publish(1);
        cr_expect_null(outbox_next(&outbox));
        outbox_deliver(&outbox, 3);
        cr_expect_eq(outbox.n_pending, 0);
        cr_expect_eq(outbox.n_bytes, 0);
}

Test(outbox, delivery_known_from_an_earlier_process_counts_and_sequences_continue_above_it) {
        add_watcher(S("c"), S("k"), 7);
        commit_changes(2);
        outbox.n_recipients_published = 1;
        outbox_deliver(&outbox, 1);
        cr_expect_eq(next_sequence(), 2);
        cr_expect_eq(outbox.n_recipients_published, 0);
        outbox_deliver(&outbox, 40);
        cr_expect_null(outbox_next(&outbox));
        commit_changes(1);
        cr_expect_eq(next_sequence(), 41);

        outbox_deliver(&outbox, 3); /* an old message */
        cr_expect_eq(outbox.delivered_sequence, 40);
        cr_expect_eq(next_sequence(), 41);
}

Test(outbox, volatile_outbox_keeps_no_published_change) {
        outbox.is_volatile = true;
        add_watcher(S("c"), S("k"), 7);
        commit_changes(2);
        publish(1);
        cr_expect_eq(outbox.n_pending, 1);
        cr_expect_eq(next_sequence(), 2);
        publish(1);
        cr_expect_eq(outbox.n_pending, 0);
        cr_expect_eq(outbox.n_bytes, 0);
}

Test(outbox, starts_with_the_stored_notifications) {
        struct restored restored = { .header = { .notification_sequence = 9 } };
        struct pending_notification stored = { .sequence = 7, .key = S("k"), .recipients = S("") };

        restored.notifications = calloc(1, sizeof(*restored.notifications));
        cr_assert_eq(pending_notification_copy(restored.notifications, &stored), 0);
        restored.n_notifications = restored.notifications_capacity = 1;
        outbox_init(&outbox, &restored, false);
        restored_deinit(&restored);
        cr_expect_eq(next_sequence(), 7);

        add_watcher(S("c"), S("k"), 7);
        commit_changes(1);
        publish(1);
        cr_expect_eq(next_sequence(), 10);
}

static int drop_or_double(void *userdata, const struct registration *registration) {
        (void)userdata;
        return registration->connection == 7 ? 0 : 2;
}

Test(outbox, hooks_drop_and_double_recipients) {
        struct hooks hooks = { .notification = drop_or_double };
        const struct pending_notification *staged;
        struct slice recipients;
        size_t n;

        add_watcher(S("c"), S("k"), 7);
        add_watcher(S("d"), S("k"), 8);
        add_watcher(S("c"), S("l"), 7);
        change(S("l"), S("v"));
        change(S("k"), S("v"));
        cr_assert_eq(outbox_stage(&outbox, &effects, &hooks), 0);
        staged = outbox_staged(&outbox, &n);
        cr_assert_eq(n, 2);
        cr_expect_eq(staged[0].recipients.length, 0);
        recipients = staged[1].recipients;
        expect_recipient(&recipients, 8, S("d"));
        expect_recipient(&recipients, 8, S("d"));
        cr_expect_eq(recipients.length, 0);
}

Test(outbox, is_full_by_number_or_by_bytes) {
        static char value[1 << 20];
        struct slice large = { (const uint8_t *)value, sizeof(value) };

        add_watcher(S("c"), S("k"), 7);
        commit_changes(OUTBOX_ITEMS_MAX - 1);
        cr_expect_not(outbox_is_full(&outbox));
        commit_changes(1);
        cr_expect(outbox_is_full(&outbox));
        outbox_deliver(&outbox, 1);
        cr_expect_not(outbox_is_full(&outbox));
        outbox_deliver(&outbox, OUTBOX_ITEMS_MAX);

        for (size_t i = 0; i < OUTBOX_BYTES_MAX / sizeof(value); i++) {
                cr_expect_not(outbox_is_full(&outbox));
                change(S("k"), large);
                commit();
        }
        cr_expect(outbox_is_full(&outbox));
}

Test(outbox, room_of_removed_changes_is_reused) {
        add_watcher(S("c"), S("k"), 7);
        commit_changes(4);
        for (uint64_t i = 1; i <= 1000; i++) {
                publish(1);
                outbox_deliver(&outbox, i);
                commit_changes(1);
                cr_assert_eq(outbox.n_pending, 4);
        }
        cr_expect_leq(outbox.capacity, 32);
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
