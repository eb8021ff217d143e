/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of the control topic, in one table. */

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/time_units.h"
#include "control/delayed_replies.h"
#include "control/faults.h"
#include "control/internal.h"
#include "control/journal.h"
#include "control/request_waits.h"
#include "control/selection.h"
#include "control/test_clock.h"
#include "exports/export_reader.h"
#include "pipeline/control_operations.h"
#include "pipeline/inspection.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

#define WAIT_TIMEOUT_MS 5000
#define OUTAGE_MAX_MS   3600000

struct control_call {
        struct control *control;
        const struct message *message;
        struct slice words[CONTROL_WORDS_MAX - 1]; /* after the name of the command */
        size_t n_words;
        struct now now;
        struct buf payload;  /* of the reply; empty: +OK */
        bool is_waiting;     /* request_waits.h: the wait sends the reply */
        const char *problem; /* after -EINVAL: what was expected; after -EPERM: why it is refused */
        char problem_buffer[320];
};

/* Refuse the words, whatever the state of the store is. Returns -EINVAL. */
static int call_refuse_words(struct control_call *call, const char *expected) {
        return refuse_words(&call->problem, expected);
}

/* Refuse valid words because of the state of the store. Returns -EPERM. */
static int call_refuse(struct control_call *call, const char *reason) {
        call->problem = reason;
        return -EPERM;
}

static int reply_with_blob(struct control_call *call, const struct buf *text) {
        resp3_append_blob(&call->payload, buf_slice(text));
        return buf_failed(text) ? -ENOMEM : 0;
}

/* The problem if the steps of matching do not suffice. */
#define TOO_MANY_STEPS                                                                                      \
        "the key pattern takes too long to match: use fewer wildcards, or list fewer requests with "        \
        "\"after\""

static const struct query_form of_keys = { QUERY_CLIENT | QUERY_KEY,
                                           "client ID, key PATTERN or nothing was expected" };

/* Read the options from this word on. */
static int call_read_query(struct control_call *call, size_t first, const struct query_form *form,
                           struct query *query) {
        return query_read(query, form, call->words + first, call->n_words - first, &call->problem);
}

/* reset */

struct reset {
        const struct selection *selection;
        uint64_t budget;
};

/* A key belongs to no client, so a selection without a pattern selects no key. */
static bool is_reset_target(void *userdata, struct slice client, struct slice key) {
        struct reset *reset = userdata;
        struct selection of_key = *reset->selection;

        if (!client.data && !of_key.has_key)
                return false;
        of_key.has_client = of_key.has_client && client.data;
        return selection_matches(&of_key, client, VERB_UNKNOWN, key, &reset->budget);
}

/* Remove what is selected. The clock and all else stay. */
static int reset_selected(struct control_call *call, const struct selection *selection) {
        struct reset reset = { .selection = selection, .budget = JOURNAL_STEPS_MAX };
        struct control *control = call->control;

        pipeline_reset_selected(control->pipeline, is_reset_target, &reset);
        fault_rules_remove(&control->faults, selection, &reset.budget);
        journal_remove(&control->journal, selection, &reset.budget);
        journal_remove(&control->notifications, selection, &reset.budget);
        if (reset.budget == 0)
                return call_refuse(call, TOO_MANY_STEPS);
        return 0;
}

/*
 * As after a restart of a store in memory, all keys and registrations are gone, and no notification
 * is sent.
 */
static int reset_store(struct control_call *call) {
        CLEANUP(query_deinit) struct query query = { 0 };
        struct control *control = call->control;
        int r;

        r = call_read_query(call, 0, &of_keys, &query);
        if (r < 0)
                return r;
        if (query.given)
                return reset_selected(call, &query.selection);
        r = pipeline_reset(control->pipeline);
        if (r < 0)
                return r;

        request_waits_end(&control->waits, control->pipeline, INT64_MAX);
        delayed_replies_drop(&control->delayed);
        fault_rules_clear(&control->faults);
        ring_clear(&control->journal);
        ring_clear(&control->notifications);
        test_clock_reset(&control->clock);
        return 0;
}

