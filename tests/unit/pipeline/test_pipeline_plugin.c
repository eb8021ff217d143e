/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PROTOCOL.md "Broker abilities", beside a broker with the plugin: who has proven to be there, who sends,
 * who has left.
 */

#include <errno.h>

#include "engine/persistence.h"
#include "pipeline/internal.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/table.h"

#define KEY       'a'
#define OTHER_KEY 'b'
#define ALL       "0\nguarded\n" /* welcome, before the connections that are alive */
#define CONTROL   COMPANION_CONTROL
#define SYS       COMPANION_SYS

#define ANSWER "x:+OK "

static struct broker broker;

static void teardown(void) {
        broker_deinit(&broker);
}

/* Up to hello, which the broker has taken. */
static void meet_plugin(bool session_present) {
        broker_say(&broker, SYS "plugin", COMPANION_VERSION);
        pipeline_connected(broker.pipeline, session_present, broker.now);
        pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
}

static void setup_proven(void) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        broker_welcome(&broker, KEY, ALL);
        cr_assert_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_forget(&broker);
}

TestSuite(proven, .init = setup_proven, .fini = teardown);

/* By client c, over this connection. */
static void send_vouched(const char *verb, const char *key, const char *value, char mac_key,
                         uint64_t connection) {
        broker_send(&broker,
                    (struct sending){
                            WORDS(slice_from_string(verb), slice_from_string(key), slice_from_string(value)),
                            .source = S("claimed"), .vouched = { mac_key, S("c"), { 0 }, connection, 0 } });
        broker_flush(&broker);
}

Test(hello, is_said_where_the_plugin_is_and_nothing_is_served_until_it_has_answered) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        broker_send(&broker,
                    (struct sending){ WORDS(S("GET"), S("k")), .vouched = { KEY, S("c"), { 0 }, 7, 0 } });
        broker_flush(&broker);
        cr_expect_eq(broker.n_serving, 0);
        cr_expect_eq(broker.n_sent, 1);

        broker_welcome(&broker, KEY, ALL);
        broker_flush(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 answers:$-1 ");
        broker_deinit(&broker);
}

Test(hello, is_not_said_to_a_plugin_of_another_version) {
        broker_init_down(&broker, broker_config());
        broker_say(&broker, SYS "plugin", "1");
        pipeline_connected(broker.pipeline, false, broker.now);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_eq(broker.n_sent, 0);
        broker_deinit(&broker);
}

Test(hello, that_is_not_answered_in_time_is_answered_by_none) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        cr_assert_neq(pipeline_next_deadline(broker.pipeline), INT64_MAX);
        broker_pass_ms(&broker, 1);
        broker_tick(&broker);
        cr_expect_eq(broker.n_serving, 0);
        broker_pass_deadline(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_eq(broker.n_serving, 1);

        broker_welcome(&broker, KEY, ALL); /* late, and as good */
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_deinit(&broker);
}

/* It stands still: the plugin has not been asked, and those who register meanwhile must not be taken for its. */
Test(hello, is_waited_for_until_the_broker_has_taken_it) {
        broker_init_down(&broker, broker_config());
        broker_say(&broker, SYS "plugin", COMPANION_VERSION);
        pipeline_connected(broker.pipeline, false, broker.now);
        for (int i = 0; i < 20; i++) {
                broker_pass_deadline(&broker);
                cr_expect_eq(broker.n_serving, 0);
        }
        pipeline_acknowledged(broker.pipeline, (uint16_t)(broker.last_id + 1), false, broker.now);
        broker_pass_deadline(&broker);
        cr_expect_eq(broker.n_serving, 0, "that was another one's");

        pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
        broker.now.mono_ns = pipeline_next_deadline(broker.pipeline) - 1;
        broker_tick(&broker);
        cr_expect_eq(broker.n_serving, 0);
        broker_pass_deadline(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        broker_deinit(&broker);
}

Test(hello, is_waited_for_as_long_as_anything_comes_before_its_answer) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        for (int i = 0; i < 5; i++) {
                int64_t deadline_ns = pipeline_next_deadline(broker.pipeline);

                broker.now.mono_ns = deadline_ns - 1;
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
                broker.now.mono_ns = deadline_ns;
                broker_tick(&broker);
                cr_expect_eq(broker.n_serving, 0);
        }
        for (int i = 0; i < 100 && broker.n_serving == 0; i++) {
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
                broker_pass_ms(&broker, 1000);
                broker_tick(&broker);
        }
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN, "not for ever");
        broker_deinit(&broker);
}

