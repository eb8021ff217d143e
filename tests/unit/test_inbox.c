/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "inbox.h"

#define S SLICE_LITERAL

static struct message message_of(struct slice payload) {
        return (struct message){ .topic = S("topic"), .payload = payload, .qos = 1 };
}

Test(inbox, gives_back_in_the_order_added) {
        struct inbox inbox = { 0 };
        char text[16];

        cr_expect(inbox_is_empty(&inbox));
        for (int i = 0; i < 100; i++) {
                struct message message;

                snprintf(text, sizeof(text), "%d", i);
                message = message_of(slice_from_string(text));
                cr_assert_eq(inbox_add(&inbox, &message, i, SIZE_MAX), 0);
        }
        for (int i = 0; i < 100; i++) {
                const struct message *message;
                int64_t arrived_ns;

                cr_assert_not(inbox_is_empty(&inbox));
                message = inbox_first(&inbox, &arrived_ns);
                snprintf(text, sizeof(text), "%d", i);
                cr_expect(slice_equal(message->payload, slice_from_string(text)));
                cr_expect_eq(arrived_ns, i);
                inbox_drop(&inbox);
        }
        cr_expect(inbox_is_empty(&inbox));
        cr_expect_eq(inbox.n_bytes, 0);
        inbox_deinit(&inbox);
}

Test(inbox, can_be_filled_again_after_it_was_empty) {
        struct message message = message_of(S("payload"));
        struct inbox inbox = { 0 };

        for (int i = 0; i < 3; i++) {
                cr_assert_eq(inbox_add(&inbox, &message, 0, SIZE_MAX), 0);
                inbox_drop(&inbox);
                cr_expect(inbox_is_empty(&inbox));
        }
        inbox_deinit(&inbox);
}

Test(inbox, refuses_what_goes_over_its_bytes_and_keeps_what_it_has) {
        struct message message = message_of(S("payload"));
        struct inbox inbox = { 0 };
        int64_t arrived_ns;
        size_t size;

        cr_assert_eq(inbox_add(&inbox, &message, 1, SIZE_MAX), 0);
        size = inbox.n_bytes;
        cr_expect_gt(size, message_size(&message));

        cr_expect_eq(inbox_add(&inbox, &message, 2, 2 * size - 1), -ENOBUFS);
        cr_expect_eq(inbox.n_bytes, size);
        cr_expect_eq(inbox_add(&inbox, &message, 2, 2 * size), 0);
        cr_expect_eq(inbox_add(&inbox, &message, 3, size), -ENOBUFS); /* a limit that was passed already */
        inbox_first(&inbox, &arrived_ns);
        cr_expect_eq(arrived_ns, 1);
        inbox_drop(&inbox);
        cr_expect_eq(inbox_add(&inbox, &message, 3, 2 * size), 0);
        inbox_deinit(&inbox);
}

Test(inbox, refuses_one_message_that_is_larger_than_all_of_it) {
        struct message message = message_of(S("payload"));
        struct inbox inbox = { 0 };

        cr_expect_eq(inbox_add(&inbox, &message, 0, 10), -ENOBUFS);
        cr_expect(inbox_is_empty(&inbox));
        inbox_deinit(&inbox);
}

Test(inbox, keeps_a_copy) {
        char payload[] = "payload";
        struct message message = message_of((struct slice){ (uint8_t *)payload, 7 });
        struct inbox inbox = { 0 };
        int64_t arrived_ns;

        cr_assert_eq(inbox_add(&inbox, &message, 0, SIZE_MAX), 0);
        memset(payload, 'x', 7);
        cr_expect(slice_equal(inbox_first(&inbox, &arrived_ns)->payload, S("payload")));
        inbox_deinit(&inbox);
}
