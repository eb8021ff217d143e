/* SPDX-License-Identifier: Apache-2.0 */

/* Batches are stored before anything of them is published; what cannot be stored has not happened. */

#include <errno.h>

#include "unit/pipeline/fake_broker.h"
#include "unit/support/table.h"

#define KEY 'a'
#define ALL "0\nguarded\n"

static struct broker broker;

static void setup(void) {
        broker_init(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
}

TestSuite(storage, .init = setup, .fini = teardown);

static void send_words(const char *verb, const char *key, const char *value) {
        broker_send(&broker, (struct sending){ WORDS(slice_from_string(verb), slice_from_string(key),
                                                     slice_from_string(value)),
                                               .source = S("c") });
}

static bool has(const char *key, struct slice payload) {
        return broker_answers(
                &broker, (struct sending){ WORDS(S("GET"), slice_from_string(key)), .topic = S("probe") },
                payload);
}

Test(storage, gets_each_batch_once_and_none_that_changes_nothing) {
        send_words("SET", "k", "v");
        send_words("SET", "l", "v");
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_eq(broker.n_rows_committed, 4); /* two keys, two answers to remember */

        send_words("GET", "k", NULL);
        send_words("SCAN", "*", NULL);
        send_words("get", "k", NULL);
        broker_flush(&broker);
        broker_flush(&broker);
        broker_tick(&broker);
        cr_expect_eq(broker.n_commits, 1);
}

Test(storage, holds_back_all_of_a_batch_until_it_is_safe) {
        broker_do(&broker, "KEYNOTIFY k");
        broker.commit_result = 1;
        send_words("GET", "k", NULL);
        send_words("SET", "k", "v");
        send_words("GET", "k", NULL);
        broker_flush(&broker);
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect_not(pipeline_is_idle(broker.pipeline));

        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "answers:$-1 c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v "
                                               "answers:+OK answers:$1|v ");
        cr_expect(pipeline_is_idle(broker.pipeline));
}

Test(storage, has_one_batch_at_a_time_and_what_arrives_meanwhile_is_the_next) {
        broker.commit_result = 1;
        send_words("SET", "k", "1");
        broker_flush(&broker);
        send_words("GET", "k", NULL);
        send_words("SET", "k", "2");
        send_words("SET", "k", "3");
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_eq(counters_n_requests(pipeline_counters(broker.pipeline)),
                     0); /* what became of it is not known yet */

        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "answers:+OK ");
        cr_expect_eq(broker.n_commits, 2);
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "answers:+OK answers:$1|1 answers:+OK answers:+OK ");
        cr_expect(pipeline_is_idle(broker.pipeline));
}

Test(storage, lets_no_key_expire_while_a_batch_is_stored) {
        broker_do(&broker, "SET p v PX 1000");
        broker.commit_result = 1;
        send_words("SET", "k", "v");
        broker_flush(&broker);
        broker_pass_ms(&broker, 2000);
        broker_tick(&broker);
        cr_expect_eq(broker.n_commits, 2);
        cr_expect_eq(pipeline_next_deadline(broker.pipeline), INT64_MAX);

        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_leq(pipeline_next_deadline(broker.pipeline), broker.now.mono_ns);
        broker_tick(&broker);
        cr_expect_eq(broker.n_commits, 3);
}

static const struct {
        const char *name;
        int result;
        struct slice payload;
        bool is_desynchronized;
} failures[] = {
        { "no room", -ENOSPC, S("-ERR the disk is full\r\n"), false },
        { "a fault", -EIO, S("-ERR the storage has failed\r\n"), false },
        { "nobody knows", -ESTALE, S("-ERR the storage has failed\r\n"), true },
};

