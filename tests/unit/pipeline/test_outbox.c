/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "pipeline/outbox.h"
#include "unit/support/secrets.h"

#define S SLICE_LITERAL

static struct registrations table;
static struct effects effects;
static struct state state; /* only its pending notifications are used */
static struct outbox outbox;

static void setup(void) {
        registrations_init(&table, HASH_KEY(1));
}

static void teardown(void) {
        notification_queue_deinit(&state.notifications);
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
        cr_assert_eq(state_stage(&state, &effects), 0);
        state_commit(&state, NULL);
        effects_reset(&effects);
}

static void commit_changes(size_t n) {
        while (n-- > 0)
                change(S("k"), S("v"));
        commit();
}

static uint64_t next_sequence(void) {
        const struct pending_notification *next = outbox_next(&outbox, &state);

        return next ? next->sequence : 0;
}

static void publish(size_t n) {
        while (n-- > 0)
                outbox_next_published(&outbox, &state);
}

Test(outbox, keeps_published_changes_until_they_are_delivered) {
        add_watcher(S("c"), S("k"), 7);
        commit_changes(3);
        publish(2);
        cr_expect_eq(state.notifications.n_pending, 3);
        cr_expect_eq(next_sequence(), 3);
        outbox_deliver(&outbox, &state, 1);
        cr_expect_eq(state.notifications.n_pending, 2);
        cr_expect_eq(state.delivered, 1);
        cr_expect_eq(next_sequence(), 3);

        outbox_rewind(&outbox, &state);
        cr_expect_eq(next_sequence(), 2);
        publish(1);
        cr_expect_eq(next_sequence(), 3);
        publish(1);
        cr_expect_null(outbox_next(&outbox, &state));
        outbox_deliver(&outbox, &state, 3);
        cr_expect_eq(state.notifications.n_pending, 0);
        cr_expect_eq(state.notifications.n_bytes, 0);
}

Test(outbox, delivery_known_from_an_earlier_process_counts_and_sequences_continue_above_it) {
        add_watcher(S("c"), S("k"), 7);
        commit_changes(2);
        outbox.n_recipients_published = 1;
        outbox_deliver(&outbox, &state, 1);
        cr_expect_eq(next_sequence(), 2);
        cr_expect_eq(outbox.n_recipients_published, 0);
        outbox_deliver(&outbox, &state, 40);
        cr_expect_null(outbox_next(&outbox, &state));
        commit_changes(1);
        cr_expect_eq(next_sequence(), 41);

        outbox_deliver(&outbox, &state, 3); /* an old message */
        cr_expect_eq(state.delivered, 40);
        cr_expect_eq(next_sequence(), 41);
}

Test(outbox, is_full_by_number_or_by_bytes) {
        static char value[1 << 20];
        struct slice large = { (const uint8_t *)value, sizeof(value) };

        add_watcher(S("c"), S("k"), 7);
        commit_changes(OUTBOX_ITEMS_MAX - 1);
        cr_expect_not(outbox_is_full(&state));
        commit_changes(1);
        cr_expect(outbox_is_full(&state));
        outbox_deliver(&outbox, &state, 1);
        cr_expect_not(outbox_is_full(&state));
        outbox_deliver(&outbox, &state, OUTBOX_ITEMS_MAX);

        for (size_t i = 0; i < OUTBOX_BYTES_MAX / sizeof(value); i++) {
                cr_expect_not(outbox_is_full(&state));
                change(S("k"), large);
                commit();
        }
        cr_expect(outbox_is_full(&state));
}
