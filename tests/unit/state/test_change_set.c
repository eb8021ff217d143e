/* SPDX-License-Identifier: Apache-2.0 */

/* The changes of a batch become at most one row of a key, and one of a registration. */

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/time_units.h"
#include "engine/internal.h"
#include "state/state.h"
#include "support/limits.h"

#define S SLICE_LITERAL

static const struct now now = { .wall_ms = INT64_C(1696374425000), .mono_ns = NS_PER_S };

static struct state *state;
static struct effects effects;
static struct change_set change_set;

static void setup(void) {
        static const struct persist_rule stored = { .text = S("stored/*") };
        const struct engine_config config = { .node_id = S("StateStore"),
                                              .limits = TEST_LIMITS,
                                              .persist = PERSIST_CUSTOM,
                                              .persist_rules = &stored,
                                              .n_persist_rules = 1 };
        const struct state_header header = { .instance_id = "instance-1" };

        cr_assert_eq(state_new(&state, &config, &header, now), 0);
}

static void teardown(void) {
        effects_deinit(&effects);
        state_free(state);
}

TestSuite(change_set, .init = setup, .fini = teardown);

static void execute_at(struct request request, struct now then) {
        struct reply reply;

        if (!request.client.data)
                request.client = S("c");
        engine_request(state->engine, &request, &reply, then, &effects);
        cr_assert_not(outcome_is_error(reply.result.outcome));
        reply_deinit(&reply);
}

static void execute(struct request request) {
        execute_at(request, now);
}

static void set(struct slice key, struct slice value) {
        execute((struct request){ .verb = VERB_SET, .key = key, .value = value });
}

static void delete (struct slice key) {
        execute((struct request){ .verb = VERB_DEL, .key = key });
}

static void watch(struct slice client, struct slice key, uint64_t connection) {
        execute((struct request){
                .verb = VERB_KEYNOTIFY, .client = client, .key = key, .connection = connection });
}

static void unwatch(struct slice client, struct slice key, uint64_t connection) {
        execute((struct request){ .verb = VERB_KEYNOTIFY,
                                  .client = client,
                                  .key = key,
                                  .connection = connection,
                                  .stop = true });
}

static void make(void) {
        cr_assert_eq(state_stage(state, &effects), 0);
        cr_assert_eq(state_make_change_set(state, &effects, now, &change_set), 0);
}

static size_t n_rows(enum row_type type) {
        size_t n = 0;

        for (size_t i = 0; i < change_set.n_rows; i++)
                n += change_set.rows[i].type == type;
        return n;
}

/* Return the change of this type with this index among them. */
static const struct row *row_at(enum row_type type, size_t index) {
        for (size_t i = 0; i < change_set.n_rows; i++)
                if (change_set.rows[i].type == type && index-- == 0)
                        return &change_set.rows[i];
        cr_assert_fail("there is no such change");
        return NULL;
}

static const struct entry_row *entry_at(size_t index) {
        return &row_at(ROW_ENTRY, index)->entry;
}

static const struct registration_row *registration_at(size_t index) {
        return &row_at(ROW_REGISTRATION, index)->registration;
}

static const struct pending_notification *notification_at(size_t index) {
        return &row_at(ROW_NOTIFICATION, index)->notification;
}

static void commit_made(void) {
        state_commit(state, &change_set);
        effects_reset(&effects);
}

static void commit(void) {
        make();
        commit_made();
}

Test(change_set, has_the_last_value_of_a_key) {
        set(S("stored/k"), S("1"));
        set(S("stored/l"), S("2"));
        set(S("stored/k"), S("3"));
        make();
        cr_assert_eq(n_rows(ROW_ENTRY), 2);
        cr_expect(slice_equal(entry_at(0)->key, S("stored/k")));
        cr_expect(slice_equal(entry_at(0)->value, S("3")));
        cr_expect_eq(entry_at(0)->expires_at_ms, EXPIRES_NEVER);
        cr_expect_not(entry_at(0)->has_fence);
        cr_expect(slice_equal(entry_at(1)->value, S("2")));
}

