/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random histories with failed commits: after each commit, a copy that applies the change sets is
 * equal to the original.
 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/time_units.h"
#include "engine/internal.h"
#include "state/state.h"
#include "storage/stored_form.h"
#include "support/follow.h"
#include "support/limits.h"

#define S SLICE_LITERAL

#define N_HISTORIES 60
#define N_BATCHES   80
#define N_NAMES     4

static const struct now start = { .wall_ms = INT64_C(1696374425000), .mono_ns = NS_PER_S };

static uint64_t random_state;

static uint64_t below(uint64_t n) {
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (random_state >> 33) % n;
}

/* 1. The content of a state as sorted lines */

struct content {
        struct buf *lines;
        size_t n, capacity;
};

static struct buf *content_add(struct content *content, const char *kind, uint64_t number) {
        struct buf *line;

        cr_assert_eq(array_reserve((void **)&content->lines, &content->capacity, content->n + 1,
                                   sizeof(*content->lines)),
                     0);
        line = &content->lines[content->n++];
        *line = (struct buf){ 0 };
        buf_append_format(line, "%s %llu ", kind, (unsigned long long)number);
        return line;
}

static void content_deinit(struct content *content) {
        for (size_t i = 0; i < content->n; i++)
                buf_deinit(&content->lines[i]);
        free(content->lines);
}

static void add_row(struct content *content, const char *kind, uint64_t number, struct row row) {
        stored_row_append(content_add(content, kind, number), &row);
}

static void add_entries(struct content *content, const struct state *state) {
        const struct keyspace *keyspace = engine_keyspace(state->engine);
        struct keyspace_cursor cursor = { 0 };
        struct entry *entry;

        while ((entry = keyspace_each(keyspace, &cursor)))
                if (entry->is_persistent)
                        add_row(content, "entry", 0,
                                entry_row_of(entry, keyspace_deadline(keyspace, entry), state->timescale));
}

static void add_registrations(struct content *content, const struct state *state) {
        struct registration_cursor cursor = { 0 };
        const struct registration *registration;

        while ((registration = registrations_each(&state->engine->registrations, &cursor)))
                add_row(content, "registration", 0, registration_row_of(registration));
}

static void add_replies(struct content *content, const struct state *state, struct now now) {
        for (const struct remembered_reply *reply = state->engine->dedup.oldest; reply; reply = reply->next)
                if (!dedup_is_expired(reply, now.mono_ns))
                        add_row(content, "reply", reply->number, follow_reply_row(reply, state->timescale));
}

static void add_executions(struct content *content, const struct state *state) {
        const struct executed_request *places = state->engine->dedup.executions;

        for (size_t place = 0; place < EXECUTIONS_PLACES; place++)
                if (places[place].number > 0)
                        add_row(content, "execution", place,
                                (struct row){ .type = ROW_EXECUTION, .execution = places[place] });
}

static void add_notifications(struct content *content, const struct state *state) {
        const struct pending_notification *next;
        uint64_t sequence = 0;

        while ((next = notification_queue_after(&state->notifications, sequence))) {
                sequence = next->sequence;
                add_row(content, "notification", sequence,
                        (struct row){ .type = ROW_NOTIFICATION, .notification = *next });
        }
}

static int compare_lines(const void *a, const void *b) {
        struct slice left = buf_slice(a), right = buf_slice(b);
        size_t length = left.length < right.length ? left.length : right.length;
        int order = memcmp(left.data, right.data, length);

        return order ? order : (left.length > right.length) - (left.length < right.length);
}

static void content_fill(struct content *content, const struct state *state, struct now now) {
        stored_header_append(content_add(content, "header", 0), &state->header);
        add_entries(content, state);
        add_registrations(content, state);
        add_replies(content, state, now);
        add_executions(content, state);
        add_notifications(content, state);
        qsort(content->lines, content->n, sizeof(*content->lines), compare_lines);
}

static void expect_equal(const struct state *a, const struct state *b, struct now now) {
        CLEANUP(content_deinit) struct content left = { 0 }, right = { 0 };

        content_fill(&left, a, now);
        content_fill(&right, b, now);
        cr_assert_eq(left.n, right.n);
        for (size_t i = 0; i < left.n; i++)
                cr_assert_eq(compare_lines(&left.lines[i], &right.lines[i]), 0, "\"%s\", \"%s\"",
                             buf_text(&left.lines[i]), buf_text(&right.lines[i]));
}

