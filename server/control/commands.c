/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of the control topic, in one table. */

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "control/internal.h"
#include "protocol/resp3.h"
#include "records/seed.h"

/* Enough for "fault delay 1s" with all six options. */
#define WORDS_MAX 20

#define NS_PER_MS INT64_C(1000000)

#define WAIT_TIMEOUT_MS     5000
#define WAIT_TIMEOUT_MAX_MS 600000

struct control_call {
        struct control *control;
        const struct message *message;
        struct slice words[WORDS_MAX]; /* after the name of the command */
        size_t n_words;
        struct now now;
        struct buf payload; /* the answer; empty: +OK */
        bool is_waiting;    /* the answer comes later */
        const char *fault;  /* after -EINVAL: what was expected */
        char fault_space[320];
};

static int refuse(struct control_call *call, const char *fault) {
        call->fault = fault;
        return -EINVAL;
}

static bool is_word(struct slice word, const char *text) {
        return slice_equal(word, slice_from_string(text));
}

static int answer_blob(struct control_call *call, const struct buf *text) {
        resp3_append_blob(&call->payload, buf_slice(text));
        return buf_failed(text) ? -ENOMEM : 0;
}

/* reset */

/* Registrations end without notifications, as when a store in memory is restarted. */
static int reset(struct control_call *call) {
        struct control *control = call->control;
        int r;

        if (call->n_words > 0)
                return refuse(call, "nothing was expected behind reset");
        r = pipeline_reset(control->pipeline);
        if (r < 0)
                return r;

        control_end_waits(control, INT64_MAX);
        control_forget_delayed(control);
        faults_clear(&control->faults);
        journal_clear(&control->journal);
        test_clock_reset(&control->clock);
        return 0;
}

/* seed */

/* All of it or nothing. */
static int set_seed(struct control_call *call) {
        CLEANUP(seed_deinit) struct seed seed;
        int r;

        if (call->n_words != 1) {
                seed_init(&seed, "", SLICE_LITERAL(""));
                return refuse(call, "one text was expected after seed");
        }

        seed_init(&seed, "seed", call->words[0]);
        r = pipeline_set_seed(call->control->pipeline, &seed, call->now);
        if (r != -EBADMSG)
                return r;
        memcpy(call->fault_space, seed.fault, sizeof(seed.fault));
        return refuse(call, call->fault_space);
}

/* clock */

/* Work that is due at the new time is done before the answer is sent. */
static int catch_up(struct control_call *call) {
        struct control *control = call->control;
        struct now now = control_read_clock(control, control->real);
        int r;

        r = pipeline_expire_keys(control->pipeline, now);
        control->hooks.tick(control, now);
        return r;
}

static int advance(struct control_call *call) {
        int64_t duration_ms;

        if (parse_duration(call->words[1], &duration_ms) < 0)
                return refuse(call, "a duration, such as 500ms, 10s or 1h, was expected after advance");
        if (test_clock_advance(&call->control->clock, duration_ms) < 0)
                return refuse(call, "the clock can be advanced by 100 years between two resets");
        return catch_up(call);
}

static int skew(struct control_call *call) {
        struct slice duration = call->words[2];
        bool is_behind = duration.length > 0 && duration.data[0] == '-';
        int64_t duration_ms;
        int r;

        if (is_behind)
                duration = (struct slice){ duration.data + 1, duration.length - 1 };
        if (parse_duration(duration, &duration_ms) < 0)
                return refuse(call,
                              "a duration, such as 90s or -90s, was expected after skew and the client");
        r = test_clock_skew(&call->control->clock, call->words[1], is_behind ? -duration_ms : duration_ms);
        return r == -ENOSPC ? refuse(call, "the clocks of too many clients are skewed") : r;
}

static int set_clock(struct control_call *call) {
        struct test_clock *clock = &call->control->clock;
        struct slice what = call->n_words > 0 ? call->words[0] : (struct slice){ 0 };

        if (is_word(what, "advance") && call->n_words == 2)
                return advance(call);
        if (is_word(what, "skew") && call->n_words == 3)
                return skew(call);
        if (is_word(what, "freeze") && call->n_words == 1) {
                test_clock_freeze(clock, call->control->real);
                return 0;
        }
        if (is_word(what, "resume") && call->n_words == 1) {
                test_clock_resume(clock, call->control->real);
                return 0;
        }
        return refuse(call, "advance DURATION, freeze, resume or skew CLIENT DURATION was expected after "
                            "clock");
}

/* fault */

static int set_fault(struct control_call *call) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct control *control = call->control;
        uint64_t number;
        int r;

        if (call->n_words == 1 && is_word(call->words[0], "clear")) {
                faults_clear(&control->faults);
                return 0;
        }
        if (call->n_words == 1 && is_word(call->words[0], "list")) {
                faults_write(&control->faults, &text);
                return answer_blob(call, &text);
        }
        if (call->n_words > 0 && is_word(call->words[0], fault_action_name(FAULT_DISCONNECT)) &&
            pipeline_broker_kind(control->pipeline) != BROKER_WITH_PLUGIN)
                return refuse(call, "disconnect needs the plugin in the broker");

        r = faults_add(&control->faults, call->words, call->n_words, &number, &call->fault);
        if (r == -ENOSPC)
                return refuse(call, "there are too many rules");
        if (r < 0)
                return r;
        buf_append_string(&call->payload, ":");
        buf_append_uint(&call->payload, number);
        buf_append_string(&call->payload, "\r\n");
        return 0;
}

