/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "pipeline/inbox.h"

#define S SLICE_LITERAL

static struct inbox inbox;

static void teardown(void) {
        inbox_deinit(&inbox);
}

TestSuite(inbox, .fini = teardown);

static struct message message_of(struct slice payload) {
        return (struct message){ .topic = S("topic"), .payload = payload, .qos = 1 };
}

/* All payloads have the same size. */
static int add(const char *client, const char *payload, size_t n_bytes_max) {
        struct message message = message_of(slice_from_string(payload));

        return inbox_add(&inbox, slice_from_string(client), &message, 0, n_bytes_max);
}

static void add_to(const char *client, const char *payload) {
        cr_assert_eq(add(client, payload, SIZE_MAX), 0);
}

static void expect_next(const char *payload) {
        int64_t arrived_ns;

        cr_assert_not(inbox_is_empty(&inbox), "the inbox is empty instead of having %s", payload);
        cr_expect(slice_equal(inbox_first(&inbox, &arrived_ns)->payload, slice_from_string(payload)),
                  "got %.*s instead of %s", (int)inbox_first(&inbox, &arrived_ns)->payload.length,
                  (const char *)inbox_first(&inbox, &arrived_ns)->payload.data, payload);
        inbox_drop(&inbox);
}

static void expect_empty(void) {
        cr_expect(inbox_is_empty(&inbox));
        cr_expect_eq(inbox.queues.n_bytes, 0);
}

static void client_name(char *name, size_t size, int i) {
        snprintf(name, size, "client-%d", i);
}

/* Size of an inbox with one message of add(). */
static size_t size_of_one(void) {
        struct inbox one = { 0 };
        struct message message = message_of(S("a1"));
        size_t size;

        cr_assert_eq(inbox_add(&one, S("a"), &message, 0, SIZE_MAX), 0);
        size = one.queues.n_bytes;
        cr_assert_gt(size, message_size(&message));
        inbox_deinit(&one);
        return size;
}

Test(inbox, messages_of_one_client_stay_in_order) {
        char text[16];

        for (int i = 0; i < 100; i++) {
                struct message message;

                snprintf(text, sizeof(text), "%d", i);
                message = message_of(slice_from_string(text));
                cr_assert_eq(inbox_add(&inbox, S("client"), &message, i, SIZE_MAX), 0);
        }
        for (int i = 0; i < 100; i++) {
                int64_t arrived_ns;

                inbox_first(&inbox, &arrived_ns);
                cr_expect_eq(arrived_ns, i);
                snprintf(text, sizeof(text), "%d", i);
                expect_next(text);
        }
        expect_empty();
}

Test(inbox, each_client_is_served_once_per_round) {
        add_to("a", "a1");
        add_to("a", "a2");
        add_to("a", "a3");
        add_to("b", "b1");
        add_to("c", "c1");
        add_to("b", "b2");

        expect_next("a1");
        expect_next("b1");
        expect_next("c1");
        expect_next("a2");
        expect_next("b2");
        expect_next("a3");
        expect_empty();
}

Test(inbox, new_client_is_served_at_the_end_of_the_round) {
        for (int i = 0; i < 200; i++)
                add_to("flooder", "flood");
        add_to("b", "b1");
        expect_next("flood");
        add_to("c", "c1");

        expect_next("b1");
        expect_next("flood");
        expect_next("c1");
        expect_next("flood");
}

Test(inbox, client_whose_queue_ran_empty_gets_no_second_turn_in_the_round) {
        add_to("a", "a1");
        add_to("b", "b1");
        expect_next("a1");
        add_to("a", "a2");

        expect_next("b1");
        expect_next("a2");
        expect_empty();
}

Test(inbox, emptied_inbox_can_be_filled_again) {
        for (int i = 0; i < 3; i++) {
                add_to("a", "a1");
                expect_next("a1");
                expect_empty();
        }
}

Test(inbox, messages_without_client_id_have_their_own_queue) {
        struct message message = message_of(S("none"));

        cr_assert_eq(inbox_add(&inbox, (struct slice){ 0 }, &message, 0, SIZE_MAX), 0);
        add_to("", "empty");
        add_to("a", "a1");
        expect_next("none");
        expect_next("a1");
        expect_next("empty");
        expect_empty();
}

/* A message that is larger than the minimum that each queue is guaranteed. */
static int add_large(const char *client, size_t n_bytes_max) {
        static uint8_t bytes[FAIR_QUEUES_RESERVED_BYTES];
        struct message message = message_of((struct slice){ bytes, sizeof(bytes) });

        return inbox_add(&inbox, slice_from_string(client), &message, 0, n_bytes_max);
}

