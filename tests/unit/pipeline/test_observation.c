/* SPDX-License-Identifier: Apache-2.0 */

/* What the console sees of the requests of all clients. */

#include <errno.h>
#include <stdio.h>

#include "pipeline/inspection.h"
#include "pipeline/internal.h"
#include "unit/pipeline/fake_broker.h"

static struct broker broker;
static struct event_log *events;
static struct client_table *clients;
static uint64_t last; /* number of the last event that was read */

static void setup(void) {
        broker_init(&broker, broker_config());
        cr_assert_eq(event_log_new(&events), 0);
        cr_assert_eq(client_table_new(&clients), 0);
        pipeline_observe(broker.pipeline, events, clients);
}

static void teardown(void) {
        broker_deinit(&broker);
        event_log_free(events);
        client_table_free(clients);
}

TestSuite(observation, .init = setup, .fini = teardown);

static void send(const char *client, const char *verb, const char *key, const char *value) {
        broker_send(&broker, (struct sending){ WORDS(slice_from_string(verb), slice_from_string(key),
                                                     slice_from_string(value)),
                                               .source = slice_from_string(client) });
}

/* Return the events since the last call as "kind key client bytes, ". */
static const char *new_events(void) {
        static const char *const kinds[] = { "nothing", "set", "delete", "expire", "unmet", "refused" };
        static char text[1000];
        const struct logged_event *event;
        uint64_t n_lost = 0;
        size_t length = 0;

        text[0] = '\0';
        while ((event = event_log_next(events, &last, &n_lost)))
                length += (size_t)snprintf(text + length, sizeof(text) - length, "%s %.*s %.*s, ",
                                           kinds[event->kind], (int)event->key.length, event->key.data,
                                           (int)event->origin.client.length, event->origin.client.data);
        cr_expect_eq(n_lost, 0);
        return text;
}

Test(observation, names_the_client_of_each_change_after_its_commit) {
        broker.commit_result = 1;
        send("a", "SET", "k", "v");
        send("b", "SET", "k", "w");
        send("b", "GET", "k", NULL);
        send("c", "DEL", "k", NULL);
        send("c", "DEL", "k", NULL);
        send("c", "set", "k", NULL);
        broker_flush(&broker);
        cr_expect_str_eq(new_events(), "");
        broker_committed(&broker, 0);
        cr_expect_str_eq(new_events(), "set k a, set k b, delete k c, refused  c, ");
}

Test(observation, shows_expiries_without_a_client) {
        broker_do(&broker, "SET k v PX 5");
        broker_do(&broker, "SET l v PX 5");
        broker.commit_result = -EIO; /* no key expires by itself for a second */
        send("a", "SET", "m", "v");
        broker_flush(&broker);
        broker.commit_result = 0;
        new_events();
        broker_pass_ms(&broker, 10);
        send("a", "DEL", "k", NULL);
        broker_flush(&broker);
        cr_expect_str_eq(new_events(), "expire k , ");
        broker_pass_deadline(&broker);
        cr_expect_str_eq(new_events(), "expire l , ");
}

Test(observation, shows_why_a_condition_was_not_met) {
        uint64_t number = 0, n_lost = 0;

        send("a", "SET", "k", "v");
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("w"), S("NX")), .source = S("a") });
        broker_send(&broker,
                    (struct sending){ WORDS(S("SET"), S("k"), S("w"), S("NEX")), .source = S("a") });
        send("a", "VDEL", "k", "w");
        broker_flush(&broker);
        event_log_next(events, &number, &n_lost);
        cr_expect(slice_equal(event_log_next(events, &number, &n_lost)->error, S("the key exists")));
        cr_expect(slice_equal(event_log_next(events, &number, &n_lost)->error,
                              S("the key has another value")));
        cr_expect_str_eq(new_events(), "set k a, unmet k a, unmet k a, unmet k a, ");
        cr_expect_eq(client_table_next(clients, NULL)->n_refused, 0);
}

Test(observation, shows_a_failed_batch_as_refused) {
        broker.commit_result = -EIO;
        send("a", "SET", "k", "v");
        broker_flush(&broker);
        cr_expect_str_eq(new_events(), "refused k a, ");
        broker.commit_result = 0;
        send("b", "SET", "k", "v");
        broker_flush(&broker);
        cr_expect_str_eq(new_events(), "set k b, ");
}

Test(observation, counts_requests_by_client) {
        const struct client_usage *usage;

        send("a", "SET", "k", "v");
        send("a", "set", "k", "v");
        broker_flush(&broker);
        usage = client_table_next(clients, NULL);
        cr_expect(slice_equal(usage->origin.client, S("a")));
        cr_expect_eq(usage->n_requests, 2);
        cr_expect_eq(usage->n_refused, 1);
        cr_expect_not(usage->origin.is_verified);
        cr_expect_null(client_table_next(clients, usage));
}

/* Watchers */

static void count_watcher(void *userdata, const struct registration *registration) {
        cr_assert_not_null(registration->client);
        ++*(size_t *)userdata;
}

/* Return the number of watchers that all pages have. */
static size_t n_watchers(struct slice key, struct slice client) {
        struct watchers_query query = { key, client, 0 };
        size_t n = 0;

        do {
                size_t n_before = n;

                query.position = pipeline_list_watchers(broker.pipeline, &query, count_watcher, &n);
                cr_assert_leq(n - n_before, WATCHERS_PAGE_MAX);
        } while (query.position > 0);
        return n;
}

Test(observation, lists_watchers_in_pages) {
        char name[20];

        for (int i = 0; i < 3 * WATCHERS_PAGE_MAX; i++) {
                snprintf(name, sizeof(name), "%d", i);
                send("a", "KEYNOTIFY", name, NULL);
                send(name, "KEYNOTIFY", "k", NULL);
                broker_flush(&broker);
        }
        cr_expect_eq(n_watchers(S("k"), (struct slice){ 0 }), 3 * WATCHERS_PAGE_MAX);
        cr_expect_eq(n_watchers(S("1"), (struct slice){ 0 }), 1);
        cr_expect_eq(n_watchers((struct slice){ 0 }, S("a")), 3 * WATCHERS_PAGE_MAX);
        cr_expect_eq(n_watchers(S("none"), (struct slice){ 0 }), 0);
        cr_expect_eq(n_watchers((struct slice){ 0 }, (struct slice){ 0 }), 6 * WATCHERS_PAGE_MAX);
}