Test(change_set, has_the_expiry_and_the_fencing_token) {
        execute((struct request){ .verb = VERB_SET,
                                  .key = S("stored/k"),
                                  .value = S(""),
                                  .has_px = true,
                                  .px_ms = 5000,
                                  .has_fence = true,
                                  .fence = { now.wall_ms, 7, S("m") } });
        make();
        cr_assert_eq(n_rows(ROW_ENTRY), 1);
        cr_expect_not(row_at(ROW_ENTRY, 0)->is_removed, "an empty value is not a removal");
        cr_expect_eq(entry_at(0)->expires_at_ms - timescale_read(state->timescale, now), 5000);
        cr_expect(entry_at(0)->has_fence);
        cr_expect_eq(entry_at(0)->fence.counter, 7);
}

Test(change_set, has_no_key_that_was_set_and_deleted) {
        set(S("stored/k"), S("1"));
        delete (S("stored/k"));
        make();
        cr_expect_eq(n_rows(ROW_ENTRY), 0);
        cr_expect_eq(change_set.header.clock.counter, engine_stats(state->engine).clock.counter);
}

Test(change_set, removes_what_is_stored) {
        set(S("stored/k"), S("1"));
        set(S("stored/l"), S("1"));
        commit();

        delete (S("stored/k"));
        set(S("stored/k"), S("2"));
        delete (S("stored/k"));
        delete (S("stored/l"));
        set(S("stored/l"), S("2"));
        make();
        cr_assert_eq(n_rows(ROW_ENTRY), 2);
        cr_expect(slice_equal(entry_at(0)->key, S("stored/k")));
        cr_expect(row_at(ROW_ENTRY, 0)->is_removed);
        cr_expect(slice_equal(entry_at(1)->value, S("2")));
}

Test(change_set, has_only_persistent_keys) {
        set(S("k"), S("1"));
        execute((struct request){
                .verb = VERB_SET, .key = S("l"), .value = S("1"), .wants_persistence = true });
        make();
        cr_assert_eq(n_rows(ROW_ENTRY), 1);
        cr_expect(slice_equal(entry_at(0)->key, S("l")));
        commit_made();

        set(S("l"), S("2")); /* is not persistent any more */
        set(S("l"), S("3"));
        make();
        cr_assert_eq(n_rows(ROW_ENTRY), 1);
        cr_expect(slice_equal(entry_at(0)->key, S("l")));
        cr_expect(row_at(ROW_ENTRY, 0)->is_removed);
}

Test(change_set, has_one_change_of_a_registration) {
        watch(S("c"), S("k"), 1);
        watch(S("c"), S("long key"), 1);
        watch(S("d"), S("k"), 2);
        unwatch(S("d"), S("k"), 2);
        make();
        cr_assert_eq(n_rows(ROW_REGISTRATION), 3);
        cr_expect(slice_equal(registration_at(0)->client, S("c")));
        cr_expect(slice_equal(registration_at(0)->key, S("k")));
        cr_expect_eq(registration_at(0)->connection, 1);
        cr_expect_not(row_at(ROW_REGISTRATION, 0)->is_removed);
        cr_expect(slice_equal(registration_at(1)->key, S("long key")));
        cr_expect(row_at(ROW_REGISTRATION, 2)->is_removed, "one was added and has ended");
}

/* The names of an ended registration are decoded from its topic. */
Test(change_set, removes_registrations_and_replaces_them) {
        watch(S("c"), S("k"), 1);
        watch(S("c\xFF"), S("key \xFF"), 2);
        commit();

        unwatch(S("c"), S("k"), 1);
        unwatch(S("c\xFF"), S("key \xFF"), 2);
        watch(S("c\xFF"), S("key \xFF"), 3);
        make();
        cr_assert_eq(n_rows(ROW_REGISTRATION), 2);
        cr_expect(row_at(ROW_REGISTRATION, 0)->is_removed);
        cr_expect(slice_equal(registration_at(0)->client, S("c")));
        cr_expect(slice_equal(registration_at(0)->key, S("k")));
        cr_expect_not(row_at(ROW_REGISTRATION, 1)->is_removed);
        cr_expect(slice_equal(registration_at(1)->client, S("c\xFF")));
        cr_expect(slice_equal(registration_at(1)->key, S("key \xFF")));
        cr_expect_eq(registration_at(1)->connection, 3);
}

