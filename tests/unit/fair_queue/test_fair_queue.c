/* SPDX-License-Identifier: Apache-2.0 */

/* The order and the limits of full queues are tested with the queue, in pipeline/test_queue_messages.c. */

#include <criterion/criterion.h>
#include <stdio.h>

#include "fair_queue/fair_queue.h"

static struct fair_queues queues;

static struct fair_queue *open_queue(const char *client) {
        struct fair_queue *queue;

        cr_assert_eq(fair_queues_open(&queues, slice_from_string(client), &queue), 0);
        return queue;
}

static void expect_next(const struct fair_item *item) {
        cr_expect_eq(fair_queues_first(&queues), item);
        fair_queues_take(&queues);
}

static void expect_empty(void) {
        cr_expect_null(fair_queues_first(&queues));
        cr_expect_eq(queues.n_bytes, 0);
        fair_queues_deinit(&queues);
}

Test(fair_queue, a_client_that_opens_its_queue_again_gets_the_same_queue) {
        struct fair_queue *a = open_queue("a"), *b = open_queue("b");

        cr_expect_eq(open_queue("a"), a);
        cr_expect_neq(a, b);
        for (int i = 0; i < 2; i++)
                fair_queues_close(&queues, a);
        fair_queues_close(&queues, b);
        expect_empty();
}

Test(fair_queue, a_queue_with_items_stays_after_it_is_closed) {
        struct fair_queue *queue = open_queue("a");
        struct fair_item first, second;

        fair_queues_add(&queues, queue, &first, 1);
        fair_queues_close(&queues, queue);
        queue = open_queue("a");
        fair_queues_add(&queues, queue, &second, 1);
        fair_queues_close(&queues, queue);

        expect_next(&first);
        expect_next(&second);
        expect_empty();
}

Test(fair_queue, an_open_queue_without_items_is_not_in_the_round) {
        struct fair_queue *a = open_queue("a"), *b = open_queue("b");
        struct fair_item items[3];

        fair_queues_add(&queues, b, &items[0], 1);
        expect_next(&items[0]);
        cr_expect_null(fair_queues_first(&queues));
        fair_queues_add(&queues, a, &items[1], 1);
        fair_queues_add(&queues, b, &items[2], 1);
        expect_next(&items[1]);
        expect_next(&items[2]);
        fair_queues_close(&queues, a);
        fair_queues_close(&queues, b);
        expect_empty();
}

Test(fair_queue, removing_an_item_keeps_the_order_of_the_others) {
        struct fair_queue *a = open_queue("a"), *b = open_queue("b");
        struct fair_item a_items[3], b_items[2];

        for (int i = 0; i < 3; i++)
                fair_queues_add(&queues, a, &a_items[i], 10);
        for (int i = 0; i < 2; i++)
                fair_queues_add(&queues, b, &b_items[i], 1);

        fair_queues_remove(&queues, &a_items[1]);
        cr_expect_eq(queues.n_bytes, 22);
        cr_expect_null(a_items[1].queue);
        fair_queues_remove(&queues, &b_items[0]);
        expect_next(&a_items[0]);
        expect_next(&b_items[1]);
        expect_next(&a_items[2]);
        fair_queues_close(&queues, a);
        fair_queues_close(&queues, b);
        expect_empty();
}

Test(fair_queue, removing_the_last_item_of_the_first_queue_serves_the_next_queue) {
        struct fair_queue *a = open_queue("a"), *b = open_queue("b");
        struct fair_item a_item, b_item;

        fair_queues_add(&queues, a, &a_item, 1);
        fair_queues_add(&queues, b, &b_item, 1);
        fair_queues_remove(&queues, &a_item);
        expect_next(&b_item);
        fair_queues_close(&queues, a);
        fair_queues_close(&queues, b);
        expect_empty();
}

Test(fair_queue, any_number_of_queues_may_be_open_but_few_are_in_the_round) {
        static struct fair_queue *opened[3 * FAIR_QUEUES_MAX];
        static struct fair_item items[3 * FAIR_QUEUES_MAX + 1];
        char name[16];

        for (int i = 0; i < 3 * FAIR_QUEUES_MAX; i++) {
                snprintf(name, sizeof(name), "client-%d", i);
                opened[i] = open_queue(name);
        }
        for (int i = 0; i < 3 * FAIR_QUEUES_MAX; i++)
                fair_queues_add(&queues, opened[i], &items[i], 1);
        fair_queues_add(&queues, opened[0], &items[3 * FAIR_QUEUES_MAX], 1);

        for (int i = 0; i <= FAIR_QUEUES_MAX; i++)
                expect_next(&items[i]);
        expect_next(&items[3 * FAIR_QUEUES_MAX]);
        for (int i = FAIR_QUEUES_MAX + 1; i < 3 * FAIR_QUEUES_MAX; i++)
                expect_next(&items[i]);
        for (int i = 0; i < 3 * FAIR_QUEUES_MAX; i++)
                fair_queues_close(&queues, opened[i]);
        expect_empty();
}
