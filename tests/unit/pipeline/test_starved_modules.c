/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Allocations of single modules fail, alone or with all later ones. The previous content stays, and
 * nothing leaks.
 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/endpoint.h"
#include "engine/keyspace.h"
#include "engine/registrations.h"
#include "engine/scan.h"
#include "pipeline/batch.h"
#include "pipeline/queue.h"
#include "protocol/companion_box.h"
#include "protocol/message.h"
#include "protocol/topics.h"
#include "unit/support/memory.h"
#include "unit/support/secrets.h"

#define S        SLICE_LITERAL
#define FOR_EVER UINT64_MAX

Test(starved, array_and_buf_keep_their_content) {
        struct buf buf = { 0 };

        buf_append_string(&buf, "abc");
        memory_starve(1, 1);
        for (int i = 0; i < 1000; i++)
                buf_append_string(&buf, "more");
        cr_expect_eq(memory_stop_failing(),
                     1); /* after the first failure the buffer drops further bytes without allocating */
        cr_expect(buf_failed(&buf));
        cr_expect(slice_starts_with(buf_slice(&buf), S("abcmore")));
        cr_expect_eq((buf.length - 3) % 4, 0);
        buf_deinit(&buf);
}

Test(starved, heap_keeps_its_content) {
        struct heap heap;

        heap_init(&heap, NULL);
        memory_starve(1, 1);
        cr_expect_eq(heap_reserve(&heap, 1), -ENOMEM);
        memory_stop_failing();
        cr_expect_eq(heap.capacity, 0);
        cr_expect_eq(heap_reserve(&heap, 1), 0);
        heap_deinit(&heap);
}

/*
 * All keys are in one shard, so that it grows often. Each addition is tried with each of its
 * allocations failing.
 */
Test(starved, failed_addition_leaves_the_store_unchanged) {
        uint64_t n_failed = 0, n_keys = 0;
        struct entry *entry;
        struct keyspace keyspace;
        char key[16];

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        for (unsigned int i = 0; n_keys < 300; i++) {
                uint64_t hash;

                snprintf(key, sizeof(key), "%u", i);
                hash = keyspace_hash(&keyspace, slice_from_string(key));
                if (hash >> (64 - KEYSPACE_SHARD_BITS) != 0)
                        continue;
                cr_assert_eq(
                        entry_new(&entry, slice_from_string(key), S(""), (struct version){ 1, 0 }, NULL), 0);
                for (uint64_t n = 1;; n++) {
                        int r;

                        memory_starve(n, 1);
                        r = keyspace_put(&keyspace, hash, entry, DEADLINE_NEVER, NULL);
                        if (memory_stop_failing() == 0)
                                break;
                        n_failed++;
                        cr_assert_eq(r, -ENOMEM, "key %u, allocation %lu", i, n);
                        cr_assert_null(keyspace_find(&keyspace, hash, slice_from_string(key)));
                        cr_assert_eq(keyspace.n_keys, n_keys);
                }
                n_keys++;
                cr_assert_eq(keyspace_find(&keyspace, hash, slice_from_string(key)), entry);
                cr_assert_eq(keyspace.n_keys, n_keys);
        }
        cr_expect_gt(n_failed, 5);
        keyspace_deinit(&keyspace);
}

Test(starved, failed_replacement_keeps_the_value) {
        struct keyspace keyspace;
        struct entry *old, *new;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        cr_assert_eq(entry_new(&old, S("k"), S("old"), (struct version){ 1, 0 }, NULL), 0);
        for (uint64_t n = 1;; n++) {
                uint64_t n_failed;
                int r;

                memory_starve(n, 1);
                r = keyspace_put(&keyspace, keyspace_hash(&keyspace, entry_key(old)), old, 10, NULL);
                n_failed = memory_stop_failing();
                if (n_failed == 0)
                        break;
                cr_assert_eq(r, -ENOMEM);
                cr_expect_eq(keyspace.n_keys, 0);
                cr_expect_eq(keyspace.n_bytes, 0);
                cr_expect_null(keyspace_expired(&keyspace, 10));
        }

        memory_starve(1, 1);
        cr_expect_eq(entry_new(&new, S("k"), S("new"), (struct version){ 2, 0 }, NULL), -ENOMEM);
        memory_stop_failing();
        cr_expect_eq(keyspace_find(&keyspace, keyspace_hash(&keyspace, S("k")), S("k")), old);
        cr_expect_eq(keyspace_deadline(&keyspace, old), 10);
        keyspace_deinit(&keyspace);
}

