/* SPDX-License-Identifier: Apache-2.0 */

/* storage_load_state(): a state is created from the content of a storage. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time_units.h"
#include "engine/internal.h"
#include "storage/storage.h"
#include "support/limits.h"
#include "unit/support/capture.h"
#include "unit/support/entries.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

#define ENTRY_BYTES_MAX 12345

/*
 * The timescale continues at READING_MS, because the wall clock is behind by 1 ms at most: see
 * timescale_resume().
 */
#define READING_MS INT64_C(3000)
static const struct now now = { .wall_ms = READING_MS + 1, .mono_ns = 5000 };

CLEANUP_FUNCTION(cleanup_state, struct state *, state_free)

/* A storage that passes this header and these rows to the sink, and then returns `result`. */
struct script {
        struct storage storage;            /* must be the first member: the operations cast it */
        const struct state_header *header; /* NULL: the storage is empty */
        const struct row *rows;
        size_t n_rows;
        size_t n_repeats; /* of the last row */
        int result;
};

static int load(struct storage *storage, const struct storage_sink *sink) {
        const struct script *script = (const struct script *)storage;
        int r = script->header ? sink->header(sink->userdata, script->header) : 0;

        for (size_t i = 0; i < script->n_rows && r == 0; i++)
                r = sink->row(sink->userdata, &script->rows[i]);
        for (size_t i = 0; i < script->n_repeats && r == 0; i++)
                r = sink->row(sink->userdata, &script->rows[script->n_rows - 1]);
        return r < 0 ? r : script->result;
}

static const struct storage_operations operations = { .load = load,
                                                      .limits = { .entry_bytes = ENTRY_BYTES_MAX } };

/* node_id: of the configuration; absent: none. */
static int load_script(struct state **ret_state, struct script script, struct slice node_id) {
        struct engine_config config = { .node_id = node_id, .limits = TEST_LIMITS, .max_entry_bytes = 1 };

        script.storage.operations = &operations;
        return storage_load_state(ret_state, &script.storage, &config, now);
}

static const struct state_header stored_header = {
        .n_commits = 9,
        .node_id = "node",
        .digest_key = { { 77 } },
        .table_key = { { 78 } },
        .token_key = { { 79 }, { 80 } },
        .instance_id = "0123456789abcdef0123456789abcdef",
        .clock = { 1000, 3 },
        .notification_sequence = 7,
        .reading_ms = READING_MS,
};

/* Load the stored header and these rows. */
#define LOAD(ret_state, stored_rows)                                                                        \
        load_script((ret_state),                                                                            \
                    (struct script){ .header = &stored_header,                                              \
                                     .rows = (stored_rows),                                                 \
                                     .n_rows = N_ROWS(stored_rows) },                                       \
                    (struct slice){ 0 })

#define N_REPLIES 2

static const struct row everything[] = {
        { .type = ROW_ENTRY,
          .entry = { .key = { (const uint8_t *)"k", 1 },
                     .value = { (const uint8_t *)"v", 1 },
                     .version = { 900, 1 },
                     .expires_at_ms = READING_MS + 10,
                     .has_fence = true,
                     .fence = { 50, 0, { (const uint8_t *)"m", 1 } } } },
        { .type = ROW_ENTRY,
          .entry = { .key = { (const uint8_t *)"l", 1 },
                     .value = { (const uint8_t *)"w", 1 },
                     .version = { 901, 1 },
                     .expires_at_ms = EXPIRES_NEVER } },
        { .type = ROW_REGISTRATION,
          .registration = { .client = { (const uint8_t *)"c", 1 },
                            .key = { (const uint8_t *)"k", 1 },
                            .connection = 7,
                            .user = { (const uint8_t *)"u", 1 } } },
        { .type = ROW_REPLY,
          .reply = { .number = 4,
                     .digest = { { 4 } },
                     .result = { .outcome = 1 },
                     .forget_at_ms = READING_MS + 20 } },
        { .type = ROW_REPLY,
          .reply = { .number = 6,
                     .digest = { { 6 } },
                     .result = { .outcome = 2 },
                     .forget_at_ms = READING_MS + 30 } },
        { .type = ROW_NOTIFICATION,
          .notification = { .sequence = 6,
                            .version = { 950, 2 },
                            .key = { (const uint8_t *)"k", 1 },
                            .value = { (const uint8_t *)"v", 1 },
                            .recipients = { (const uint8_t *)"one, two", 8 } } },
        { .type = ROW_NOTIFICATION,
          .notification = { .sequence = 7, .version = { 960, 2 }, .key = { (const uint8_t *)"k", 1 } } },
};

