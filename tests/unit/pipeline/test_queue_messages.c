/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "pipeline/queue.h"
#include "protocol/topics.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

#define CLIENT_NAME_MAX 20

static struct queue queue;

static void setup(void) {
        queue = (struct queue){ 0 };
}

static void teardown(void) {
        queue_deinit(&queue);
}

TestSuite(messages, .init = setup, .fini = teardown);

static struct message message_of(struct slice client, struct slice payload) {
        struct message message = { .topic = S(TOPIC_INVOKE), .payload = payload, .qos = 1 };

        if (client.data)
                message.user_properties[message.n_user_properties++] =
                        (struct user_property){ S("__srcId"), client };
        return message;
}

static int add_message(struct slice client, struct slice payload, int64_t arrived_ns, size_t n_bytes_max) {
        struct message message = message_of(client, payload);

        return queue_add_message(&queue, &message, NULL, arrived_ns, n_bytes_max);
}

/* All payloads have the same size. */
static int add(const char *client, const char *payload, size_t n_bytes_max) {
        return add_message(slice_from_string(client), slice_from_string(payload), 0, n_bytes_max);
}

static void add_to(const char *client, const char *payload) {
        cr_assert_eq(add(client, payload, SIZE_MAX), 0);
}

static void expect_next(const char *payload) {
        const struct queue_item *item = queue_first(&queue);
        struct slice found;

        cr_assert_not_null(item, "the queue is empty instead of having %s", payload);
        found = item->record.request.payload;
        cr_expect(slice_equal(found, slice_from_string(payload)), "got %.*s instead of %s",
                  (int)found.length, (const char *)found.data, payload);
        queue_pop(&queue);
}

static void expect_empty(void) {
        cr_expect_null(queue_first(&queue));
        cr_expect_eq(queue_n_bytes(&queue), 0);
}

static void client_name(char *name, size_t size, int i) {
        snprintf(name, size, "client-%d", i);
}

/* Size of a queue with one message of add(), whose client is one character long. */
static size_t size_of_one(void) {
        size_t size;

        cr_assert_eq(add("a", "a1", SIZE_MAX), 0);
        size = queue_n_bytes(&queue);
        cr_assert_gt(size, queue_first(&queue)->n_bytes);
        queue_pop(&queue);
        return size;
}

Test(messages, of_one_client_stay_in_order) {
        char text[16];

        for (int i = 0; i < 100; i++) {
                snprintf(text, sizeof(text), "%d", i);
                cr_assert_eq(add_message(S("client"), slice_from_string(text), i, SIZE_MAX), 0);
        }
        for (int i = 0; i < 100; i++) {
                cr_expect_eq(queue_first(&queue)->arrived_ns, i);
                snprintf(text, sizeof(text), "%d", i);
                expect_next(text);
        }
        expect_empty();
}