Test(storage, that_fails_leaves_all_as_it_was_and_every_answer_says_so) {
        for (size_t i = 0; i < N_ROWS(failures); i++)
                for (int is_late = 0; is_late < 2; is_late++) {
                        teardown();
                        setup();
                        broker_do(&broker, "SET k old PX 100000");
                        broker_do(&broker, "SET gone v");
                        broker_do(&broker, "KEYNOTIFY k");

                        broker.commit_result = is_late ? 1 : failures[i].result;
                        send_words("SET", "k", "new");
                        send_words("GET", "k", NULL);
                        send_words("SET", "k2", "new");
                        send_words("DEL", "gone", NULL);
                        send_words("KEYNOTIFY", "k2", NULL);
                        send_words("KEYNOTIFY", "k", "STOP");
                        broker_flush(&broker);
                        if (is_late)
                                broker_committed(&broker, failures[i].result);

                        cr_expect_eq(broker.n_sent, 6, ROW(failures, i));
                        for (size_t j = 0; j < broker.n_sent; j++) {
                                const struct message *message = broker_sent_message(&broker, j);

                                cr_expect(slice_equal(message->payload, failures[i].payload),
                                          ROW(failures, i));
                                cr_expect_null(message_property(message, "__ts").data, ROW(failures, i));
                        }
                        cr_expect_eq(broker.is_desynchronized, failures[i].is_desynchronized,
                                     ROW(failures, i));
                        if (broker.is_desynchronized)
                                continue; /* nothing more is executed */

                        broker.commit_result = 0;
                        broker_forget(&broker);
                        cr_expect(has("k", S("$3\r\nold\r\n")), ROW(failures, i));
                        cr_expect(has("k2", S("$-1\r\n")), ROW(failures, i));
                        cr_expect(has("gone", S("$1\r\nv\r\n")), ROW(failures, i));
                        broker_forget(&broker);
                        send_words("SET", "k2", "x");
                        send_words("SET", "k", "x");
                        broker_flush(&broker);
                        cr_expect_str_eq(broker_sent(&broker),
                                         "answers:+OK c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|x answers:+OK ",
                                         ROW(failures, i));
                }
}

Test(storage, that_fails_does_not_make_a_repeated_request_fail_again) {
        struct sending sending = { WORDS(S("SET"), S("k"), S("v"), S("NX")), .timestamp = S(BROKER_TS) };

        broker.commit_result = -EIO;
        cr_expect(broker_answers(&broker, sending, S("-ERR the storage has failed\r\n")));
        broker.commit_result = 0;
        cr_expect(broker_answers(&broker, sending, S("+OK\r\n")));
        cr_expect(broker_answers(&broker, sending, S("+OK\r\n")));
}

Test(storage, that_fails_keeps_versions_going_forward) {
        struct slice before, after;
        struct sending set = { WORDS(S("SET"), S("k"), S("v")) };

        before = message_property(broker_ask(&broker, set), "__ts");
        broker.commit_result = -EIO;
        for (int i = 0; i < 3; i++)
                broker_ask(&broker, set);
        broker.commit_result = 0;
        after = message_property(broker_ask(&broker, set), "__ts");
        cr_expect_gt(slice_compare(after, before), 0); /* padded: they compare as text */
}

Test(storage, that_fails_has_a_key_expire_later_and_tells_of_it_once) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_do(&broker, "SET k v PX 1000");
        broker.commit_result = -EIO;
        broker_pass_ms(&broker, 1000);
        broker_tick(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect(has("k", S("$-1\r\n"))); /* gone all the same, for all who ask */
        broker_forget(&broker);

        cr_expect_gt(pipeline_next_deadline(broker.pipeline),
                     broker.now.mono_ns); /* not over and over again */
        broker.commit_result = 0;
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), "c/k:*2|$6|NOTIFY|$6|DELETE ");
        broker_tick(&broker);
        cr_expect_eq(broker.n_sent, 1);
}

Test(storage, gets_a_batch_without_rows_where_it_asks_for_one) {
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 0);
        pipeline_commit(broker.pipeline, broker.now);
        cr_expect_eq(broker.n_commits, 1);
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);

        broker.commit_result = 1;
        send_words("SET", "k", "v");
        pipeline_commit(broker.pipeline, broker.now);
        cr_expect_eq(broker.n_commits, 2);
        pipeline_commit(broker.pipeline, broker.now); /* one is under way */
        cr_expect_eq(broker.n_commits, 2);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "answers:+OK ");
}

static void meet_plugin(void) {
        pipeline_disconnected(broker.pipeline);
        broker_say(&broker, "$SYS/statestore/v1/plugin", COMPANION_VERSION);
        pipeline_connected(broker.pipeline, false, broker.now);
        broker_welcome(&broker, KEY, ALL);
        cr_assert_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
}

Test(storage, that_fails_does_not_bring_back_whose_connection_has_ended) {
        meet_plugin();
        broker_ask(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), S("k")),
                                              .vouched = { KEY, S("c"), { 0 }, 7, 0 } });

        broker.commit_result = -EIO;
        broker_say(&broker, "$SYS/statestore/v1/disconnected", "7");
        broker_flush(&broker);
        broker.commit_result = 0;
        broker_forget(&broker);
        send_words("SET", "k", "v");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "answers:+OK ");
}

