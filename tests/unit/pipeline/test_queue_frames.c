/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "pipeline/queue.h"
#include "protocol/companion_box.h"
#include "protocol/topics.h"

#define S SLICE_LITERAL

static const uint8_t hello_keys[][COMPANION_KEY_SIZE] = { "the first", "the second" };

static struct queue queue;
static struct frame_to_store added; /* the header of the last frame that was added */

static void setup(void) {
        queue = (struct queue){ 0 };
        added = (struct frame_to_store){ 0 };
        cr_assert_eq(companion_box_init(), 0);
        queue_expect_frames(&queue, hello_keys[0]);
}

static void teardown(void) {
        queue_deinit(&queue);
}

TestSuite(frames, .init = setup, .fini = teardown);

/* Seal the text as a frame under a HELLO's key, and receive it at this time. */
static int receive_text(struct slice text, size_t key, int64_t arrived_ns) {
        size_t length = text.length + COMPANION_BOX_EXTRA;
        uint8_t frame_key[COMPANION_KEY_SIZE], *box = malloc(length);
        int r;

        cr_assert_not_null(box);
        companion_frame_key(hello_keys[key], frame_key);
        companion_box_seal(text, frame_key, box);
        r = queue_add_frame(&queue, (struct slice){ box, length }, arrived_ns, &added);
        memset(box, 0, length); /* what waits must not refer to it */
        free(box);
        return r;
}

/* Receive frame `number` at the time `number`: its records are the ends of the connections from `first`. */
static int receive(size_t key, uint64_t number, uint64_t first, size_t n_records) {
        const struct frame_to_store header = { .frame_number = number,
                                               .next_record_number = first,
                                               .published = 10 * number,
                                               .counters = { 1, 2, number, 0 } };
        struct buf text = { 0 };
        int r;

        frame_to_store_append(&text, &header);
        for (size_t i = 0; i < n_records; i++)
                frame_to_store_append_record(&text,
                                             &(struct frame_to_store_record){ .kind = FRAME_DISCONNECTED,
                                                                              .connection = first + i,
                                                                              .client_id = S("c") });
        cr_assert_not(buf_failed(&text));
        r = receive_text(buf_slice(&text), key, (int64_t)number);
        buf_deinit(&text);
        return r;
}

/* Expect that this record is next, and drop it. */
static void expect_next(uint64_t number, int64_t arrived_ns) {
        const struct queue_item *next = queue_first(&queue);

        cr_assert_not_null(next, "record %lu", (unsigned long)number);
        cr_expect_eq(next->record.number, number);
        cr_expect_eq(next->arrived_ns, arrived_ns);
        cr_expect_eq(next->kind, QUEUE_DISCONNECT);
        cr_expect_eq(next->record.connection, number);
        cr_expect(slice_equal(next->record.client_id, S("c")));
        queue_pop(&queue);
}

static void expect_none(void) {
        cr_expect_null(queue_first(&queue));
        cr_expect_eq(queue_n_bytes(&queue), 0);
}

Test(frames, returns_the_records_in_the_order_of_their_numbers) {
        cr_expect_eq(receive(0, 1, 5, 2), QUEUE_FRAME_ADDED);
        expect_next(5, 1);
        cr_expect_eq(receive(0, 2, 7, 1), QUEUE_FRAME_ADDED);
        cr_expect_eq(receive(0, 3, 8, 2), QUEUE_FRAME_ADDED);
        expect_next(6, 1);
        expect_next(7, 2);
        expect_next(8, 3);
        expect_next(9, 3);
        expect_none();
        cr_expect_eq(receive(0, 4, 10, 1), QUEUE_FRAME_ADDED);
        expect_next(10, 4);
        expect_none();
}

Test(frames, takes_the_header_of_a_frame_without_records) {
        cr_expect_eq(receive(0, 1, 5, 0), QUEUE_FRAME_ADDED);
        expect_none();
        cr_expect_eq(added.published, 10);
        cr_expect_eq(added.counters.n_too_many, 1);
        cr_expect_eq(added.counters.n_unavailable, 2);
        cr_expect_eq(added.counters.n_dropped, 1);
        cr_expect_eq(receive(0, 2, 5, 1), QUEUE_FRAME_ADDED);
        cr_expect_eq(added.published, 20);
        expect_next(5, 2);
}

Test(frames, waits_between_frames_with_records) {
        cr_expect_eq(receive(0, 1, 1, 1), QUEUE_FRAME_ADDED);
        cr_expect_eq(receive(0, 2, 2, 0), QUEUE_FRAME_ADDED);
        cr_expect_eq(receive(0, 3, 2, 1), QUEUE_FRAME_ADDED);
        expect_next(1, 1);
        expect_next(2, 3);
        expect_none();
}

Test(frames, notices_that_the_first_frame_is_missing) {
        cr_expect_eq(receive(0, 2, 1, 1), QUEUE_FRAME_MISSING);
        expect_none();
}

