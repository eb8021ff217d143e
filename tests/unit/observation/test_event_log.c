/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "observation/event_log.h"

#define S SLICE_LITERAL

static struct event_log *events;

static void setup(void) {
        cr_assert_eq(event_log_new(&events), 0);
}

static void teardown(void) {
        event_log_free(events);
}

TestSuite(event_log, .init = setup, .fini = teardown);

static void add(enum logged_kind kind, struct slice key) {
        event_log_add(events, &(struct logged_event){ .kind = kind, .key = key, .verb = VERB_SET });
}

/* Return the key of the next event, "" if there is none; a number before it says how many were missed. */
static struct slice next_key(uint64_t *number, uint64_t *ret_n_lost) {
        const struct logged_event *event;

        *ret_n_lost = 0;
        event = event_log_next(events, number, ret_n_lost);
        if (event)
                cr_expect_eq(event->number, *number);
        return event ? event->key : S("");
}

Test(event_log, shows_events_after_the_commit) {
        uint64_t number = 0, n_lost;

        add(LOGGED_SET, S("a"));
        cr_expect(slice_equal(next_key(&number, &n_lost), S("")));
        event_log_commit(events);
        add(LOGGED_SET, S("b"));
        cr_expect(slice_equal(next_key(&number, &n_lost), S("a")));
        cr_expect(slice_equal(next_key(&number, &n_lost), S("")));
        cr_expect_eq(n_lost, 0);
        cr_expect_eq(event_log_last(events), 1);
}

Test(event_log, shows_a_rolled_back_request_as_a_refused_one) {
        const struct logged_event *event;
        uint64_t number = 0, n_lost = 0;

        add(LOGGED_SET, S("before"));
        event_log_commit(events);
        add(LOGGED_SET, S("a"));
        add(LOGGED_EXPIRE, S("b"));
        event_log_add(events, &(struct logged_event){
                                      .kind = LOGGED_REFUSED, .key = S("c"), .error = S("own error") });
        event_log_roll_back(events, S("the storage has failed"));

        cr_expect_eq(event_log_next(events, &number, &n_lost)->kind, LOGGED_SET);
        event = event_log_next(events, &number, &n_lost);
        cr_expect(slice_equal(event->key, S("a")));
        cr_expect_eq(event->kind, LOGGED_REFUSED);
        cr_expect(slice_equal(event->error, S("the storage has failed")));
        event = event_log_next(events, &number, &n_lost);
        cr_expect(slice_equal(event->key, S("c")), "the expiry is not shown");
        cr_expect(slice_equal(event->error, S("own error")));
        cr_expect_null(event_log_next(events, &number, &n_lost));
        cr_expect_eq(n_lost, 0);
}

Test(event_log, tells_a_slow_reader_how_many_it_missed) {
        uint64_t number = 0, n_lost;

        add(LOGGED_SET, S("first"));
        event_log_commit(events);
        next_key(&number, &n_lost);
        for (int i = 0; i < EVENT_LOG_EVENTS_MAX + 7; i++)
                add(LOGGED_SET, S("k"));
        event_log_commit(events);
        cr_expect(slice_equal(next_key(&number, &n_lost), S("k")));
        cr_expect_eq(n_lost, 7);
        cr_expect_eq(event_log_before_oldest(events), 8);
        for (int i = 1; i < EVENT_LOG_EVENTS_MAX; i++)
                cr_assert(slice_equal(next_key(&number, &n_lost), S("k")));
        cr_expect(slice_equal(next_key(&number, &n_lost), S("")));
}

Test(event_log, shortens_long_texts_and_is_limited_by_their_bytes) {
        static uint8_t bytes[1 << 16];
        const struct slice long_text = { bytes, sizeof(bytes) };
        const struct logged_event *event;
        uint64_t number = 0, n_lost = 0;

        for (int i = 0; i < 5000; i++)
                event_log_add(events, &(struct logged_event){ .kind = LOGGED_SET,
                                                              .key = long_text,
                                                              .origin.client = long_text });
        event_log_commit(events);
        event = event_log_next(events, &number, &n_lost);
        cr_expect_eq(event->key.length, EVENT_LOG_TEXT_MAX);
        cr_expect_eq(event->origin.client.length, EVENT_LOG_TEXT_MAX);
        cr_expect(event->is_key_shortened);
        cr_expect_gt(n_lost, 5000 - EVENT_LOG_BYTES_MAX / (2 * EVENT_LOG_TEXT_MAX));
        cr_expect_lt(n_lost, 5000 - 1000);
}

Test(event_log, rolls_a_batch_back_that_is_larger_than_the_ring) {
        uint64_t number = 0, n_lost = 0;

        for (int i = 0; i < 2 * EVENT_LOG_EVENTS_MAX; i++)
                add(LOGGED_SET, S("k"));
        cr_expect_eq(event_log_before_oldest(events), 0);
        event_log_roll_back(events, S("error"));
        cr_expect_eq(event_log_next(events, &number, &n_lost)->kind, LOGGED_REFUSED);
        cr_expect_eq(n_lost, EVENT_LOG_EVENTS_MAX);
}