Test(proven, keeps_what_is_registered_while_the_plugin_does_not_answer) {
        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_pass_deadline(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        broker_welcome(&broker, KEY, ALL "7\n");
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
}

Test(proven, ends_all_where_the_plugin_of_a_broker_that_was_started_anew_does_not_answer) {
        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        pipeline_disconnected(broker.pipeline);
        meet_plugin(false);
        broker_pass_deadline(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_str_eq(broker_notified_after_set(&broker), ANSWER);
}

Test(hello, that_is_answered_with_what_cannot_be_read_counts_as_not_answered) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        broker_welcome(&broker, KEY, "guarded\n");
        cr_expect_eq(broker.n_serving, 0);
        broker_pass_deadline(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        broker_deinit(&broker);
}

Test(proven, holds_the_connection_before_it_answers_and_releases_it_after_the_last) {
        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "track:7 answers:+OK ");
        broker_forget(&broker);
        send_vouched("KEYNOTIFY", "k", "STOP", KEY, 7);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "untrack:7 answers:+OK ");
}

Test(proven, says_nothing_while_there_is_no_room) {
        broker.room = 0;
        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        cr_expect_eq(broker.n_sent, 0);
        broker.room = 1;
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "track:7 ");
        broker.room = 1;
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "track:7 answers:+OK ");
}

Test(proven, delivers_to_the_connection_that_registered) {
        const struct message *message;

        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        cr_expect_str_eq(broker_notified_after_set(&broker),
                         CONTROL "deliver:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v " ANSWER);
        message = broker_sent_message(&broker, 0);
        cr_expect(slice_equal(message->correlation_data, S("7:2")), "hello was 1");
        cr_expect(slice_equal(
                message->response_topic,
                S("clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/63/command/notify/6B")));
        cr_expect(slice_equal(message_property(message, "__ts"),
                              message_property(broker_sent_message(&broker, 1), "__ts")));
        cr_expect(slice_equal(message_property(message, "__srcId"), S("StateStore")));
        cr_expect_null(message_property(message, "__stat").data);
}

Test(proven, ends_what_was_registered_over_a_connection_that_left) {
        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_say(&broker, SYS "disconnected", "8");
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
        broker_say(&broker, SYS "disconnected", "7x");
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
        broker_say(&broker, SYS "disconnected", "7");
        cr_expect_str_eq(broker_notified_after_set(&broker), ANSWER);
}

Test(proven, executes_nothing_that_the_plugin_does_not_vouch_for) {
        send_vouched("SET", "k", "v", OTHER_KEY, 7);
        broker_send(&broker,
                    (struct sending){ WORDS(S("SET"), S("k"), S("v")), .source = S("c"), .is_will = true });
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_drops[DROP_UNVERIFIED], 2);
}

static void send_numbered(uint64_t sequence) {
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")),
                                               .vouched = { KEY, S("c"), { 0 }, 7, sequence } });
        broker_flush(&broker);
}

Test(proven, executes_each_request_once) {
        send_numbered(5);
        send_numbered(5);
        send_numbered(4);
        cr_expect_eq(broker.n_sent, 1);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_drops[DROP_REPEATED], 2);
        send_numbered(6);
        cr_expect_eq(broker.n_sent, 2);
}

/* A copy of what was sent before, published as a will, comes behind welcome. */
Test(proven, executes_nothing_after_welcome_that_is_older_than_it) {
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_welcome(&broker, KEY, "10\nguarded\n");
        broker_forget(&broker);
        send_numbered(10);
        cr_expect_eq(broker.n_sent, 0);
        send_numbered(11);
        cr_expect_eq(broker.n_sent, 1);
}

Test(proven, executes_what_waited_before_welcome) {
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_forget(&broker);
        send_numbered(9);
        send_numbered(9);
        send_numbered(10);
        broker_welcome(&broker, KEY, "10\nguarded\n");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "answers:$-1 answers:$-1 ");
}

