/* SPDX-License-Identifier: Apache-2.0 */

/* A batch is limited by what it costs (server/pipeline/batch.h), and serves the clients in turn. */

#include <stdio.h>

#include "base/array.h"
#include "pipeline/internal.h"
#include "policy/policy_build.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/table.h"

#define MIB ((size_t)1 << 20)
#define KIB ((size_t)1 << 10)

#define N_WATCHERS 16
#define N_REQUESTS 20

static struct broker broker;
static uint8_t bytes[MIB];

/* A value, a text or a key of this size. */
static struct slice large(size_t size) {
        memset(bytes, 'x', sizeof(bytes));
        return (struct slice){ bytes, size };
}

/* The sender of a request: claimed without the plugin, verified with it. */
static struct sending from(const char *client, uint64_t connection) {
        return (struct sending){ .source = slice_from_string(client),
                                 .topic = slice_from_string(client),
                                 .sender = { connection, slice_from_string(client), { 0 } } };
}

static void ask(struct sending sending, const char *verb, struct slice key, struct slice value) {
        sending.words[0] = slice_from_string(verb);
        sending.words[1] = key;
        sending.words[2] = value;
        broker_ask(&broker, sending);
        broker_forget(&broker);
}

/* 1. Requests that cost more than they send */

static void watch_by_many(void) {
        char client[16];

        for (uint64_t i = 0; i < N_WATCHERS; i++) {
                snprintf(client, sizeof(client), "watcher%d", (int)i);
                ask(from(client, 100 + i), "KEYNOTIFY", S("k"), (struct slice){ 0 });
        }
}

static void set_large_value(void) {
        ask(from("s", 9), "SET", S("k"), large(MIB));
}

static void set_many_large_values(void) {
        char key[16];

        for (int i = 0; i < N_REQUESTS; i++) {
                snprintf(key, sizeof(key), "k%d", i);
                ask(from("s", 9), "SET", slice_from_string(key), large(MIB));
        }
}

static void set_large_keys(void) {
        for (size_t i = 0; i < N_REQUESTS; i++)
                ask(from("s", 9), "SET", large(60 * KIB - i), S("v"));
}

static void nothing(void) {
}

static struct sending get(int number) {
        (void)number;
        return (struct sending){ WORDS(S("GET"), S("k")) };
}

static struct sending get_with_large_properties(int number) {
        struct sending sending = get(number);

        sending.correlation = large(60 * KIB);
        sending.version = S("1.0");
        return sending;
}

static struct sending scan(int number) {
        (void)number;
        return (struct sending){ WORDS(S("SCAN"), S("*")) };
}

static struct sending set(int number) {
        (void)number;
        return (struct sending){ WORDS(S("SET"), S("k"), large(64 * KIB)) };
}

static struct sending delete (int number) {
        static char key[16];

        snprintf(key, sizeof(key), "k%d", number);
        return (struct sending){ WORDS(S("DEL"), slice_from_string(key)) };
}

/*
 * How many requests of a kind may be executed in one batch: the request that reaches
 * BATCH_BYTES_MAX is the last one.
 */
static const struct {
        const char *name;
        void (*prepare)(void);
        struct sending (*request)(int number);
        size_t n_max;
        bool has_plugin;
} kinds[] = {
        { "the value of a GET", set_large_value, get, 1, false },
        { "correlation data of request and reply", nothing, get_with_large_properties, 9, false },
        { "the keys of a page", set_large_keys, scan, 5, false },
        { "a value that is deleted", set_many_large_values, delete, 1, false },
        { "a value for many watchers, plain broker", watch_by_many, set, 1, false },
        { "a value for many watchers, with the plugin", watch_by_many, set, 1, true },
};

/* Publish one batch, and execute the next one. Returns the number of replies to client f. */
static size_t publish_one_batch(void) {
        size_t n_replies = 0;

        broker_forget(&broker);
        if (broker.is_committing)
                broker_committed(&broker, 0);
        else
                broker_flush(&broker);
        for (size_t i = 0; i < broker.n_sent; i++)
                n_replies += slice_equal(broker_sent_message(&broker, i)->topic, S("f"));
        return n_replies;
}

static void expect_batches(size_t kind) {
        size_t n_replies = 0;

        for (int n_batches = 0; n_replies < N_REQUESTS; n_batches++) {
                size_t n = publish_one_batch();

                cr_assert_lt(n_batches, 3 * N_REQUESTS, "%s: replies are missing", kinds[kind].name);
                cr_expect_leq(n, kinds[kind].n_max, "%s: %zu requests in a batch", kinds[kind].name, n);
                n_replies += n;
        }
}