Test(storage, that_fails_says_nothing_to_the_plugin_of_connections) {
        meet_plugin();
        broker_forget(&broker);
        broker.commit_result = -EIO;
        broker_send(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), S("k")),
                                               .vouched = { KEY, S("c"), { 0 }, 7, 0 } });
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "answers:-ERR the storage has failed ");
}

/* What the broker's side says while a batch is being stored has its effect afterwards. */

static void begin_to_store(void) {
        broker.commit_result = 1;
        send_words("SET", "k", "v");
        broker_flush(&broker);
}

/*
 * The link breaks while a registration is being stored. The plugin must hear of it before hello: a welcome that does
 * not list it would end it, though its client was told that it has one.
 */
Test(deferral, of_hello_is_until_registrations_are_safe_and_held) {
        setup();
        meet_plugin();
        broker.commit_result = 1;
        broker_send(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), S("k")),
                                               .vouched = { KEY, S("c"), { 0 }, 7, 0 } });
        broker_flush(&broker);
        broker_forget(&broker);

        pipeline_disconnected(broker.pipeline);
        broker_say(&broker, "$SYS/statestore/v1/plugin", COMPANION_VERSION);
        pipeline_connected(broker.pipeline, true, broker.now);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "$CONTROL/statestore/v1/track:7 answers:+OK "
                                               "$CONTROL/statestore/v1/hello:instance-1 ");
        broker_welcome(&broker, KEY, ALL "7\n");
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        teardown();
}

Test(deferral, of_a_plain_broker_is_until_the_batch_is_safe) {
        setup();
        broker_do(&broker, "KEYNOTIFY k");
        begin_to_store();
        pipeline_disconnected(broker.pipeline);
        pipeline_connected(broker.pipeline, false, broker.now);
        cr_expect_eq(broker.n_serving, 1);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_eq(broker.n_serving, 2);
        broker_forget(&broker);
        send_words("SET", "k", "v");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "answers:+OK ");
        teardown();
}

Test(deferral, of_hello_ends_with_the_connection) {
        setup();
        begin_to_store();
        pipeline_disconnected(broker.pipeline);
        broker_say(&broker, "$SYS/statestore/v1/plugin", COMPANION_VERSION);
        pipeline_connected(broker.pipeline, true, broker.now);
        pipeline_disconnected(broker.pipeline);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "answers:+OK ");
        teardown();
}

/* However slow the disk: the plugin's time to answer begins with hello. */
Test(deferral, of_hello_is_no_reason_to_give_the_plugin_up) {
        setup();
        begin_to_store();
        pipeline_disconnected(broker.pipeline);
        broker_say(&broker, "$SYS/statestore/v1/plugin", COMPANION_VERSION);
        pipeline_connected(broker.pipeline, true, broker.now);
        broker_pass_ms(&broker, 10000);
        broker_tick(&broker);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        broker_tick(&broker);
        pipeline_commit(broker.pipeline, broker.now); /* must not close the batch while welcome is awaited */
        broker_welcome(&broker, KEY, ALL);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        teardown();
}

Test(deferral, of_a_departure_keeps_its_place_among_the_requests) {
        struct pipeline_config config = broker_config();

        config.presence_topic = "gone/{client}";
        broker_init(&broker, config);
        broker_do(&broker, "KEYNOTIFY k");
        begin_to_store();
        send_words("SET", "k", "1");
        broker_say(&broker, "gone/c", "");
        send_words("SET", "k", "2");
        broker.commit_result = 0;
        broker_forget(&broker);
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker),
                         "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v answers:+OK "
                         "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|1 answers:+OK answers:+OK ");
        broker_deinit(&broker);
}

Test(storage, covers_a_version_before_it_leaves_though_no_row_has_changed) {
        struct sending again = { WORDS(S("KEYNOTIFY"), S("k")), .source = S("c"), .no_timestamp = true,
                                 .correlation = S("short") };

        broker_do(&broker, "KEYNOTIFY k");
        broker_forget(&broker);
        broker.n_commits = broker.n_rows_committed = 0;
        broker.commit_result = 1;
        broker_send(&broker, again);
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_eq(broker.n_rows_committed, 0);
        cr_expect_eq(broker.n_sent, 0);

        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "answers:+OK ");
}

Test(storage, that_fails_lets_no_version_leave_that_it_does_not_cover) {
        struct sending again = { WORDS(S("KEYNOTIFY"), S("k")), .source = S("c"), .no_timestamp = true,
                                 .correlation = S("short") };

        broker_do(&broker, "KEYNOTIFY k");
        broker_forget(&broker);
        broker.commit_result = -EIO;
        broker_send(&broker, again);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "answers:-ERR the storage has failed ");
}