/* 2. Histories */

struct history {
        struct state *state, *copy;
        struct effects effects;
        struct now now;
        uint64_t n_requests;
        size_t n_committed, n_failed;
};

static const struct slice keys[N_NAMES] = { S("a"), S("b"), S("stored/c"), S("stored/d") };
static const struct slice clients[N_NAMES] = { S("c0"), S("c1"), S("c2"), S("c3") };

/* Few bytes for remembered replies, so that some are forgotten before their time. */
static const struct persist_rule stored_rule = { .text = S("stored/*") };

static struct engine_config make_config(void) {
        struct engine_config config = {
                .node_id = S("StateStore"),
                .limits = TEST_LIMITS,
                .persist = below(2) ? PERSIST_ALL : PERSIST_CUSTOM,
                .persist_rules = &stored_rule,
                .n_persist_rules = 1,
        };

        if (below(2))
                config.limits.max_remembered_bytes = 2000;
        return config;
}

static void request(struct history *history) {
        static const enum verb verbs_used[] = { VERB_SET, VERB_SET,       VERB_SET,
                                                VERB_DEL, VERB_KEYNOTIFY, VERB_KEYNOTIFY };
        size_t client = below(N_NAMES);
        char correlation[32], value[32];
        struct request request = {
                .verb = verbs_used[below(ARRAY_LENGTH(verbs_used))],
                .key = keys[below(N_NAMES)],
                .client = clients[client],
                .connection = below(4) ? client + 1 : 0,
                .response_topic = S("replies"),
                .wants_persistence = below(3) == 0,
        };
        struct reply reply;

        snprintf(correlation, sizeof(correlation), "correlation-%08llu",
                 (unsigned long long)history->n_requests++);
        if (below(2)) /* also numbers that are executed already */
                request.number = history->n_requests - below(2);
        request.correlation_data = slice_from_string(correlation);
        if (request.verb == VERB_SET) {
                snprintf(value, sizeof(value), "value-%llu", (unsigned long long)below(1000));
                request.value = slice_from_string(value);
                request.has_px = below(3) == 0;
                request.px_ms = (int64_t)below(5000);
                request.has_fence = below(3) == 0;
                request.fence = (struct hlc){ history->now.wall_ms, history->n_requests, S("m") };
        }
        request.stop = request.verb == VERB_KEYNOTIFY && below(3) == 0;
        engine_request(history->state->engine, &request, &reply, history->now, &history->effects);
        reply_deinit(&reply);
}

static void other_event(struct history *history) {
        struct event event = { .type = EVENT_TICK };

        if (below(4) == 0) {
                event.type = EVENT_CONNECTION_CLOSED;
                event.connection = 1 + below(N_NAMES);
        } else if (below(4) == 0) {
                event.type = EVENT_CLIENT_DISCONNECTED;
                event.client = clients[below(N_NAMES)];
        }
        cr_assert_eq(engine_step(history->state->engine, &event, history->now, &history->effects), 0);
}

static void pass(struct history *history) {
        int64_t ms = (int64_t)below(below(10) ? 300 : 100000);

        history->now.mono_ns += ms * NS_PER_MS;
        history->now.wall_ms += below(10) ? ms : -ms; /* sometimes the wall clock is set back */
}

/* Let the engine do all that is due, so that no ended registration remains in memory. */
static void settle(struct history *history) {
        struct event tick = { .type = EVENT_TICK };

        while (engine_next_deadline(history->state->engine) <= history->now.mono_ns)
                cr_assert_eq(engine_step(history->state->engine, &tick, history->now, &history->effects), 0);
}

static void end_batch(struct history *history) {
        struct change_set change_set;

        settle(history);
        cr_assert_eq(state_stage(history->state, &history->effects), 0);
        cr_assert_eq(state_make_change_set(history->state, &history->effects, history->now, &change_set), 0);
        if (below(4) == 0) {
                cr_assert_eq(state_undo(history->state, &history->effects), 0);
                history->n_failed++;
        } else {
                cr_assert_eq(follow_commit(history->copy, &change_set, history->now), 0);
                state_commit(history->state, &change_set);
                expect_equal(history->state, history->copy, history->now);
                history->n_committed++;
        }
        effects_reset(&history->effects);
        if (below(3) == 0)
                state_acknowledge(history->state, below(history->state->notifications.last_sequence + 1));
}