static const struct row *const registration = &everything[2], *const replies = &everything[3],
                               *const notifications = &everything[5];

Test(load_state, restores_everything_stored) {
        CLEANUP(cleanup_state) struct state *state = NULL;
        struct engine *engine;
        struct entry *entry;
        struct hlc fence;

        cr_assert_eq(LOAD(&state, everything), 0);
        engine = state->engine;
        cr_expect_eq(engine_stats(engine).clock.wall_ms, 1000);
        cr_expect_eq(engine_stats(engine).clock.counter, 3);
        cr_expect_not(engine_may_lose_keys(engine));

        entry = find_entry(engine, S("k"));
        cr_assert_not_null(entry);
        cr_expect(slice_equal(entry_value(entry), S("v")));
        cr_expect_eq(entry_version(entry).wall_ms, 900);
        cr_expect_eq(keyspace_deadline(engine_keyspace(engine), entry), now.mono_ns + 10 * NS_PER_MS);
        cr_expect(entry_fence(entry, &fence) && fence.wall_ms == 50);
        cr_expect(entry->is_persistent);
        cr_assert_not_null(find_entry(engine, S("l")));
        cr_expect_eq(keyspace_deadline(engine_keyspace(engine), find_entry(engine, S("l"))), DEADLINE_NEVER);
        cr_expect_eq(engine_next_deadline(engine), now.mono_ns + 10 * NS_PER_MS);

        cr_assert_not_null(engine_find_registration(engine, S("c"), S("k")));
        cr_expect(slice_equal(engine_find_registration(engine, S("c"), S("k"))->user, S("u")));
        cr_expect(registrations_of_connection(engine_registrations(engine), 7));
        for (size_t i = 0; i < N_REPLIES; i++) {
                const struct reply_row *reply = &replies[i].reply;
                const struct remembered_reply *remembered = dedup_find(&engine->dedup, &reply->digest);

                cr_assert_not_null(remembered);
                cr_expect_eq(remembered->number, reply->number);
                cr_expect_eq(remembered->result.outcome, reply->result.outcome);
        }
}

Test(load_state, takes_the_header) {
        CLEANUP(cleanup_state) struct state *state = NULL;

        cr_assert_eq(LOAD(&state, everything), 0);
        cr_expect_eq(state->header.n_commits, stored_header.n_commits);
        cr_expect_str_eq(state->header.node_id, stored_header.node_id);
        cr_expect_str_eq(state->header.instance_id, stored_header.instance_id);
        cr_expect_eq(state->header.notification_sequence, stored_header.notification_sequence);
        cr_expect_arr_eq(&engine_config(state->engine)->digest_key, &stored_header.digest_key,
                         sizeof(stored_header.digest_key));
        cr_expect_arr_eq(&engine_config(state->engine)->table_key, &stored_header.table_key,
                         sizeof(stored_header.table_key));
        cr_expect_arr_eq(&engine_config(state->engine)->token_key, &stored_header.token_key,
                         sizeof(stored_header.token_key));
        cr_expect(slice_equal(engine_config(state->engine)->node_id, S("node")));
        cr_expect_not(state_needs_commit(state, now));
}

/* Return whether the reply counts at this time after the start. */
static bool is_remembered(const struct state *state, const struct row *row, int64_t after_ns) {
        const struct remembered_reply *remembered = dedup_find(&state->engine->dedup, &row->reply.digest);

        return remembered && !dedup_is_expired(remembered, now.mono_ns + after_ns);
}

/* The time of the first one has passed; the last one is later than any reply is remembered. */
Test(load_state, replies_count_until_their_time) {
        static const struct row timed[] = {
                { .type = ROW_REPLY,
                  .reply = { .number = 1, .digest = { { 1 } }, .forget_at_ms = READING_MS - 1000 } },
                { .type = ROW_REPLY,
                  .reply = { .number = 2, .digest = { { 2 } }, .forget_at_ms = READING_MS + 1 } },
                { .type = ROW_REPLY,
                  .reply = { .number = 3, .digest = { { 3 } }, .forget_at_ms = INT64_MAX } },
        };
        CLEANUP(cleanup_state) struct state *state = NULL;

        cr_assert_eq(LOAD(&state, timed), 0);
        cr_expect_not(is_remembered(state, &timed[0], 0));
        cr_expect(is_remembered(state, &timed[1], NS_PER_MS - 1));
        cr_expect_not(is_remembered(state, &timed[1], NS_PER_S));
        cr_expect(is_remembered(state, &timed[2], ENGINE_REMEMBERED_MAX_S * NS_PER_S));
        cr_expect_not(is_remembered(state, &timed[2], (ENGINE_REMEMBERED_MAX_S + 2) * NS_PER_S));
}