/* seed */

/* Set all keys of the seed, or none. */
static int set_seed(struct control_call *call) {
        CLEANUP(export_reader_deinit) struct export_reader reader = { 0 };
        int r;

        if (call->n_words != 1)
                return call_refuse_words(call, "one text was expected after seed");

        export_reader_init(&reader, "seed", call->words[0]);
        r = pipeline_set_seed(call->control->pipeline, &reader, call->now);
        if (r != -EBADMSG)
                return r;
        memcpy(call->problem_buffer, reader.fault, sizeof(reader.fault));
        return call_refuse(call, call->problem_buffer);
}

/* clock */

/* Before the reply, expire keys and send delayed replies whose deadlines the clock has passed. */
static int advance_clock(struct control_call *call) {
        struct control *control = call->control;
        int64_t duration_ms;
        int r;

        if (parse_duration(call->words[1], &duration_ms) < 0)
                return call_refuse_words(call,
                                         "a duration, such as 500ms, 10s or 1h, was expected after advance");
        if (test_clock_advance(&control->clock, duration_ms) < 0)
                return call_refuse(call, "the clock can be advanced by 100 years between two resets");

        r = pipeline_expire_keys(control->pipeline, test_clock_read(&control->clock, control->real));
        control_tick(control);
        return r;
}

static int set_clock(struct control_call *call) {
        struct test_clock *clock = &call->control->clock;
        struct slice what = call->n_words > 0 ? call->words[0] : (struct slice){ 0 };

        if (slice_equal_string(what, "advance") && call->n_words == 2)
                return advance_clock(call);
        if (slice_equal_string(what, "freeze") && call->n_words == 1) {
                test_clock_freeze(clock, call->control->real);
                return 0;
        }
        if (slice_equal_string(what, "resume") && call->n_words == 1) {
                test_clock_resume(clock, call->control->real);
                return 0;
        }
        return call_refuse_words(call, "advance DURATION, freeze or resume was expected after clock");
}

/* expire */

static int expire_key(struct control_call *call) {
        int r;

        if (call->n_words != 1)
                return call_refuse_words(call, "one key was expected after expire");
        r = pipeline_expire_key(call->control->pipeline, call->words[0], call->now);
        if (r == -ENOENT)
                return call_refuse(call, "there is no such key");
        return r == -ENODATA ? call_refuse(call, "the key has no deadline: it was set without PX") : r;
}

/* outage */

static int begin_outage(struct control_call *call) {
        bool of_broker = call->n_words > 0 && slice_equal_string(call->words[0], "broker");
        int64_t duration_ms;
        int r;

        if (call->n_words != 2 || (!of_broker && !slice_equal_string(call->words[0], "store")) ||
            parse_duration(call->words[1], &duration_ms) < 0 || duration_ms == 0 ||
            duration_ms > OUTAGE_MAX_MS)
                return call_refuse_words(
                        call, "broker or store, and a duration from 1ms to 1h, was expected after outage");
        r = call->control->begin_outage(call->control->outage_userdata,
                                        of_broker ? OUTAGE_OF_BROKER : OUTAGE_OF_STORE, duration_ms);
        if (r == -ENOTSUP)
                return call_refuse(call,
                                   "only statestored --dev can stop its broker: the store did not start "
                                   "this one");
        return r == -EBUSY ? call_refuse(call, "another outage is about to begin") : r;
}

/* fault */

static int clear_faults(struct control_call *call) {
        CLEANUP(query_deinit) struct query query = { 0 };
        uint64_t budget = JOURNAL_STEPS_MAX;
        int r;

        r = call_read_query(call, 1, &of_keys, &query);
        if (r < 0)
                return r;
        if (query.given)
                fault_rules_remove(&call->control->faults, &query.selection, &budget);
        else
                fault_rules_clear(&call->control->faults);
        return budget == 0 ? call_refuse(call, TOO_MANY_STEPS) : 0;
}