static void run(struct history *history) {
        struct state_header header = { .digest_key = { { 1 } }, .instance_id = "instance-1" };
        struct engine_config config = make_config(), copy_config = config;

        copy_config.limits.max_remembered_bytes = 1 << 20;
        history->now = start;
        cr_assert_eq(state_new(&history->state, &config, &header, start), 0);
        cr_assert_eq(state_new(&history->copy, &copy_config, &header, start), 0);
        for (size_t i = 0; i < N_BATCHES; i++) {
                for (uint64_t n = below(12); n > 0; n--)
                        if (below(5))
                                request(history);
                        else
                                other_event(history);
                end_batch(history);
                pass(history);
        }
        effects_deinit(&history->effects);
        state_free(history->state);
        state_free(history->copy);
}

Test(state, copy_is_equal_after_each_commit) {
        struct history history = { 0 };

        for (uint64_t seed = 1; seed <= N_HISTORIES; seed++) {
                random_state = seed;
                run(&history);
                history =
                        (struct history){ .n_committed = history.n_committed, .n_failed = history.n_failed };
        }
        cr_expect_gt(history.n_committed, N_HISTORIES * N_BATCHES / 2);
        cr_expect_gt(history.n_failed, N_HISTORIES * N_BATCHES / 8);
}

/* 3. Headers */

static int new_state(struct state **ret_state, struct slice node_id, const char *stored,
                     uint64_t n_commits) {
        struct engine_config config = { .node_id = node_id };
        struct state_header header = { .instance_id = "instance-1", .n_commits = n_commits };

        snprintf(header.node_id, sizeof(header.node_id), "%s", stored);
        return state_new(ret_state, &config, &header, start);
}

Test(state, node_id_is_fixed_by_the_first_commit) {
        struct state *state;

        cr_assert_eq(new_state(&state, S("A"), "B", 0), 0);
        cr_expect_str_eq(state->header.node_id, "A");
        state_free(state);
        cr_assert_eq(new_state(&state, (struct slice){ 0 }, "B", 1), 0);
        cr_expect(slice_equal(engine_config(state->engine)->node_id, S("B")));
        state_free(state);
        cr_assert_eq(new_state(&state, (struct slice){ 0 }, "", 0), 0);
        cr_expect_str_eq(state->header.node_id, NODE_ID_DEFAULT);
        state_free(state);
        cr_expect_eq(new_state(&state, S("A"), "B", 1), -EBADMSG);
}

/* The notifications are gone from the queue, but not yet from the storage. */
Test(state, needs_a_commit_after_a_delivery_and_after_a_step_of_the_wall_clock) {
        struct effects effects = { 0 };
        struct change_set change_set;
        struct now now = start;
        struct state *state;

        cr_assert_eq(new_state(&state, S("A"), "", 0), 0);
        cr_assert_eq(state_make_change_set(state, &effects, now, &change_set), 0);
        state_commit(state, &change_set);
        cr_expect_not(state_needs_commit(state, now));

        state_acknowledge(state, 3);
        cr_expect(state_needs_commit(state, now));
        cr_assert_eq(state_make_change_set(state, &effects, now, &change_set), 0);
        cr_expect_eq(change_set.acknowledged, 3);
        cr_expect_eq(change_set.header.notification_sequence, 3);
        cr_expect_eq(change_set.header.n_commits, 2);
        state_commit(state, &change_set);
        cr_expect_not(state_needs_commit(state, now));

        now.wall_ms += 400;
        cr_expect_not(state_needs_commit(state, now), "as much as clocks may drift");
        now.wall_ms += 400;
        cr_expect(state_needs_commit(state, now));
        cr_assert_eq(state_make_change_set(state, &effects, now, &change_set), 0);
        state_commit(state, &change_set);
        cr_expect_not(state_needs_commit(state, now));
        state_free(state);
}