Test(load_state, keeps_pending_notifications_in_order) {
        CLEANUP(cleanup_state) struct state *state = NULL;
        const struct pending_notification *first, *second;

        cr_assert_eq(LOAD(&state, everything), 0);
        first = notification_queue_after(&state->notifications, 0);
        cr_assert_not_null(first);
        cr_expect_eq(first->sequence, 6);
        cr_expect_eq(first->version.wall_ms, 950);
        cr_expect(slice_equal(first->key, S("k")));
        cr_expect(slice_equal(first->value, S("v")));
        cr_expect(slice_equal(first->recipients, S("one, two")));
        second = notification_queue_after(&state->notifications, 6);
        cr_assert_not_null(second);
        cr_expect_eq(second->sequence, 7);
        cr_expect_null(second->value.data);
        cr_expect_null(notification_queue_after(&state->notifications, 7));
        cr_expect_eq(state->notifications.last_sequence, 7);
}

Test(load_state, sequences_continue_when_no_notification_is_pending) {
        CLEANUP(cleanup_state) struct state *state = NULL;

        cr_assert_eq(load_script(&state, (struct script){ .header = &stored_header }, (struct slice){ 0 }),
                     0);
        cr_expect_null(notification_queue_after(&state->notifications, 0));
        cr_expect_eq(state->notifications.last_sequence, 7);
}

Test(load_state, keys_that_the_restart_has_lost_are_notified) {
        struct state_header header = stored_header;
        CLEANUP(cleanup_state) struct state *state = NULL;

        header.keys_may_be_lost = true;
        cr_assert_eq(load_script(&state, (struct script){ .header = &header }, (struct slice){ 0 }), 0);
        cr_expect(engine_may_lose_keys(state->engine));
}

Test(load_state, empty_storage_gives_an_empty_state_with_a_new_header) {
        CLEANUP(cleanup_state) struct state *state = NULL, *other = NULL;

        cr_assert_eq(load_script(&state, (struct script){ 0 }, (struct slice){ 0 }), 0);
        cr_assert_eq(load_script(&other, (struct script){ 0 }, (struct slice){ 0 }), 0);
        cr_expect_eq(state->header.n_commits, 0);
        cr_expect_eq(strlen(state->header.instance_id), sizeof(state->header.instance_id) - 1);
        cr_expect_str_neq(state->header.instance_id, other->header.instance_id);
        cr_expect_arr_eq(&engine_config(state->engine)->digest_key, &state->header.digest_key,
                         sizeof(struct hash_key));
        cr_expect_eq(engine_stats(state->engine).n_keys, 0);
        cr_expect_null(notification_queue_after(&state->notifications, 0));
}

Test(load_state, largest_entry_is_that_of_the_storage) {
        CLEANUP(cleanup_state) struct state *state = NULL;

        cr_assert_eq(LOAD(&state, everything), 0);
        cr_expect_eq(engine_config(state->engine)->max_entry_bytes, ENTRY_BYTES_MAX);
}

static const struct {
        const char *name;
        const char *configured; /* NULL: none */
        const char *stored;     /* NULL: the storage is empty */
        uint64_t n_commits;
        const char *expected; /* NULL: -EBADMSG */
} node_ids[] = {
        { "empty storage", NULL, NULL, 0, NODE_ID_DEFAULT },
        { "empty storage, configured", "a", NULL, 0, "a" },
        { "no commit, none stored", NULL, "", 0, NODE_ID_DEFAULT },
        { "no commit, none stored, configured", "a", "", 0, "a" },
        { "no commit", NULL, "b", 0, "b" },
        { "no commit, another configured", "a", "b", 0, "a" },
        { "fixed", NULL, "b", 1, "b" },
        { "fixed, the same configured", "b", "b", 1, "b" },
        { "fixed, another configured", "a", "b", 1, NULL },
        { "fixed, a longer one configured", "bb", "b", 1, NULL },
};