Test(starved, failed_registration_leaves_the_watch_unchanged) {
        struct registrations table;

        registrations_init(&table, HASH_KEY(1));
        for (int i = 0; i < 200; i++) {
                char client[16], key[16];
                const struct registration *registration;
                uint64_t before = table.n_bytes;
                struct registration_names names;

                snprintf(client, sizeof(client), "c%d", i % 20);
                snprintf(key, sizeof(key), "k%d", i % 33);
                names = registrations_names(&table, slice_from_string(client), slice_from_string(key));
                for (uint64_t n = 1;; n++) {
                        memory_starve(n, n % 2 ? 1 : FOR_EVER);
                        registration =
                                registrations_add(&table, names, (struct slice){ 0 }, (uint64_t)i % 20);
                        if (memory_stop_failing() == 0)
                                break;
                        cr_assert_null(registration, "registration %d, allocation %lu", i, n);
                        cr_assert_eq(table.n_registrations, (uint64_t)i);
                        cr_assert_eq(table.n_bytes, before);
                        cr_assert_null(registrations_find(&table, names));
                }
                cr_assert_not_null(registration);
        }
        registrations_deinit(&table);
}

Test(starved, scan_returns_a_whole_page_or_fails) {
        struct keyspace keyspace;
        struct entry *entry;
        struct scan_page *page;
        char key[16];

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        for (int i = 0; i < 3000; i++) {
                snprintf(key, sizeof(key), "k%d", i);
                cr_assert_eq(
                        entry_new(&entry, slice_from_string(key), S(""), (struct version){ 1, 0 }, NULL), 0);
                cr_assert_eq(keyspace_put(&keyspace, keyspace_hash(&keyspace, entry_key(entry)), entry,
                                          DEADLINE_NEVER, NULL),
                             0);
        }
        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, n % 2 ? 1 : FOR_EVER);
                r = scan_page_new(&page, &keyspace,
                                  &(struct scan_query){ .token_key = TOKEN_KEY(1), .pattern = S("*") });
                if (memory_stop_failing() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM, "allocation %lu", n);
        }
        cr_expect_eq(page->n_entries, SCAN_PAGE_KEYS_MAX);
        scan_page_free(page);
        keyspace_deinit(&keyspace);
}

/* Add a request of this client. */
static int add_to_queue(struct queue *queue, struct slice client, int64_t arrived_ns) {
        const struct message message = { .topic = S(TOPIC_INVOKE),
                                         .payload = S("payload"),
                                         .user_properties = { { S("__srcId"), client } },
                                         .n_user_properties = 1 };

        return queue_add_message(queue, &message, NULL, arrived_ns, SIZE_MAX);
}

static void expect_arrival(struct queue *queue, int64_t arrived_ns) {
        cr_assert_not_null(queue_first(queue));
        cr_expect_eq(queue_first(queue)->arrived_ns, arrived_ns);
        queue_pop(queue);
}

Test(starved, queue_keeps_its_messages) {
        struct queue queue = { 0 };

        cr_assert_eq(add_to_queue(&queue, S("client"), 1), 0);
        for (uint64_t n = 1;; n++) {
                size_t before = queue_n_bytes(&queue);
                int r;

                memory_starve(n, 1);
                r = add_to_queue(&queue, S("other"), 2);
                if (memory_stop_failing() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM);
                cr_expect_eq(queue_n_bytes(&queue), before);
        }
        expect_arrival(&queue, 1);
        expect_arrival(&queue, 2);
        queue_deinit(&queue);
}

Test(starved, failed_addition_leaves_the_queue_empty) {
        struct queue queue = { 0 };

        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, 1);
                r = add_to_queue(&queue, S("client"), 1);
                if (memory_stop_failing() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM);
                cr_expect_null(queue_first(&queue));
                cr_expect_eq(queue_n_bytes(&queue), 0);
        }
        queue_deinit(&queue);
}

