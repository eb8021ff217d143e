/* SPDX-License-Identifier: Apache-2.0 */

/* Each allocation of each module fails once: what was there is still there, and nothing is leaked. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/endpoint.h"
#include "codec/companion_messages.h"
#include "engine/scan.h"
#include "engine/store.h"
#include "engine/watch.h"
#include "pipeline/inbox.h"
#include "protocol/message.h"
#include "unit/support/memory.h"
#include "unit/support/secrets.h"

#define S        SLICE_LITERAL
#define FOR_EVER UINT64_MAX

Test(starved, array_and_buf_keep_what_they_have) {
        struct buf buf = { 0 };

        buf_append_string(&buf, "abc");
        memory_starve(1, 1);
        for (int i = 0; i < 1000; i++)
                buf_append_string(&buf, "more");
        cr_expect_eq(memory_feed(), 1); /* one failure is enough: the rest is dropped */
        cr_expect(buf_failed(&buf));
        cr_expect(slice_starts_with(buf_slice(&buf), S("abcmore")));
        cr_expect_eq((buf.length - 3) % 4, 0);
        buf_deinit(&buf);
}

Test(starved, heap_keeps_what_it_has) {
        struct heap heap;

        heap_init(&heap, NULL);
        memory_starve(1, 1);
        cr_expect_eq(heap_reserve(&heap, 1), -ENOMEM);
        memory_feed();
        cr_expect_eq(heap_bytes(&heap), 0);
        cr_expect_eq(heap_reserve(&heap, 1), 0);
        heap_deinit(&heap);
}

/* In one shard, so that it grows often. Every addition is tried with each of its allocations failing. */
Test(starved, store_is_unchanged_when_a_key_cannot_be_added) {
        uint64_t n_failed = 0, n_keys = 0;
        struct entry *entry;
        struct store store;
        char key[16];

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        for (unsigned int i = 0; n_keys < 300; i++) {
                uint64_t hash;

                snprintf(key, sizeof(key), "%u", i);
                hash = store_hash(&store, slice_from_string(key));
                if (hash >> (64 - STORE_SHARD_BITS) != 0)
                        continue;
                cr_assert_eq(
                        entry_new(&entry, slice_from_string(key), S(""), (struct version){ 1, 0 }, NULL), 0);
                for (uint64_t n = 1;; n++) {
                        int r;

                        memory_starve(n, 1);
                        r = store_put(&store, hash, entry, STORE_NEVER, NULL);
                        if (memory_feed() == 0)
                                break;
                        n_failed++;
                        cr_assert_eq(r, -ENOMEM, "key %u, allocation %lu", i, n);
                        cr_assert_null(store_find(&store, hash, slice_from_string(key)));
                        cr_assert_eq(store_n_keys(&store), n_keys);
                }
                n_keys++;
                cr_assert_eq(store_find(&store, hash, slice_from_string(key)), entry);
                cr_assert_eq(store_n_keys(&store), n_keys);
        }
        cr_expect_gt(n_failed, 5);
        store_deinit(&store);
}

Test(starved, store_keeps_what_a_key_has_when_it_cannot_be_replaced) {
        struct store store;
        struct entry *old, *new;

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        cr_assert_eq(entry_new(&old, S("k"), S("old"), (struct version){ 1, 0 }, NULL), 0);
        for (uint64_t n = 1;; n++) {
                uint64_t n_failed;
                int r;

                memory_starve(n, 1);
                r = store_put(&store, store_hash(&store, entry_key(old)), old, 10, NULL);
                n_failed = memory_feed();
                if (n_failed == 0)
                        break;
                cr_assert_eq(r, -ENOMEM);
                cr_expect_eq(store_n_keys(&store), 0);
                cr_expect_eq(store.n_bytes, 0);
                cr_expect_null(store_expired(&store, 10));
        }

        memory_starve(1, 1);
        cr_expect_eq(entry_new(&new, S("k"), S("new"), (struct version){ 2, 0 }, NULL), -ENOMEM);
        memory_feed();
        cr_expect_eq(store_find(&store, store_hash(&store, S("k")), S("k")), old);
        cr_expect_eq(store_deadline(&store, old), 10);
        store_deinit(&store);
}

Test(starved, watch_is_unchanged_when_nothing_can_be_added) {
        struct watch watch;

        watch_init(&watch, HASH_KEY(1));
        for (int i = 0; i < 200; i++) {
                char client[16], key[16];
                uint64_t before = watch.n_bytes;
                int r;

                snprintf(client, sizeof(client), "c%d", i % 20);
                snprintf(key, sizeof(key), "k%d", i % 33);
                for (uint64_t n = 1;; n++) {
                        memory_starve(n, n % 2 ? 1 : FOR_EVER);
                        r = watch_add(&watch, slice_from_string(client), slice_from_string(key),
                                      (uint64_t)i % 20);
                        if (memory_feed() == 0)
                                break;
                        cr_assert_eq(r, -ENOMEM, "registration %d, allocation %lu", i, n);
                        cr_assert_eq(watch_n_registrations(&watch), (uint64_t)i);
                        cr_assert_eq(watch.n_bytes, before);
                        cr_assert_null(
                                watch_find(&watch, slice_from_string(client), slice_from_string(key)));
                }
                cr_assert_eq(r, 0);
        }
        watch_deinit(&watch);
}