Test(load_state, node_id_is_fixed_by_the_first_commit) {
        for (size_t i = 0; i < N_ROWS(node_ids); i++) {
                CLEANUP(cleanup_state) struct state *state = NULL;
                CLEANUP(cleanup_free) char *text = NULL;
                struct state_header header = { .n_commits = node_ids[i].n_commits, .instance_id = "i" };
                struct script script = { .header = node_ids[i].stored ? &header : NULL };
                struct slice configured = { 0 };
                struct capture capture;
                int r;

                if (node_ids[i].configured)
                        configured = slice_from_string(node_ids[i].configured);
                if (node_ids[i].stored)
                        snprintf(header.node_id, sizeof(header.node_id), "%s", node_ids[i].stored);

                capture_start(&capture, STDERR_FILENO);
                r = load_script(&state, script, configured);
                text = capture_end(&capture);
                cr_assert_eq(r, node_ids[i].expected ? 0 : -EBADMSG, ROW(node_ids, i));
                if (node_ids[i].expected) {
                        cr_expect_str_eq(state->header.node_id, node_ids[i].expected, ROW(node_ids, i));
                        cr_expect(slice_equal(engine_config(state->engine)->node_id,
                                              slice_from_string(node_ids[i].expected)),
                                  ROW(node_ids, i));
                } else {
                        cr_expect_not_null(strstr(text, "use --node-id b"), "%s", text);
                }
        }
}

Test(load_state, fails_if_loading_fails) {
        static const int errors[] = { -EIO, -EBADMSG, -ENOMEM };

        for (size_t i = 0; i < N_ROWS(errors); i++)
                for (size_t n = 0; n <= N_ROWS(everything); n++) {
                        struct state *state = NULL;

                        cr_expect_eq(load_script(&state,
                                                 (struct script){ .header = &stored_header,
                                                                  .rows = everything,
                                                                  .n_rows = n,
                                                                  .result = errors[i] },
                                                 (struct slice){ 0 }),
                                     errors[i], "%zu", n);
                        cr_expect_null(state);
                }
}

static const struct {
        const char *name;
        uint64_t numbers[2];   /* of two replies; 0: none */
        uint64_t sequences[2]; /* of two notifications; 0: none */
        int expected;
} orders[] = {
        { "ascending replies", { 4, 6 }, { 0 }, 0 },
        { "equal replies", { 4, 4 }, { 0 }, -EBADMSG },
        { "descending replies", { 6, 4 }, { 0 }, -EBADMSG },
        { "following notifications", { 0 }, { 6, 7 }, 0 },
        { "equal notifications", { 0 }, { 7, 7 }, -EBADMSG },
        { "descending notifications", { 0 }, { 7, 6 }, -EBADMSG },
        { "a notification is missing", { 0 }, { 5, 7 }, -EBADMSG },
};

Test(load_state, another_order_is_refused) {
        for (size_t i = 0; i < N_ROWS(orders); i++) {
                CLEANUP(cleanup_state) struct state *state = NULL;
                bool has_replies = orders[i].numbers[0] > 0;
                struct row rows[2];

                for (size_t j = 0; j < 2; j++) {
                        rows[j] = has_replies ? replies[1] : notifications[0];
                        if (has_replies) {
                                rows[j].reply.number = orders[i].numbers[j];
                                rows[j].reply.digest.bytes[0] = (uint8_t)j;
                        } else {
                                rows[j].notification.sequence = orders[i].sequences[j];
                        }
                }
                cr_expect_eq(LOAD(&state, rows), orders[i].expected, ROW(orders, i));
        }
}

Test(load_state, logs_progress) {
        CLEANUP(cleanup_state) struct state *state = NULL;
        CLEANUP(cleanup_free) char *text = NULL;
        struct capture capture;
        int r;

        log_set_level(LOG_INFO);
        capture_start(&capture, STDERR_FILENO);
        r = load_script(
                &state,
                (struct script){
                        .header = &stored_header, .rows = registration, .n_rows = 1, .n_repeats = 249999 },
                (struct slice){ 0 });
        text = capture_end(&capture);
        cr_expect_eq(r, 0);
        cr_expect_eq(capture_count(text, "loading: rows="), 2, "%s", text);
        cr_expect_not_null(strstr(text, "rows=100000"), "%s", text);
        cr_expect_not_null(strstr(text, "rows=200000"), "%s", text);
}