/*
 * More registrations of client c end than fit in a step. The last one is made again, and its former
 * registration, which is stored, is then removed without a change.
 */
Test(change_set, removes_a_registration_that_was_made_again_while_its_client_was_ended) {
        struct event gone = { .type = EVENT_CLIENT_DISCONNECTED, .client = S("c") };
        char key[8];

        for (int i = 0; i <= ENGINE_STEP_CHANGES_MAX; i++) {
                snprintf(key, sizeof(key), "%d", i);
                watch(S("c"), slice_from_string(key), 0);
        }
        commit();
        engine_step(state->engine, &gone, now, &effects);
        commit();

        watch(S("c"), slice_from_string(key), 0);
        engine_step(state->engine, &(struct event){ .type = EVENT_TICK }, now, &effects);
        unwatch(S("c"), slice_from_string(key), 0);
        make();
        cr_expect_eq(engine_stats(state->engine).n_registrations, 0);
        cr_assert_eq(n_rows(ROW_REGISTRATION), 1);
        cr_expect(row_at(ROW_REGISTRATION, 0)->is_removed);
        cr_expect(slice_equal(registration_at(0)->key, slice_from_string(key)));
}

Test(change_set, has_the_staged_notifications_and_what_is_delivered) {
        watch(S("c"), S("stored/k"), 1);
        set(S("stored/k"), S("1"));
        commit();
        state_acknowledge(state, 1);
        set(S("stored/k"), S("2"));
        delete (S("stored/k"));
        make();
        cr_expect_eq(change_set.acknowledged, 1);
        cr_assert_eq(n_rows(ROW_NOTIFICATION), 2, "one for each change");
        cr_expect_eq(notification_at(0)->sequence, 2);
        cr_expect(slice_equal(notification_at(0)->value, S("2")));
        cr_expect_null(notification_at(1)->value.data);
        cr_expect_eq(change_set.header.notification_sequence, 3);
}

/* The first reply expires before the request is repeated, still in the same batch. */
Test(change_set, removes_the_first_of_two_replies_to_a_request) {
        const struct request request = { .verb = VERB_SET,
                                         .key = S("stored/k"),
                                         .value = S("1"),
                                         .correlation_data = S("0123456789abcdef") };
        const struct now later = { now.wall_ms, now.mono_ns + (ENGINE_REMEMBERED_MAX_S + 1) * NS_PER_S };

        execute(request);
        execute_at(request, later);
        make();
        cr_assert_eq(n_rows(ROW_REPLY), 3);
        cr_expect_eq(row_at(ROW_REPLY, 0)->reply.number, 1);
        cr_expect_eq(row_at(ROW_REPLY, 1)->reply.number, 2);
        cr_expect_not(row_at(ROW_REPLY, 1)->is_removed);
        cr_expect_eq(row_at(ROW_REPLY, 2)->reply.number, 1);
        cr_expect(row_at(ROW_REPLY, 2)->is_removed);
}

Test(change_set, next_one_has_what_an_undo_does_not_revert) {
        struct version clock;

        effects_forget(&effects, 7);
        set(S("stored/k"), S("1"));
        make();
        cr_expect_eq(n_rows(ROW_REPLY), 1);
        clock = change_set.header.clock;
        cr_assert_eq(state_undo(state, &effects), 0);
        effects_reset(&effects);

        make();
        cr_expect_eq(n_rows(ROW_ENTRY), 0);
        cr_expect_eq(change_set.header.n_commits, 1, "the number is assigned again");
        cr_expect_eq(version_compare(change_set.header.clock, clock), 0);
        cr_assert_eq(n_rows(ROW_REPLY), 1);
        cr_expect(row_at(ROW_REPLY, 0)->is_removed);
        cr_expect_eq(row_at(ROW_REPLY, 0)->reply.number, 7);
        commit();
        make();
        cr_expect_eq(n_rows(ROW_REPLY), 0);
}