static int set_fault(struct control_call *call) {
        struct control *control = call->control;
        int r;

        if (call->n_words > 0 && slice_equal_string(call->words[0], "clear"))
                return clear_faults(call);
        if (call->n_words > 0 && slice_equal_string(call->words[0], fault_action_name(FAULT_KICK)) &&
            pipeline_broker_kind(control->pipeline) != BROKER_WITH_PLUGIN)
                return call_refuse(call, "kick needs the plugin in the broker");

        r = fault_rules_add(&control->faults, call->words, call->n_words, &call->problem);
        return r == -ENOSPC ? call_refuse(call, "there are too many rules") : r;
}

/* requests */

static int list_journal(struct control_call *call, const struct query_form *form,
                        const struct ring *journal) {
        CLEANUP(query_deinit) struct query query = { 0 };
        CLEANUP(buf_deinit) struct buf text = { 0 };
        int r;

        r = call_read_query(call, 0, form, &query);
        if (r < 0)
                return r;
        r = journal_write(journal, &query.selection, query.after, &text);
        return r < 0 ? call_refuse(call, TOO_MANY_STEPS) : reply_with_blob(call, &text);
}

static int list_requests(struct control_call *call) {
        static const struct query_form form = { QUERY_CLIENT | QUERY_VERB | QUERY_KEY | QUERY_AFTER,
                                                "client, verb, key or after was expected" };

        return list_journal(call, &form, &call->control->journal);
}

/* notifications, watchers */

static int list_notifications(struct control_call *call) {
        static const struct query_form form = { QUERY_CLIENT | QUERY_KEY | QUERY_AFTER,
                                                "client, key or after was expected" };

        return list_journal(call, &form, &call->control->notifications);
}

struct watcher_list {
        const struct selection *selection;
        uint64_t budget;
        struct buf *text;
};

static void add_watcher(void *userdata, const struct registration *watcher) {
        struct watcher_list *list = userdata;

        if (!selection_matches(list->selection, watcher->client_id, VERB_UNKNOWN, watcher->key_name,
                               &list->budget))
                return;
        json_begin(list->text);
        json_add_bytes(list->text, "client", watcher->client_id, false);
        json_add_bytes(list->text, "key", watcher->key_name, false);
        json_end(list->text);
}

static int list_watchers(struct control_call *call) {
        CLEANUP(query_deinit) struct query query = { 0 };
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct watcher_list list = { &query.selection, JOURNAL_STEPS_MAX, &text };
        struct watchers_query page = { 0 };
        int r;

        r = call_read_query(call, 0, &of_keys, &query);
        if (r < 0)
                return r;
        do
                page.position = pipeline_list_watchers(call->control->pipeline, &page, add_watcher, &list);
        while (page.position > 0);
        return list.budget == 0 ? call_refuse(call, TOO_MANY_STEPS) : reply_with_blob(call, &text);
}

/* wait-for */

/* Requests that arrived earlier also count, so a test may send them before it waits. */
static int wait_for_requests(struct control_call *call) {
        static const struct query_form form = { QUERY_CLIENT | QUERY_VERB | QUERY_KEY | QUERY_AFTER |
                                                        QUERY_COUNT | QUERY_TIMEOUT,
                                                "client, verb, key, after, count or timeout was expected" };
        CLEANUP(query_deinit) struct query query = { .count = 1, .timeout_ms = WAIT_TIMEOUT_MS };
        struct control *control = call->control;
        uint64_t n;
        int r;

        r = call_read_query(call, 0, &form, &query);
        if (r < 0)
                return r;
        r = journal_count(&control->journal, &query.selection, query.after, &n);
        if (r < 0)
                return call_refuse(call, TOO_MANY_STEPS);
        if (n >= query.count) {
                buf_append_string(&call->payload, ":1\r\n");
                return 0;
        }
        r = request_waits_add(&control->waits,
                              &(struct request_wait){
                                      .selection = query.selection,
                                      .after = query.after,
                                      .n_remaining = query.count - n,
                                      .deadline_ns = control->real.mono_ns + query.timeout_ms * NS_PER_MS,
                              },
                              call->message);
        if (r == -ENOSPC)
                return call_refuse(call, "too many wait-for requests are pending");
        if (r < 0)
                return r;
        query.selection = (struct selection){ 0 }; /* the wait owns it */
        call->is_waiting = true;
        return 0;
}