Test(proven, executes_what_waited_under_the_key_of_the_brokers_last_run) {
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_forget(&broker);
        send_numbered(9);
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")),
                                               .vouched = { OTHER_KEY, S("c"), { 0 }, 7, 1 } });
        broker_welcome(&broker, OTHER_KEY, "1\nguarded\n");
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 2);
        send_numbered(10); /* and not later: that run has ended */
        cr_expect_eq(broker.n_sent, 2);
}

Test(proven, takes_no_welcome_that_another_has_sealed) {
        struct message welcome = { .topic = S(COMPANION_WELCOME), .qos = 1 };
        uint8_t other[COMPANION_KEY_SIZE] = { 0 };
        struct buf text = { 0 };

        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker.broker_kind = BROKER_UNKNOWN;
        welcome.correlation_data = broker.hello->correlation_data;
        welcome.payload = welcome_box((struct slice){ other, sizeof(other) }, welcome_text(&text, KEY, ALL));
        pipeline_receive(broker.pipeline, &welcome, broker.now);
        cr_expect_eq(broker.broker_kind, BROKER_UNKNOWN);
        free((void *)welcome.payload.data);
        buf_deinit(&text);
}

Test(hello, bears_another_key_each_time) {
        uint8_t key[COMPANION_KEY_SIZE];

        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        memcpy(key, broker.hello->payload.data, sizeof(key));
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        cr_expect_neq(memcmp(key, broker.hello->payload.data, sizeof(key)), 0);
        broker_deinit(&broker);
}

Test(proven, ignores_acknowledgements_and_presence_topics) {
        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_notified_after_set(&broker);
        pipeline_acknowledged(broker.pipeline, (uint16_t)(broker.last_id - 1), true, broker.now);
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
}

static const struct {
        const char *name;
        char key;
        const char *welcome;
        size_t n_notified; /* of two connections, 7 and 8 */
} returns[] = {
        { "with both alive", KEY, ALL "8\n7\n", 2 },
        { "with one alive", KEY, ALL "8\n", 1 },
        { "with none alive", KEY, ALL, 0 },
        { "with a broker that was started anew", OTHER_KEY, ALL, 0 },
};

Test(proven, keeps_after_a_break_what_the_plugin_says_is_alive) {
        for (size_t i = 0; i < N_ROWS(returns); i++) {
                teardown();
                setup_proven();
                send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
                broker_ask(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), S("k")),
                                                      .vouched = { KEY, S("d"), { 0 }, 8, 0 } });
                pipeline_disconnected(broker.pipeline);
                meet_plugin(i % 2);
                broker_welcome(&broker, returns[i].key, returns[i].welcome);
                broker_notified_after_set(&broker);
                cr_expect_eq(broker.n_sent, 1 + returns[i].n_notified, ROW(returns, i));
        }
}

Test(proven, numbers_what_it_delivers_and_goes_on_after_a_break) {
        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        for (size_t i = 0; i < 2; i++) {
                broker_notified_after_set(&broker);
                cr_expect(slice_equal(broker_sent_message(&broker, 0)->correlation_data,
                                      i == 0 ? S("7:2") : S("7:3")));
        }
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        cr_expect(slice_equal(broker.hello->correlation_data, S("42:4")));
        broker_welcome(&broker, KEY, ALL "7\n");
        broker_notified_after_set(&broker);
        cr_expect(slice_equal(broker_sent_message(&broker, 0)->correlation_data, S("7:5")));
}

static const struct {
        const char *name;
        struct slice correlation;
} other_welcomes[] = {
        { "to an earlier hello", S("42:1") },
        { "to another run", S("41:2") },
        { "to a hello that was not said", S("42:3") },
        { "to nothing", { 0 } },
        { "to what is no hello", S("42") },
};

/* It was on its way when the link broke, and comes late: what was registered since is not in it. */
Test(proven, takes_no_welcome_but_the_answer_to_its_latest_hello) {
        for (size_t i = 0; i < N_ROWS(other_welcomes); i++) {
                teardown();
                setup_proven();
                pipeline_disconnected(broker.pipeline);
                meet_plugin(true);
                broker.broker_kind = BROKER_UNKNOWN;
                broker_welcome_as(&broker, KEY, ALL, other_welcomes[i].correlation);
                cr_expect_eq(broker.broker_kind, BROKER_UNKNOWN, ROW(other_welcomes, i));

                broker_welcome(&broker, KEY, ALL);
                cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN, ROW(other_welcomes, i));
                send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
                broker_welcome_as(&broker, KEY, ALL, other_welcomes[i].correlation);
                broker_notified_after_set(&broker);
                cr_expect_eq(broker.n_sent, 2, ROW(other_welcomes, i));
        }
}