Test(messages, each_client_is_served_once_per_round) {
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

Test(messages, new_client_is_served_at_the_end_of_the_round) {
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

Test(messages, client_whose_queue_ran_empty_gets_no_second_turn_in_the_round) {
        add_to("a", "a1");
        add_to("b", "b1");
        expect_next("a1");
        add_to("a", "a2");

        expect_next("b1");
        expect_next("a2");
        expect_empty();
}

Test(messages, emptied_queue_can_be_filled_again) {
        for (int i = 0; i < 3; i++) {
                add_to("a", "a1");
                expect_next("a1");
                expect_empty();
        }
}

Test(messages, without_client_id_have_their_own_queue) {
        cr_assert_eq(add_message((struct slice){ 0 }, S("none"), 0, SIZE_MAX), 0);
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
        return add_message(slice_from_string(client), (struct slice){ bytes, sizeof(bytes) }, 0,
                           n_bytes_max);
}

static size_t size_of_one_large(void) {
        size_t size;

        cr_assert_eq(add_large("a", SIZE_MAX), 0);
        size = queue_n_bytes(&queue);
        cr_assert_gt(size, FAIR_QUEUES_RESERVED_BYTES);
        queue_pop(&queue);
        return size;
}

Test(messages, one_client_can_use_four_fifths_of_the_bytes) {
        size_t size = size_of_one_large();

        for (int i = 0; i < 8; i++)
                cr_assert_eq(add_large("a", 10 * size), 0);
        cr_expect_eq(add_large("a", 10 * size), -ENOBUFS);
        cr_expect_eq(queue_n_bytes(&queue), 8 * size);
}

Test(messages, only_messages_of_flooding_clients_are_refused) {
        size_t max = 100 * size_of_one_large();
        size_t n_refused = 0;

        for (int i = 0; i < 200; i++)
                n_refused += add_large("x", max) == -ENOBUFS;
        for (int i = 0; i < 200; i++)
                n_refused += add_large("y", max) == -ENOBUFS;
        cr_expect_eq(n_refused, 400 - 80 - 16); /* y can use 4/5 of the bytes that x does not use */
        cr_expect_eq(add_large("b", max), 0);
        cr_expect_leq(queue_n_bytes(&queue), max);
}

Test(messages, each_client_has_a_guaranteed_minimum) {
        size_t n_reserved = FAIR_QUEUES_RESERVED_BYTES / (size_of_one() + CLIENT_NAME_MAX);
        char name[CLIENT_NAME_MAX];

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
        cr_expect_leq(queue_n_bytes(&queue), (1 << 20) + (FAIR_QUEUES_MAX + 1) * FAIR_QUEUES_RESERVED_BYTES);
}

Test(messages, message_larger_than_the_queue_is_refused) {
        cr_expect_eq(add_large("a", 10), -ENOBUFS);
        expect_empty();
}

Test(messages, are_copied) {
        char payload[] = "payload", client[] = "a";
        cr_assert_eq(
                add_message(slice_from_string(client), (struct slice){ (uint8_t *)payload, 7 }, 0, SIZE_MAX),
                0);
        memset(payload, 'x', 7);
        client[0] = 'b';
        add_to("b", "b1");
        add_to("a", "a2");
        expect_next("payload");
        expect_next("b1");
        expect_next("a2");
}

Test(messages, clients_beyond_the_queue_limit_share_one_queue) {
        char name[CLIENT_NAME_MAX];

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

Test(messages, client_of_the_shared_queue_stays_in_order_when_queues_are_free) {
        char name[CLIENT_NAME_MAX];

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

/* 2. Other messages */

static const struct {
        const char *name, *topic;
        bool takes_control, is_served;
        enum queue_kind kind;
} kinds[] = {
        { "a request", TOPIC_INVOKE, .is_served = true, .kind = QUEUE_REQUEST },
        { "a disconnect", "gone/c", .is_served = true, .kind = QUEUE_DISCONNECT },
        { "test control", TOPIC_CONTROL, .takes_control = true, .is_served = true, .kind = QUEUE_CONTROL },
        { "test control that is off", TOPIC_CONTROL, .is_served = false },
        { "no client", "gone/", .is_served = false },
        { "another topic", "a", .is_served = false },
        { "HELLO", COMPANION_HELLO, .is_served = false },
};

Test(messages, on_other_topics_are_ignored) {
        for (size_t i = 0; i < N_ROWS(kinds); i++) {
                const struct message message = { .topic = slice_from_string(kinds[i].topic) };
                const struct queue_item *item;

                queue.presence_topic = "gone/{client}";
                queue.takes_control = kinds[i].takes_control;
                cr_assert_eq(queue_add_message(&queue, &message, NULL, 5, SIZE_MAX), 0);
                item = queue_first(&queue);
                cr_assert_eq(item != NULL, kinds[i].is_served, ROW(kinds, i));
                if (!item)
                        continue;
                cr_expect_eq(item->kind, kinds[i].kind, ROW(kinds, i));
                cr_expect_eq(item->arrived_ns, 5);
                cr_expect_eq(item->n_bytes, frame_to_store_record_size(&item->record));
                cr_expect_eq(item->record.number, 0);
                queue_pop(&queue);
        }
}

static const struct {
        const char *name;
        struct slice source, response_topic, client;
} senders[] = {
        { "by __srcId", S("c"), S("replies"), S("c") },
        { "by __srcId before the topic", S("c"), S("clients/63/x"), S("c") },
        { "by the topic, not decoded", { NULL, 0 }, S("clients/63/x"), S("63") },
        { "by the topic for an empty __srcId", S(""), S("clients/c/x"), S("c") },
        { "no client", { NULL, 0 }, S("replies"), { NULL, 0 } },
        { "no client and no topic", { NULL, 0 }, { NULL, 0 }, { NULL, 0 } },
};

Test(messages, name_their_sender) {
        for (size_t i = 0; i < N_ROWS(senders); i++) {
                struct message message = message_of(senders[i].source, S("payload"));
                const struct frame_to_store_record *record;

                message.response_topic = senders[i].response_topic;
                if (senders[i].source.data) /* the first counts */
                        message.user_properties[message.n_user_properties++] =
                                (struct user_property){ S("__srcId"), S("d") };
                cr_assert_eq(queue_add_message(&queue, &message, NULL, 0, SIZE_MAX), 0);
                record = &queue_first(&queue)->record;
                cr_expect(slice_equal(record->client_id, senders[i].client), ROW(senders, i));
                cr_expect_eq(record->connection, 0);
                cr_expect_null(record->request.username.data);
                queue_pop(&queue);
        }
}

/* Each is freed before the item is read. */
static struct slice text(char **memory, const char *value) {
        *memory = strdup(value);
        return slice_from_string(*memory);
}

Test(messages, become_requests_in_records) {
        char *texts[5];
        const struct message message = { .topic = S(TOPIC_CONTROL),
                                         .payload = text(&texts[0], "payload"),
                                         .response_topic = text(&texts[1], "replies"),
                                         .correlation_data = S(""),
                                         .qos = 2,
                                         .has_expiry = true,
                                         .expiry_s = 7,
                                         .user_properties = { { text(&texts[2], "a"),
                                                                text(&texts[3], "bc") },
                                                              { S(""), text(&texts[4], "") } },
                                         .n_user_properties = 2 };
        const struct message another = { .topic = S(TOPIC_INVOKE),
                                         .expiry_s = 7,
                                         .user_properties = { { S("x"), S("y") } },
                                         .n_user_properties = 1 };
        const struct frame_request *request;
        const struct queue_item *item;

        queue.takes_control = true;
        cr_assert_eq(queue_add_message(&queue, &message, NULL, 0, SIZE_MAX), 0);
        for (size_t i = 0; i < N_ROWS(texts); i++)
                free(texts[i]);
        cr_assert_eq(queue_add_message(&queue, &another, NULL, 0, SIZE_MAX), 0);
        item = queue_first(&queue);
        request = &item->record.request;
        cr_expect(item->has_expiry);
        cr_expect_eq(item->expiry_s, 7);
        cr_expect_eq(item->record.kind, FRAME_REQUEST);
        cr_expect_eq(request->qos, 2);
        cr_expect(slice_equal(request->payload, S("payload")));
        cr_expect_str_eq((const char *)request->response_topic.data, "replies");
        cr_expect_not_null(request->correlation_data.data);
        cr_expect_eq(request->correlation_data.length, 0);
        cr_expect(slice_equal(request->properties, S("\0\1a\0\2bc\0\0\0\0")));
        queue_pop(&queue);

        item = queue_first(&queue);
        cr_expect_not(item->has_expiry);
        cr_expect_eq(item->expiry_s, 0);
        cr_expect_null(item->record.request.response_topic.data);
        cr_expect_null(item->record.request.correlation_data.data);
        cr_expect(slice_equal(item->record.request.properties, S("\0\1x\0\1y")));
}

Test(messages, a_disconnect_waits_behind_the_requests_of_its_client) {
        const struct message gone = { .topic = S("gone/a") };

        queue.presence_topic = "gone/{client}";
        add_to("a", "a1");
        cr_assert_eq(queue_add_message(&queue, &gone, NULL, 0, SIZE_MAX), 0);
        add_to("b", "b1");
        expect_next("a1");
        expect_next("b1");
        cr_assert_eq(queue_first(&queue)->kind, QUEUE_DISCONNECT);
        cr_expect(slice_equal(queue_first(&queue)->record.client_id, S("a")));
        cr_expect_eq(queue_first(&queue)->record.connection, 0);
        queue_pop(&queue);
        expect_empty();
}

Test(messages, share_one_queue_with_test_control) {
        queue.takes_control = true;
        add_to("a", "a1");
        add_to("a", "a2");
        add_to("b", "b1");
        expect_next("a1");
        expect_next("a2");
        expect_next("b1");
        expect_empty();
}