/* Execution */

static const struct {
        const char *name;
        int (*execute)(struct control_call *call); /* 0, -ENOMEM; -EINVAL or -EPERM with call->problem */
} control_commands[] = {
        { .name = "reset", .execute = reset_store },
        { .name = "seed", .execute = set_seed },
        { .name = "clock", .execute = set_clock },
        { .name = "expire", .execute = expire_key },
        { .name = "outage", .execute = begin_outage },
        { .name = "fault", .execute = set_fault },
        { .name = "requests", .execute = list_requests },
        { .name = "notifications", .execute = list_notifications },
        { .name = "watchers", .execute = list_watchers },
        { .name = "wait-for", .execute = wait_for_requests },
};

static int execute_command(struct control_call *call, struct slice name) {
        for (size_t i = 0; i < ARRAY_LENGTH(control_commands); i++)
                if (slice_equal_string(name, control_commands[i].name))
                        return control_commands[i].execute(call);
        return call_refuse_words(
                call, "reset, seed, clock, expire, outage, fault, requests, notifications, watchers or "
                      "wait-for was expected");
}

/*
 * Return whether a word is too long to be stored. FAULT_RULES_MAX and REQUEST_WAITS_MAX limit the
 * number of stored words; this limits their length. The text of a seed is exempt: it is not stored.
 */
static bool has_long_word(const struct slice *words, size_t n_words) {
        for (size_t i = 0; i < n_words && !slice_equal_string(words[0], "seed"); i++)
                if (words[i].length > UINT16_MAX)
                        return true;
        return false;
}

static void read_and_execute(struct control_call *call) {
        struct slice words[CONTROL_WORDS_MAX];
        size_t n_words;
        int r;

        if (resp3_read_request(call->message->payload, words, CONTROL_WORDS_MAX, &n_words) < 0) {
                r = call_refuse(call, "syntax error");
        } else if (n_words > CONTROL_WORDS_MAX) {
                r = call_refuse_words(call, "there are too many words");
        } else if (has_long_word(words, n_words)) {
                r = call_refuse_words(call, "a word is longer than 65535 bytes");
        } else {
                call->n_words = n_words - 1;
                memcpy(call->words, words + 1, call->n_words * sizeof(words[0]));
                r = execute_command(call, words[0]);
        }

        if (r == 0 && call->payload.length > 0)
                return;
        buf_reset(&call->payload);
        if (r == 0)
                buf_append_string(&call->payload, "+OK\r\n");
        else
                buf_append_format(&call->payload, "-ERR %s%s\r\n", r == -EINVAL ? CONTROL_USAGE : "",
                                  r == -ENOMEM ? "out of memory" : call->problem);
}

void control_execute(void *userdata, const struct message *message, struct now now) {
        struct control *control = userdata;
        struct control_call call = { .control = control, .message = message, .now = now };

        if (!pipeline_check_properties(control->pipeline, message))
                return;

        read_and_execute(&call);
        if (!call.is_waiting) {
                if (buf_failed(&call.payload))
                        pipeline_count_drop(control->pipeline, DROP_OUT_OF_MEMORY);
                else
                        pipeline_send_reply(control->pipeline, message, buf_slice(&call.payload));
        }
        buf_deinit(&call.payload);
}