Test(batch_cost, batch_ends_when_it_has_made_enough) {
        for (size_t i = 0; i < N_ROWS(kinds); i++) {
                broker_init(&broker, broker_config());
                if (kinds[i].has_plugin) {
                        broker_disconnect(&broker);
                        broker_serve_plugin(&broker);
                }
                kinds[i].prepare();
                broker.commit_result = 1;
                broker.room = 0;
                for (int j = 0; j < N_REQUESTS; j++) {
                        struct sending sending = kinds[i].request(j), sender = from("f", 1);

                        sending.source = sender.source;
                        sending.topic = sender.topic;
                        sending.sender = sender.sender;
                        broker_send(&broker, sending);
                }
                broker.room = SIZE_MAX;
                expect_batches(i);
                broker_deinit(&broker);
        }
}

/* 2. The clients take turns */

static void send_get(const char *client) {
        struct sending sending = from(client, 1);

        sending.words[0] = S("GET");
        sending.words[1] = S("k");
        broker_send(&broker, sending);
}

static void send_flood_and_other(void) {
        broker.room = 0;
        for (int i = 0; i < 4; i++)
                send_get("f");
        send_get("o");
        broker.room = SIZE_MAX;
}

static const char *topics_of_next_batch(void) {
        static char topics[64];

        publish_one_batch();
        topics[0] = '\0';
        for (size_t i = 0; i < broker.n_sent; i++)
                strncat(topics, (const char *)broker_sent_message(&broker, i)->topic.data,
                        sizeof(topics) - strlen(topics) - 1);
        return topics;
}

/* Without a data directory. */
static void become_volatile(void) {
        broker.is_volatile = true;
        broker_restart_store(&broker, broker_config());
        broker_connect(&broker, false);
}

Test(batch_cost, batch_after_a_large_reply_begins_with_the_next_client) {
        for (int is_volatile = 0; is_volatile < 2; is_volatile++) {
                broker_init(&broker, broker_config());
                if (is_volatile)
                        become_volatile();
                set_large_value();
                send_flood_and_other();
                cr_expect_str_eq(topics_of_next_batch(), "f");
                cr_expect_str_eq(topics_of_next_batch(), "o");
                cr_expect_str_eq(topics_of_next_batch(), "f");
                broker_deinit(&broker);
        }
}

/* 3. Many keys with one deadline */

#define N_EXPIRING 20000
#define VALUE_SIZE 200
#define N_WATCHED  1000

static int64_t slow_clock_ns(void *userdata) {
        struct broker *slow = userdata;

        return slow->now.mono_ns += 1000000; /* each reading uses up a quantum */
}

static void set_many_with_one_deadline(int n) {
        struct sending sending = { .words = { S("SET"), S("k"), large(VALUE_SIZE), S("PX"), S("1000") } };
        char key[16];

        broker.room = 0; /* all are set at the same time */
        for (int i = 0; i < n; i++) {
                snprintf(key, sizeof(key), "k%d", i);
                sending.words[1] = slice_from_string(key);
                broker_send(&broker, sending);
        }
        broker.room = SIZE_MAX;
        while (!pipeline_is_idle(broker.pipeline))
                broker_flush(&broker);
        broker_forget(&broker);
        broker_pass_ms(&broker, 1000);
}

static uint64_t n_keys(void) {
        struct gauges gauges;

        pipeline_read_gauges(broker.pipeline, broker.now.wall_ms, &gauges);
        return gauges.n_keys;
}

Test(batch_cost, keys_with_one_deadline_expire_in_batches_of_limited_cost) {
        broker_init(&broker, broker_config());
        set_many_with_one_deadline(N_EXPIRING);
        broker.commit_result = 1;
        for (uint64_t n_left = n_keys(); n_left > 0;) {
                uint64_t n_before = n_left;

                cr_assert_leq(pipeline_next_deadline(broker.pipeline), broker.now.mono_ns);
                broker_tick(&broker);
                n_left = n_keys();
                cr_assert_gt(n_before - n_left, ENGINE_STEP_CHANGES_MAX); /* several steps are one batch */
                cr_assert_leq(n_before - n_left,
                              BATCH_BYTES_MAX / (BATCH_ITEM_BYTES + VALUE_SIZE) + ENGINE_STEP_CHANGES_MAX);
                broker_committed(&broker, 0);
        }
        cr_expect_eq(n_keys(), 0);
        broker_deinit(&broker);
}

/* Each change of a watched key is published as a message, however small its notification. */
Test(batch_cost, watched_keys_with_one_deadline_expire_in_batches_of_few_notifications) {
        char words[32];

        broker_init(&broker, broker_config());
        for (int i = 0; i < N_WATCHED; i++) {
                snprintf(words, sizeof(words), "KEYNOTIFY k%d", i);
                broker_do(&broker, words);
                snprintf(words, sizeof(words), "SET k%d v PX 1000", i);
                broker_do(&broker, words);
        }
        broker.commit_result = 1;
        broker.now.mono_ns += INT64_C(1000000000);
        for (int n = 0; n_keys() > 0; n++) {
                broker.n_notifications_committed = 0;
                broker_tick(&broker);
                broker_committed(&broker, 0);
                cr_assert_lt(n, N_WATCHED);
                cr_assert_gt(broker.n_notifications_committed, 0);
                cr_assert_lt(broker.n_notifications_committed, BATCH_ITEMS_MAX + ENGINE_STEP_CHANGES_MAX);
        }
        broker_deinit(&broker);
}