/* Allocations fail while the table of queues grows. */
Test(starved, queue_of_many_clients_keeps_its_messages) {
        struct queue queue = { 0 };
        char name[16];

        for (int i = 0; i < 1000; i++) {
                snprintf(name, sizeof(name), "client-%d", i);
                for (uint64_t n = 1;; n++) {
                        int r;

                        memory_starve(n, 1);
                        r = add_to_queue(&queue, slice_from_string(name), i);
                        if (memory_stop_failing() == 0)
                                break;
                        cr_assert_eq(r, -ENOMEM);
                }
        }
        for (int i = 0; i < 1000; i++)
                expect_arrival(&queue, i);
        cr_expect_null(queue_first(&queue));
        queue_deinit(&queue);
}

/* A frame that memory was short for counts as missing: it is taken when it arrives again. */
Test(starved, queue_takes_a_whole_frame_or_none) {
        const struct frame_to_store header = { .frame_number = 1, .next_record_number = 1 };
        const struct frame_to_store_record record = { .kind = FRAME_DISCONNECTED, .connection = 7 };
        uint8_t hello_key[COMPANION_KEY_SIZE] = { 1 }, key[COMPANION_KEY_SIZE], box[256];
        struct frame_to_store added;
        struct queue queue = { 0 };
        struct buf text = { 0 };
        uint64_t n_failed = 0;

        cr_assert_eq(companion_box_init(), 0);
        frame_to_store_append(&text, &header);
        for (int i = 0; i < 3; i++)
                frame_to_store_append_record(&text, &record);
        cr_assert_leq(text.length + COMPANION_BOX_EXTRA, sizeof(box));
        companion_frame_key(hello_key, key);
        companion_box_seal(buf_slice(&text), key, box);
        queue_expect_frames(&queue, hello_key);
        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, 1);
                r = queue_add_frame(&queue, (struct slice){ box, text.length + COMPANION_BOX_EXTRA }, 1,
                                    &added);
                if (memory_stop_failing() == 0)
                        break;
                n_failed++;
                cr_assert_eq(r, -ENOMEM);
                cr_expect_null(queue_first(&queue));
        }
        cr_expect_eq(n_failed, 4);
        for (int i = 0; i < 3; i++)
                expect_arrival(&queue, 1);
        cr_expect_null(queue_first(&queue));
        queue_deinit(&queue);
        buf_deinit(&text);
}

/* Each reply is tried with each of its allocations failing. */
Test(starved, batch_adds_a_whole_reply_or_none) {
        const struct invocation invocation = {
                .request = { .response_topic = S("clients/c/replies"), .correlation_data = S("12345678") },
        };
        struct batch batch = { 0 };
        uint64_t n_failed = 0;

        for (size_t i = 0; i < 50; i++)
                for (uint64_t n = 1;; n++) {
                        size_t n_bytes = batch.n_bytes;
                        const struct pending_reply *added;

                        memory_starve(n, 1);
                        added = batch_add_reply(&batch, &(struct queue_item){ 0 }, &invocation);
                        if (memory_stop_failing() == 0) {
                                cr_assert_not_null(added);
                                break;
                        }
                        n_failed++;
                        cr_assert_null(added);
                        cr_assert_eq(batch.n_replies, i);
                        cr_assert_eq(batch.n_bytes, n_bytes);
                }
        cr_expect_gt(n_failed, 5);
        for (size_t i = 0; i < batch.n_replies; i++) {
                cr_expect(slice_equal(batch.replies[i].response_topic, S("clients/c/replies")));
                cr_expect(slice_equal(batch.replies[i].correlation_data, S("12345678")));
        }
        batch_deinit(&batch);
}

Test(starved, message_copy_is_whole_or_fails) {
        struct message message = { .topic = S("t") };

        memory_starve(1, 1);
        cr_expect_null(message_copy(&message));
        memory_stop_failing();
}

Test(starved, endpoints_parse_completely_or_fail) {
        struct endpoint *endpoints = NULL;
        size_t n_endpoints;

        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, 1);
                r = endpoints_parse(S("a,b:1,[::1]"), 1883, &endpoints, &n_endpoints);
                if (memory_stop_failing() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM);
                cr_expect_null(endpoints);
        }
        endpoints_free(endpoints, n_endpoints);
}