Test(frames, notices_each_frame_behind_a_missing_one) {
        cr_expect_eq(receive(0, 1, 1, 1), QUEUE_FRAME_ADDED);
        cr_expect_eq(receive(0, 3, 3, 1), QUEUE_FRAME_MISSING);
        cr_expect_eq(receive(0, 4, 4, 1), QUEUE_FRAME_MISSING);
        expect_next(1, 1);
        expect_none();
}

Test(frames, ignores_a_frame_that_it_has_received) {
        cr_expect_eq(receive(0, 1, 1, 1), QUEUE_FRAME_ADDED);
        cr_expect_eq(receive(0, 2, 2, 1), QUEUE_FRAME_ADDED);
        cr_expect_eq(receive(0, 1, 1, 1), QUEUE_FRAME_IGNORED);
        cr_expect_eq(receive(0, 2, 2, 1), QUEUE_FRAME_IGNORED);
        expect_next(1, 1);
        expect_next(2, 2);
        expect_none();
}

Test(frames, ignores_a_frame_under_the_key_of_another_hello) {
        cr_expect_eq(receive(1, 1, 1, 1), QUEUE_FRAME_IGNORED);
        cr_expect_eq(receive(0, 1, 1, 1), QUEUE_FRAME_ADDED);
        cr_expect_eq(receive(1, 7, 2, 1), QUEUE_FRAME_IGNORED, "it would be a missing frame");
        cr_expect_eq(queue_add_frame(&queue, S(""), 0, &added), QUEUE_FRAME_IGNORED);
}

Test(frames, starts_again_with_each_hello) {
        cr_expect_eq(receive(0, 1, 1, 2), QUEUE_FRAME_ADDED);
        cr_expect_eq(receive(0, 2, 3, 2), QUEUE_FRAME_ADDED);
        expect_next(1, 1);
        queue_expect_frames(&queue, hello_keys[1]);
        expect_none();
        cr_expect_eq(receive(0, 3, 5, 1), QUEUE_FRAME_IGNORED, "it belongs to the former HELLO");
        cr_expect_eq(receive(1, 1, 1, 4), QUEUE_FRAME_ADDED);
        for (uint64_t number = 1; number <= 4; number++)
                expect_next(number, 1);
        expect_none();
}

Test(frames, refuses_a_frame_whose_records_do_not_follow) {
        cr_expect_eq(receive(0, 1, 1, 2), QUEUE_FRAME_ADDED);
        cr_expect_eq(receive(0, 2, 4, 1), QUEUE_FRAME_MALFORMED);
        cr_expect_eq(receive(0, 2, 2, 1), QUEUE_FRAME_MALFORMED);
        cr_expect_eq(added.published, 10);
        cr_expect_eq(receive(0, 3, 3, 1), QUEUE_FRAME_MISSING, "the malformed frame counts as missing");
        expect_next(1, 1);
        expect_next(2, 1);
        expect_none();
}

Test(frames, refuses_a_malformed_frame) {
        cr_expect_eq(receive_text(S(""), 0, 1), QUEUE_FRAME_MALFORMED);
        cr_expect_eq(receive_text(S("\x0A"), 0, 1), QUEUE_FRAME_MALFORMED);
        cr_expect_eq(receive(0, 0, 1, 1), QUEUE_FRAME_MALFORMED, "numbers start at 1");
        expect_none();
}

/* The second record is cut: the first one must not wait. */
Test(frames, takes_no_record_of_a_malformed_frame) {
        const struct frame_to_store header = { .frame_number = 1, .next_record_number = 1, .published = 10 };
        const struct frame_to_store_record record = { .kind = FRAME_DISCONNECTED,
                                                      .connection = 1,
                                                      .client_id = S("c") };
        struct buf text = { 0 };

        frame_to_store_append(&text, &header);
        frame_to_store_append_record(&text, &record);
        frame_to_store_append_record(&text, &record);
        cr_expect_eq(receive_text((struct slice){ text.data, text.length - 1 }, 0, 1),
                     QUEUE_FRAME_MALFORMED);
        expect_none();
        cr_expect_eq(added.published, 0);
        cr_expect_eq(receive(0, 1, 1, 1), QUEUE_FRAME_ADDED);
        expect_next(1, 1);
        buf_deinit(&text);
}

/* Only test control and requests of a plain broker come as messages. */
Test(frames, are_served_behind_messages) {
        const struct message message = { .topic = S(TOPIC_INVOKE) };

        cr_expect_eq(receive(0, 1, 1, 2), QUEUE_FRAME_ADDED);
        cr_assert_eq(queue_add_message(&queue, &message, NULL, 0, SIZE_MAX), 0);
        cr_expect_eq(queue_first(&queue)->record.number, 0);
        queue_pop(&queue);
        expect_next(1, 1);
        queue_drop_frames(&queue);
        expect_none();
}