Test(proven, ends_all_where_the_next_broker_has_no_plugin) {
        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        pipeline_disconnected(broker.pipeline);
        pipeline_connected(broker.pipeline, true, broker.now);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_str_eq(broker_notified_after_set(&broker), ANSWER);
}

/* Two brokers are served in turn, and their clients stay where they are. */
Test(proven, dismisses_those_who_are_held_and_lost_what_they_had_while_another_broker_was_served) {
        const char keys[] = { OTHER_KEY, KEY, KEY };
        const char *welcomes[] = { ALL, ALL "7\n8\n", ALL "8\n7\n" };
        const char *said[] = { "", CONTROL "kick:7 " CONTROL "kick:8 ", CONTROL "kick:8 " };

        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_do(&broker, "SET k v");
        for (size_t i = 0; i < N_ROWS(keys); i++) {
                pipeline_disconnected(broker.pipeline);
                meet_plugin(true);
                broker_forget(&broker);
                broker_welcome(&broker, keys[i], welcomes[i]);
                broker_flush(&broker);
                cr_expect_str_eq(broker_sent(&broker), said[i]);
                if (i == 0)
                        send_vouched("KEYNOTIFY", "k", NULL, OTHER_KEY, 3);
                else
                        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        }
}

Test(proven, takes_the_new_key_and_no_longer_the_old_one) {
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_welcome(&broker, OTHER_KEY, ALL);
        broker_forget(&broker);
        send_vouched("KEYNOTIFY", "k", NULL, KEY, 7);
        cr_expect_eq(broker.n_sent, 0);
        send_vouched("KEYNOTIFY", "k", NULL, OTHER_KEY, 7);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "track:7 answers:+OK ");
}

/* A client that watches a key which is stored for certain, before a restart that loses the others. */
static void setup_custom(void) {
        struct pipeline_config config = broker_config();

        config.engine.persist = PERSIST_CUSTOM;
        config.engine.persist_pattern = S("stored/*");
        broker_init_down(&broker, config);
        meet_plugin(false);
        broker_welcome(&broker, KEY, ALL);
        send_vouched("KEYNOTIFY", "stored/k", NULL, KEY, 5);
        pipeline_disconnected(broker.pipeline);
        broker.pipeline->lost_persistence = persistence_digest(engine_config(broker.pipeline->engine));
}

static void come_back(const char *welcome) {
        meet_plugin(true);
        broker_forget(&broker);
        broker_welcome(&broker, KEY, welcome);
        broker_flush(&broker);
}

Test(lost_keys, have_their_watchers_disconnected_once, .fini = teardown) {
        setup_custom();
        come_back(ALL "5\n");
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect_eq(pipeline_persistence(broker.pipeline),
                     persistence_digest(engine_config(broker.pipeline->engine)));

        send_vouched("KEYNOTIFY", "k", NULL, KEY, 5);
        pipeline_disconnected(broker.pipeline);
        come_back(ALL "5\n"); /* the process is the same: nothing was lost */
        cr_expect_str_eq(broker_sent(&broker), "");

        pipeline_disconnected(broker.pipeline);
        broker.pipeline->lost_persistence = PERSISTENCE_UNKNOWN;
        cr_expect_eq(pipeline_persistence(broker.pipeline), PERSISTENCE_UNKNOWN);
        come_back(ALL "5\n");
        cr_expect_str_eq(broker_sent(&broker), CONTROL "kick:5 ");
        cr_expect_eq(engine_stats(broker.pipeline->engine).n_registrations, 0);
}

Test(lost_keys, have_their_watchers_disconnected_though_that_cannot_be_stored, .fini = teardown) {
        setup_custom();
        broker.pipeline->lost_persistence = PERSISTENCE_UNKNOWN;
        broker.commit_result = -EIO;
        come_back(ALL "5\n");
        cr_expect_str_eq(broker_sent(&broker), CONTROL "kick:5 ");
}