static size_t size_of_one_large(void) {
        size_t size;

        cr_assert_eq(add_large("a", SIZE_MAX), 0);
        size = inbox.queues.n_bytes;
        cr_assert_gt(size, FAIR_QUEUES_RESERVED_BYTES);
        inbox_drop(&inbox);
        return size;
}

Test(inbox, one_client_can_use_four_fifths_of_the_bytes) {
        size_t size = size_of_one_large();

        for (int i = 0; i < 8; i++)
                cr_assert_eq(add_large("a", 10 * size), 0);
        cr_expect_eq(add_large("a", 10 * size), -ENOBUFS);
        cr_expect_eq(inbox.queues.n_bytes, 8 * size);
}

Test(inbox, only_messages_of_flooding_clients_are_refused) {
        size_t max = 100 * size_of_one_large();
        size_t n_refused = 0;

        for (int i = 0; i < 200; i++)
                n_refused += add_large("x", max) == -ENOBUFS;
        for (int i = 0; i < 200; i++)
                n_refused += add_large("y", max) == -ENOBUFS;
        cr_expect_eq(n_refused, 400 - 80 - 16); /* y can use 4/5 of the bytes that x does not use */
        cr_expect_eq(add_large("b", max), 0);
        cr_expect_leq(inbox.queues.n_bytes, max);
}

Test(inbox, each_client_has_a_guaranteed_minimum) {
        size_t n_reserved = FAIR_QUEUES_RESERVED_BYTES / size_of_one();
        char name[20];

        while (add_large("x", 1 << 20) == 0)
                ;
        for (size_t i = 1; i < FAIR_QUEUES_MAX; i++) {
                client_name(name, sizeof(name), (int)i);
                for (size_t k = 0; k < n_reserved; k++)
                        cr_assert_eq(add(name, "a1", 1 << 20), 0);
        }
        cr_expect_eq(add_large(name, 1 << 20), -ENOBUFS);
        for (int i = 0; i < 10000; i++) /* as many messages as one client could send */
                add(name, "a1", 1 << 20);
        cr_expect_leq(inbox.queues.n_bytes, (1 << 20) + (FAIR_QUEUES_MAX + 1) * FAIR_QUEUES_RESERVED_BYTES);
}

Test(inbox, message_larger_than_the_inbox_is_refused) {
        cr_expect_eq(add_large("a", 10), -ENOBUFS);
        expect_empty();
}

Test(inbox, messages_are_copied) {
        char payload[] = "payload", client[] = "a";
        struct message message = message_of((struct slice){ (uint8_t *)payload, 7 });

        cr_assert_eq(inbox_add(&inbox, slice_from_string(client), &message, 0, SIZE_MAX), 0);
        memset(payload, 'x', 7);
        client[0] = 'b';
        add_to("b", "b1");
        add_to("a", "a2");
        expect_next("payload");
        expect_next("b1");
        expect_next("a2");
}

Test(inbox, clients_beyond_the_queue_limit_share_one_queue) {
        char name[20];

        for (int i = 0; i < FAIR_QUEUES_MAX; i++) {
                client_name(name, sizeof(name), i);
                add_to(name, "own");
        }
        for (int i = 0; i < 10000; i++) {
                client_name(name, sizeof(name), FAIR_QUEUES_MAX + i);
                add_to(name, "shared");
        }
        add_to("client-0", "own again");

        for (int i = 0; i < FAIR_QUEUES_MAX; i++)
                expect_next("own");
        expect_next("shared");
        expect_next("own again");
        for (int i = 1; i < 10000; i++)
                expect_next("shared");
        expect_empty();
}

Test(inbox, client_of_the_shared_queue_stays_in_order_when_queues_are_free) {
        char name[20];

        for (int i = 0; i < FAIR_QUEUES_MAX; i++) {
                client_name(name, sizeof(name), i);
                add_to(name, "own");
        }
        add_to("a", "a1");
        add_to("a", "a2");
        for (int i = 0; i < FAIR_QUEUES_MAX; i++)
                expect_next("own");
        add_to("a", "a3"); /* queues are free again */
        expect_next("a1");
        expect_next("a2");
        expect_next("a3");
        add_to("a", "a4");
        add_to("b", "b1");
        add_to("a", "a5");
        expect_next("a4");
        expect_next("b1");
        expect_next("a5");
        expect_empty();
}