/* requests, wait-for */

struct question {
        struct selection selection;
        uint64_t after, count;
        int64_t timeout_ms;
};

static void question_deinit(struct question *question) {
        selection_deinit(&question->selection);
}

static int read_option(struct control_call *call, struct question *question, struct slice name,
                       struct slice value) {
        int r = selection_set(&question->selection, name, value, &call->fault);

        if (r != 0)
                return r < 0 ? r : 0;
        if (is_word(name, "after"))
                return parse_uint64(value, &question->after) == 0
                               ? 0
                               : refuse(call, "a number was expected after after");
        if (is_word(name, "count") && question->count > 0)
                return parse_uint64(value, &question->count) == 0 && question->count > 0
                               ? 0
                               : refuse(call, "a positive number was expected after count");
        if (is_word(name, "timeout") && question->timeout_ms > 0)
                return parse_duration(value, &question->timeout_ms) == 0 && question->timeout_ms > 0 &&
                                       question->timeout_ms <= WAIT_TIMEOUT_MAX_MS
                               ? 0
                               : refuse(call, "a duration from 1ms to 10m was expected after timeout");
        return refuse(call, question->count > 0 ? "client, verb, key, after, count or timeout was expected"
                                                : "client, verb, key or after was expected");
}

static int read_question(struct control_call *call, struct question *question) {
        int r;

        if (call->n_words % 2 != 0)
                return refuse(call, "the last word has no value");
        for (size_t i = 0; i < call->n_words; i += 2) {
                r = read_option(call, question, call->words[i], call->words[i + 1]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int list_requests(struct control_call *call) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        CLEANUP(question_deinit) struct question question = { 0 };
        int r;

        r = read_question(call, &question);
        if (r < 0)
                return r;
        journal_write(&call->control->journal, &question.selection, question.after, &text);
        return answer_blob(call, &text);
}

/* Requests that have arrived already count too, so a test may send the request first. */
static int wait_for(struct control_call *call) {
        CLEANUP(question_deinit) struct question question = { .count = 1, .timeout_ms = WAIT_TIMEOUT_MS };
        struct control *control = call->control;
        struct request_wait wanted;
        uint64_t n;
        int r;

        r = read_question(call, &question);
        if (r < 0)
                return r;
        n = journal_count(&control->journal, &question.selection, question.after);
        if (n >= question.count) {
                buf_append_string(&call->payload, ":1\r\n");
                return 0;
        }
        wanted = (struct request_wait){
                .selection = question.selection,
                .after = question.after,
                .n_remaining = question.count - n,
                .until_ns = control->real.mono_ns + question.timeout_ms * NS_PER_MS,
        };
        question.selection = (struct selection){ 0 };
        r = control_wait(control, call->message, &wanted);
        selection_deinit(&wanted.selection); /* unless control_wait() has taken it over */
        if (r == -ENOSPC)
                return refuse(call, "too many wait-for requests are pending");
        call->is_waiting = r == 0;
        return r;
}

/* All of them */

static const struct {
        const char *name;
        int (*execute)(struct control_call *call); /* 0, -ENOMEM, or -EINVAL with call->fault */
} requests[] = {
        { "reset", reset },     { "seed", set_seed },          { "clock", set_clock },
        { "fault", set_fault }, { "requests", list_requests }, { "wait-for", wait_for },
};

static int execute(struct control_call *call, struct slice name) {
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
                if (is_word(name, requests[i].name))
                        return requests[i].execute(call);
        return refuse(call, "reset, seed, clock, fault, requests or wait-for was expected");
}

/*
 * The number of stored words is limited, so limit their length too. The text of a seed is exempt: it is not
 * stored after reading.
 */
static bool has_long_word(const struct slice *words, size_t n_words) {
        for (size_t i = 0; i < n_words && !is_word(words[0], "seed"); i++)
                if (words[i].length > UINT16_MAX)
                        return true;
        return false;
}

static void read_and_execute(struct control_call *call) {
        struct slice words[WORDS_MAX + 1];
        size_t n_words;
        int r;

        if (resp3_read_request(call->message->payload, words, WORDS_MAX + 1, &n_words) < 0) {
                r = refuse(call, "syntax error");
        } else if (n_words > WORDS_MAX + 1) {
                r = refuse(call, "there are too many words");
        } else if (has_long_word(words, n_words)) {
                r = refuse(call, "a word is longer than 65535 bytes");
        } else {
                call->n_words = n_words - 1;
                memcpy(call->words, words + 1, call->n_words * sizeof(words[0]));
                r = execute(call, words[0]);
        }

        if (r == 0 && call->payload.length > 0)
                return;
        buf_reset(&call->payload);
        buf_append_string(&call->payload, r == 0 ? "+OK" : "-ERR ");
        if (r < 0)
                buf_append_string(&call->payload, r == -EINVAL ? call->fault : "out of memory");
        buf_append_string(&call->payload, "\r\n");
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