Test(batch_cost, request_is_executed_between_the_steps_of_expiry) {
        broker_init(&broker, broker_config());
        set_many_with_one_deadline(3 * ENGINE_STEP_CHANGES_MAX + 1);
        broker.clock_ns = slow_clock_ns;
        broker_tick(&broker);
        cr_expect_eq(n_keys(), 2 * ENGINE_STEP_CHANGES_MAX + 1);
        send_get("o");
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 1);
        cr_expect_eq(n_keys(), ENGINE_STEP_CHANGES_MAX + 1);
        broker_tick(&broker);
        cr_expect_eq(n_keys(), 1);
        broker_deinit(&broker);
}

/* Each SET has an entry and a remembered reply. */
Test(batch_cost, batch_ends_at_the_limits_of_the_storage) {
        static const struct storage_limits limits[] = { { UINT64_MAX, 4, SIZE_MAX },
                                                        { UINT64_MAX, SIZE_MAX, 1000 } };

        for (size_t i = 0; i < N_ROWS(limits); i++) {
                broker_init(&broker, broker_config());
                broker.operations.limits = limits[i];
                broker_restart_store(&broker, broker_config());
                broker_connect(&broker, false);
                broker.commit_result = 1;
                for (int n = 0; n < 10; n++)
                        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
                broker_flush(&broker);
                broker_committed(&broker, 0);
                cr_expect_gt(broker.n_changes_committed, 0);
                cr_expect_leq(broker.n_changes_committed, 5, "row %zu", i);
                broker.commit_result = 0;
                broker_committed(&broker, 0);
                cr_expect_eq(counters_n_requests(pipeline_counters(broker.pipeline)), 10);
                broker_deinit(&broker);
        }
}

#define N_ROWS_MAX 10

/* The storage takes few rows in a commit. etcd refuses a commit with more, and so each request in it. */
static void start_with_few_rows(void) {
        broker_init(&broker, broker_config());
        broker.operations.limits.n_rows = N_ROWS_MAX;
        broker_restart_store(&broker, broker_config());
        broker_connect(&broker, false);
}

static void register_for_keys(char letter, int n) {
        char words[32];

        for (int i = 0; i < n; i++) {
                snprintf(words, sizeof(words), "KEYNOTIFY %c%d", letter, i);
                broker_do(&broker, words);
        }
}

/* Set each of these keys. Their notifications get these packet ids. */
static void notify_of_keys(int n, uint16_t *ids) {
        char words[32];

        for (int i = 0; i < n; i++) {
                snprintf(words, sizeof(words), "SET k%d v", i);
                broker_do(&broker, words);
                ids[i] = (uint16_t)(broker.last_id - 1); /* the reply follows */
        }
}

static void acknowledge(const uint16_t *ids, int n, bool no_subscriber) {
        for (int i = 0; i < n; i++)
                pipeline_acknowledged(broker.pipeline, ids[i], no_subscriber, broker.now);
        broker_tick(&broker);
}

Test(batch_cost, acknowledgements_without_subscribers_change_no_more_than_the_storage_takes) {
        uint16_t ids[10 * N_ROWS_MAX];

        start_with_few_rows();
        register_for_keys('k', ARRAY_LENGTH(ids));
        notify_of_keys(ARRAY_LENGTH(ids), ids);
        acknowledge(ids, ARRAY_LENGTH(ids), false);
        for (int n = 0; n < 10; n++) {
                notify_of_keys(ARRAY_LENGTH(ids), ids);
                broker.n_changes_committed = 0;
                acknowledge(ids, ARRAY_LENGTH(ids), true);
                cr_expect_eq(broker.n_changes_committed, N_ROWS_MAX);
        }
        broker_deinit(&broker);
}

Test(batch_cost, another_policy_changes_no_more_than_the_storage_takes) {
        struct policy *policy;

        start_with_few_rows();
        register_for_keys('r', 2 * ENGINE_STEP_CHANGES_MAX);
        set_many_with_one_deadline(2 * ENGINE_STEP_CHANGES_MAX);
        cr_assert_eq(policy_new(&policy), 0);
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE); /* grants nothing */
        pipeline_set_policy(broker.pipeline, policy);
        broker.commit_result = 1;
        broker.n_changes_committed = 0;
        broker_tick(&broker);
        broker_committed(&broker, 0);
        cr_expect_gt(broker.n_changes_committed, 0);
        cr_expect_lt(broker.n_changes_committed, N_ROWS_MAX + ENGINE_STEP_CHANGES_MAX);
        broker_deinit(&broker);
}