Test(starved, scan_gives_a_page_or_none) {
        struct store store;
        struct entry *entry;
        struct scan_page *page;
        char key[16];

        cr_assert_eq(store_init(&store, HASH_KEY(1)), 0);
        for (int i = 0; i < 3000; i++) {
                snprintf(key, sizeof(key), "k%d", i);
                cr_assert_eq(
                        entry_new(&entry, slice_from_string(key), S(""), (struct version){ 1, 0 }, NULL), 0);
                cr_assert_eq(
                        store_put(&store, store_hash(&store, entry_key(entry)), entry, STORE_NEVER, NULL),
                        0);
        }
        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, n % 2 ? 1 : FOR_EVER);
                r = scan_page_new(&page, &store,
                                  &(struct scan_query){ .token_key = TOKEN_KEY(1), .pattern = S("*") });
                if (memory_feed() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM, "allocation %lu", n);
        }
        cr_expect_eq(page->n_entries, SCAN_PAGE_KEYS_MAX);
        scan_page_free(page);
        store_deinit(&store);
}

Test(starved, inbox_keeps_what_it_has) {
        struct message message = { .topic = S("t"), .payload = S("payload") };
        struct inbox inbox = { 0 };
        int64_t arrived_ns;

        cr_assert_eq(inbox_add(&inbox, S("client"), &message, 1, SIZE_MAX), 0);
        for (uint64_t n = 1;; n++) {
                size_t before = inbox.n_bytes;
                int r;

                memory_starve(n, 1);
                r = inbox_add(&inbox, S("other"), &message, 2, SIZE_MAX);
                if (memory_feed() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM);
                cr_expect_eq(inbox.n_bytes, before);
        }
        inbox_first(&inbox, &arrived_ns);
        cr_expect_eq(arrived_ns, 1);
        inbox_drop(&inbox);
        inbox_first(&inbox, &arrived_ns);
        cr_expect_eq(arrived_ns, 2);
        inbox_deinit(&inbox);
}

Test(starved, inbox_stays_empty) {
        struct message message = { .topic = S("t"), .payload = S("payload") };
        struct inbox inbox = { 0 };

        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, 1);
                r = inbox_add(&inbox, S("client"), &message, 1, SIZE_MAX);
                if (memory_feed() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM);
                cr_expect(inbox_is_empty(&inbox));
                cr_expect_eq(inbox.n_bytes, 0);
        }
        inbox_deinit(&inbox);
}

/* The table of queues grows while memory is short. */
Test(starved, inbox_of_many_clients_keeps_what_it_has) {
        struct message message = { .topic = S("t"), .payload = S("payload") };
        struct inbox inbox = { 0 };
        char name[16];
        size_t n_added = 0;

        for (int i = 0; i < 1000; i++) {
                snprintf(name, sizeof(name), "client-%d", i);
                for (uint64_t n = 1;; n++) {
                        int r;

                        memory_starve(n, 1);
                        r = inbox_add(&inbox, slice_from_string(name), &message, i, SIZE_MAX);
                        if (memory_feed() == 0)
                                break;
                        cr_assert_eq(r, -ENOMEM);
                }
                n_added++;
        }
        for (size_t i = 0; i < n_added; i++) {
                int64_t arrived_ns;

                inbox_first(&inbox, &arrived_ns);
                cr_expect_eq(arrived_ns, (int64_t)i);
                inbox_drop(&inbox);
        }
        cr_expect(inbox_is_empty(&inbox));
}

Test(starved, message_is_copied_or_not) {
        struct message message = { .topic = S("t") };

        memory_starve(1, 1);
        cr_expect_null(message_copy(&message));
        memory_feed();
}

Test(starved, endpoints_are_read_all_or_none) {
        struct endpoint *endpoints = NULL;
        size_t n_endpoints;

        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, 1);
                r = endpoints_parse(S("a,b:1,[::1]"), 1883, &endpoints, &n_endpoints);
                if (memory_feed() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM);
                cr_expect_null(endpoints);
        }
        endpoints_free(endpoints, n_endpoints);
}

Test(starved, welcome_is_read_whole_or_not_at_all) {
        struct buf payload = { 0 };
        struct welcome welcome = { 0 };

        buf_append_string(&payload, "0123456789abcdef0123456789abcdef1\nguarded\n");
        for (uint64_t i = 1; i < 100; i++) {
                buf_append_uint(&payload, i);
                buf_append_string(&payload, "\n");
        }
        for (uint64_t n = 1;; n++) {
                int r;

                memory_starve(n, 1);
                r = welcome_read(buf_slice(&payload), &welcome);
                if (memory_feed() == 0)
                        break;
                cr_assert_eq(r, -ENOMEM);
                cr_expect_null(welcome.connections);
        }
        cr_expect_eq(welcome.n_connections, 99);
        welcome_deinit(&welcome);
        buf_deinit(&payload);
}
