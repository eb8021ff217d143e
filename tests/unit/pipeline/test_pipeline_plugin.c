/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PROTOCOL.md "Broker abilities" for a broker with the plugin: HELLO and WELCOME, verified
 * identities, and DISCONNECTED.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/persistence.h"
#include "pipeline/hooks.h"
#include "pipeline/internal.h"
#include "policy/policy_build.h"
#include "protocol/companion_frame.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/capture.h"
#include "unit/support/table.h"

#define KEY       'a'
#define OTHER_KEY 'b'
#define ALL       "0\nguarded\n0\n" /* the lines of welcome before the tracked connections */
#define CONTROL   COMPANION_CONTROL
#define SYS       COMPANION_SYS

/* The notification of "SET k v": sequence, index and recipients as broker_sent() shows them. */
#define FRAME(recipients) CONTROL "deliver:" recipients ":k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v "

#define REPLY "x:+OK "

static struct broker broker;

static void teardown(void) {
        broker_deinit(&broker);
}

/* Connect, up to the PUBACK of hello. */
static void meet_plugin(bool session_present) {
        broker_say(&broker, SYS "plugin", COMPANION_VERSION);
        broker_connect(&broker, session_present);
        pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
}

static void setup_with_plugin(void) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        broker_welcome(&broker, KEY, ALL);
        cr_assert_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_forget(&broker);
}

TestSuite(with_plugin, .init = setup_with_plugin, .fini = teardown);

/* Send a request of client c over this connection, with identity properties. */
static void send_with_mac(const char *verb, const char *key, const char *value, char mac_key,
                          uint64_t connection) {
        broker_send(&broker,
                    (struct sending){
                            WORDS(slice_from_string(verb), slice_from_string(key), slice_from_string(value)),
                            .source = S("claimed"), .sender = { mac_key, S("c"), { 0 }, connection, 0 } });
        broker_flush(&broker);
}

/* Let several HELLOs of this connection time out. Meanwhile the store must not serve. */
static void time_out_hellos(void) {
        for (int i = 0; i < 10; i++) {
                cr_expect_eq(broker.n_serving, 0);
                pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
                broker_pass_deadline(&broker);
        }
        cr_expect_eq(broker.n_serving, 0);
}

/* No PUBACK follows, so the timeout begins at once. */
Test(hello, hello_that_cannot_be_published_is_repeated) {
        broker_init_down(&broker, broker_config());
        broker_say(&broker, SYS "plugin", COMPANION_VERSION);
        broker.publish_result = -EAGAIN;
        broker_connect(&broker, false);
        cr_expect_str_eq(broker_sent(&broker), "");

        broker.publish_result = 0;
        cr_assert_neq(pipeline_next_deadline(broker.pipeline), INT64_MAX);
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        cr_expect_eq(broker.n_serving, 0);
        broker_deinit(&broker);
}

/*
 * Another plugin may grant the subscription to COMPANION_PROBE. Then only the banner shows the
 * plugin, and may arrive late.
 */
Test(hello, required_plugin_is_awaited_until_its_banner_arrives) {
        struct pipeline_config config = broker_config();

        config.requires_plugin = true;
        broker_init_down(&broker, config);
        broker_connect(&broker, true);
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
        broker_flush(&broker);
        cr_expect_eq(broker.n_serving, 0);
        cr_expect_str_eq(broker_sent(&broker), "");

        broker_say(&broker, SYS "plugin", COMPANION_VERSION);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
        broker_welcome(&broker, KEY, ALL);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_deinit(&broker);
}

/*
 * Reconnect to a broker with this banner; NULL: none. Return the number of log lines with this
 * text.
 */
static size_t count_logged_at_reconnect(const char *banner, const char *text) {
        struct capture capture;
        size_t n_lines;
        char *printed;

        pipeline_disconnected(broker.pipeline);
        capture_start(&capture, STDERR_FILENO);
        if (banner)
                broker_say(&broker, SYS "plugin", banner);
        broker_connect(&broker, true);
        printed = capture_end(&capture);
        n_lines = capture_count(printed, text);
        free(printed);
        return n_lines;
}

static size_t reconnect_without_plugin(void) {
        return count_logged_at_reconnect(NULL, "the broker has no plugin of this version");
}

static size_t reconnect_to_other_version(void) {
        return count_logged_at_reconnect("1", "the plugin in the broker has another version");
}

Test(hello, missing_required_plugin_is_logged_once_until_the_plugin_is_detected) {
        struct pipeline_config config = broker_config();

        config.requires_plugin = true;
        broker_init_down(&broker, config);
        cr_expect_eq(reconnect_without_plugin(), 1);
        cr_expect_eq(reconnect_without_plugin(), 0);
        cr_expect_eq(reconnect_without_plugin(), 0);

        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        cr_expect_eq(reconnect_without_plugin(), 1);
        cr_expect_eq(reconnect_without_plugin(), 0);
        broker_deinit(&broker);
}

/* The broker drops WELCOME if the queue of the store's session is full. */
Test(hello, welcome_timeout_repeats_hello) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 " CONTROL "hello:instance-1 ");
        cr_expect_eq(broker.n_serving, 0);
        broker_welcome(&broker, KEY, ALL);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_deinit(&broker);
}

Test(hello, requests_wait_for_the_welcome) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        broker_send(&broker,
                    (struct sending){ WORDS(S("GET"), S("k")), .sender = { KEY, S("c"), { 0 }, 7, 0 } });
        broker_flush(&broker);
        cr_expect_eq(broker.n_serving, 0);
        cr_expect_eq(broker.n_sent, 1);

        broker_welcome(&broker, KEY, ALL);
        broker_flush(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 replies:$-1 ");
        broker_deinit(&broker);
}

static void restart_store(void) {
        broker_restart_store(&broker, broker_config());
        broker_forget(&broker);
}

/* Connect to a broker whose plugin has this MAC key, and end the earlier connection. */
static void connect_to_plugin(char key) {
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_welcome(&broker, key, ALL);
        broker_flush(&broker);
}

/*
 * Connect to a restarted broker, whose plugin has the MAC key 'z'. This request waited in the
 * session. Returns true if it is executed.
 */
static bool executes_waiting_request(char key, uint64_t sequence) {
        broker_forget(&broker);
        meet_plugin(true);
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .topic = S("x"),
                                               .sender = { key, S("c"), { 0 }, 7, sequence } });
        broker_welcome(&broker, 'z', ALL);
        broker_flush(&broker);
        return strcmp(broker_sent(&broker), CONTROL "hello:instance-1 x:$-1 ") == 0;
}

/*
 * The store executes nothing between WELCOME and its end, so only the commit that WELCOME requests
 * stores the key.
 */
Test(hello, waiting_request_is_executed_after_restarts_of_store_and_broker) {
        broker_init_down(&broker, broker_config());
        connect_to_plugin(KEY);
        restart_store();
        cr_expect(executes_waiting_request(KEY, 1));
        broker_deinit(&broker);
}

/* A key that becomes known again keeps its stored sequence. */
Test(hello, executed_request_is_not_executed_again_after_restarts_of_store_and_broker) {
        for (uint64_t sequence = 1; sequence <= 2; sequence++) {
                broker_init_down(&broker, broker_config());
                connect_to_plugin(KEY);
                broker_ask(&broker, (struct sending){ WORDS(S("GET"), S("k")),
                                                      .sender = { KEY, S("c"), { 0 }, 7, 1 } });
                pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
                connect_to_plugin(OTHER_KEY);
                connect_to_plugin(KEY);
                restart_store();
                cr_expect_eq(executes_waiting_request(KEY, sequence), sequence > 1);
                broker_deinit(&broker);
        }
}

Test(hello, other_version_is_logged_once_until_this_version_is_detected) {
        broker_init_down(&broker, broker_config());
        cr_expect_eq(reconnect_to_other_version(), 1);
        cr_expect_eq(reconnect_to_other_version(), 0);
        cr_expect_eq(reconnect_to_other_version(), 0);

        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        cr_expect_eq(reconnect_to_other_version(), 1);
        cr_expect_eq(reconnect_to_other_version(), 0);
        broker_deinit(&broker);
}

Test(hello, plugin_of_another_version_gets_no_hello) {
        broker_init_down(&broker, broker_config());
        broker_say(&broker, SYS "plugin", "1");
        broker_connect(&broker, false);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_eq(broker.n_sent, 0);
        broker_deinit(&broker);
}

/*
 * Clients that keep the queue of the store's session full must not make the store serve claimed
 * identities.
 */
Test(hello, welcome_timeouts_do_not_make_the_broker_plain) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        cr_assert_neq(pipeline_next_deadline(broker.pipeline), INT64_MAX);
        broker_pass_ms(&broker, 1);
        broker_tick(&broker);
        time_out_hellos();

        broker_welcome(&broker, KEY, ALL);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_deinit(&broker);
}

/*
 * Without the PUBACK of hello the broker is stalled, and the plugin has not received hello. The
 * store must not serve the broker as plain: registrations made then would later count as
 * registrations under the plugin.
 */
Test(hello, welcome_timeout_begins_with_the_puback_of_hello) {
        broker_init_down(&broker, broker_config());
        broker_say(&broker, SYS "plugin", COMPANION_VERSION);
        broker_connect(&broker, false);
        for (int i = 0; i < 20; i++) {
                broker.now.mono_ns += INT64_C(60000000000);
                broker_tick(&broker);
                cr_expect_eq(broker.n_serving, 0);
        }
        pipeline_acknowledged(broker.pipeline, (uint16_t)(broker.last_id + 1), false, broker.now);
        broker.now.mono_ns += INT64_C(60000000000);
        broker_tick(&broker);
        cr_expect_eq(broker.n_serving, 0, "the PUBACK belongs to another message");

        pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
        broker.now.mono_ns = pipeline_next_deadline(broker.pipeline) - 1;
        broker_tick(&broker);
        cr_expect_eq(broker.n_sent, 1);
        broker_pass_deadline(&broker);
        cr_expect_eq(broker.n_sent, 2, "HELLO is repeated");
        broker_deinit(&broker);
}

Test(hello, welcome_timeout_restarts_with_each_message_up_to_a_limit) {
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
        for (int i = 0; i < 300 && broker.n_sent == 1; i++) {
                pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
                broker_pass_ms(&broker, 1000);
                broker_tick(&broker);
        }
        cr_expect_eq(broker.n_sent, 2, "the total time is limited, and HELLO is repeated");
        broker_deinit(&broker);
}

Test(with_plugin, registrations_stay_while_the_plugin_does_not_reply) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker.n_serving = 0;
        time_out_hellos();
        broker_welcome(&broker, KEY, ALL "7\n");
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_forget(&broker);
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
}

/* A wake-up can bring WELCOME and requests behind it. */
Test(hello, policy_is_in_force_for_a_request_directly_behind_welcome) {
        struct policy *policy;

        broker_init_down(&broker, broker_config());
        cr_assert_eq(policy_new(&policy), 0);
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE);
        pipeline_set_policy(broker.pipeline, policy, broker.now);
        meet_plugin(false);
        broker_welcome(&broker, KEY, ALL);
        broker_forget(&broker);
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 1);
        cr_expect(strstr(broker_sent(&broker), "-ERR"), "%s", broker_sent(&broker));
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_keys, 0);
        broker_deinit(&broker);
}

Test(hello, malformed_welcome_is_ignored) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        broker_welcome(&broker, KEY, "guarded\n0\n");
        time_out_hellos();
        broker_deinit(&broker);
}

Test(with_plugin, connection_is_tracked_before_the_reply_and_untracked_after_its_last_registration) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "track:7 replies:+OK ");
        broker_forget(&broker);
        send_with_mac("KEYNOTIFY", "k", "STOP", KEY, 7);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "untrack:7 replies:+OK ");
}

Test(with_plugin, track_waits_for_room_and_precedes_the_reply) {
        broker.room = 0;
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        cr_expect_eq(broker.n_sent, 0);
        broker.room = 1;
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "track:7 ");
        broker.room = 1;
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "track:7 replies:+OK ");
}

Test(with_plugin, notification_is_delivered_to_the_registered_connection) {
        const struct message *message;

        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("1:0-end:7") REPLY);
        message = broker_sent_message(&broker, 0);
        cr_expect(slice_equal(message_property(message, "__ts"),
                              message_property(broker_sent_message(&broker, 1), "__ts")));
        cr_expect(slice_equal(message_property(message, "__srcId"), S("StateStore")));
        cr_expect_null(message_property(message, "__stat").data);
}

Test(with_plugin, disconnected_ends_the_registrations_of_that_connection) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_say(&broker, SYS "disconnected", "8");
        broker_flush(&broker);
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
        broker_say(&broker, SYS "disconnected", "7x");
        broker_flush(&broker);
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
        broker_say(&broker, SYS "disconnected", "7");
        broker_flush(&broker);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
}

Test(with_plugin, disconnected_is_acknowledged_each_time_with_untrack) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_forget(&broker);
        for (int i = 0; i < 2; i++) {
                broker_say(&broker, SYS "disconnected", "7");
                broker_flush(&broker);
                cr_expect_str_eq(broker_sent(&broker), CONTROL "untrack:7 ");
                broker_forget(&broker);
        }
        broker_say(&broker, SYS "disconnected", "7x");
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 0);
}

Test(with_plugin, request_without_a_valid_mac_is_dropped) {
        send_with_mac("SET", "k", "v", OTHER_KEY, 7);
        broker_send(&broker,
                    (struct sending){ WORDS(S("SET"), S("k"), S("v")), .source = S("c"), .is_will = true });
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_drops[DROP_UNVERIFIED], 2);
}

static void send_numbered(uint64_t sequence) {
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")),
                                               .sender = { KEY, S("c"), { 0 }, 7, sequence } });
        broker_flush(&broker);
}

Test(with_plugin, each_sequence_is_executed_once) {
        send_numbered(5);
        send_numbered(5);
        send_numbered(4);
        cr_expect_eq(broker.n_sent, 1);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_drops[DROP_REPEATED], 2);
        send_numbered(6);
        cr_expect_eq(broker.n_sent, 2);
}

/* A copy of an older request that is published as a will arrives after welcome. */
Test(with_plugin, sequence_not_above_that_of_welcome_is_dropped_after_welcome) {
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_welcome(&broker, KEY, "10\nguarded\n0\n");
        broker_forget(&broker);
        send_numbered(10);
        cr_expect_eq(broker.n_sent, 0);
        send_numbered(11);
        cr_expect_eq(broker.n_sent, 1);
}

Test(with_plugin, requests_that_arrive_before_welcome_are_executed_once) {
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_forget(&broker);
        send_numbered(9);
        send_numbered(9);
        send_numbered(10);
        broker_welcome(&broker, KEY, "10\nguarded\n0\n");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 replies:$-1 ");
}

Test(with_plugin, requests_with_the_former_mac_key_are_executed_only_before_welcome) {
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_forget(&broker);
        send_numbered(9);
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")),
                                               .sender = { OTHER_KEY, S("c"), { 0 }, 7, 1 } });
        broker_welcome(&broker, OTHER_KEY, "1\nguarded\n0\n");
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 2);
        send_numbered(10); /* after welcome the former MAC key is invalid */
        cr_expect_eq(broker.n_sent, 2);
}

Test(with_plugin, welcome_under_another_key_is_ignored) {
        struct message welcome = { .topic = S(COMPANION_WELCOME), .qos = 1 };
        uint8_t other[COMPANION_KEY_SIZE] = { 0 };
        struct buf text = { 0 };

        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker.broker_kind = BROKER_UNKNOWN;
        welcome.correlation_data = broker.hello->correlation_data;
        welcome.payload =
                welcome_payload((struct slice){ other, sizeof(other) }, welcome_text(&text, KEY, ALL));
        pipeline_receive(broker.pipeline, &welcome, broker.now);
        cr_expect_eq(broker.broker_kind, BROKER_UNKNOWN);
        free((void *)welcome.payload.data);
        buf_deinit(&text);
}

Test(hello, each_hello_has_a_new_key) {
        uint8_t key[COMPANION_KEY_SIZE];

        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        memcpy(key, broker.hello->payload.data, sizeof(key));
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        cr_expect_neq(memcmp(key, broker.hello->payload.data, sizeof(key)), 0);
        broker_deinit(&broker);
}

Test(with_plugin, acknowledgements_without_subscribers_are_ignored) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_notified_after_set(&broker);
        pipeline_acknowledged(broker.pipeline, (uint16_t)(broker.last_id - 1), true, broker.now);
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
}

static const struct {
        const char *name;
        char key;
        const char *welcome;
        const char *notified; /* the frame after a SET; the connections 7 and 8 registered */
} returns[] = {
        { "both connected", KEY, ALL "8\n7\n", FRAME("1:0-end:7,8") },
        { "one connected", KEY, ALL "8\n", FRAME("1:0-end:8") },
        { "none connected", KEY, ALL, "" },
        { "broker restarted", OTHER_KEY, ALL, "" },
};

Test(with_plugin, reconnect_keeps_the_registrations_of_connections_in_welcome) {
        for (size_t i = 0; i < N_ROWS(returns); i++) {
                teardown();
                setup_with_plugin();
                send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
                broker_ask(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), S("k")),
                                                      .sender = { KEY, S("d"), { 0 }, 8, 0 } });
                pipeline_disconnected(broker.pipeline);
                meet_plugin(i % 2);
                broker_welcome(&broker, returns[i].key, returns[i].welcome);
                broker_notified_after_set(&broker);
                cr_expect(slice_starts_with(slice_from_string(broker_sent(&broker)),
                                            slice_from_string(returns[i].notified)),
                          ROW(returns, i));
                cr_expect_eq(broker.n_sent, returns[i].notified[0] ? 2 : 1, ROW(returns, i));
        }
}

Test(with_plugin, sequences_of_deliver_continue_after_a_reconnect) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("1:0-end:7") REPLY);
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("2:0-end:7") REPLY);
        broker_say(&broker, COMPANION_DELIVERED, "2");
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        cr_expect(slice_equal(broker.hello->correlation_data, S("42:2")));
        broker_welcome(&broker, KEY, ALL "7\n");
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("3:0-end:7") REPLY);
}

/* A PUBACK does not prove that the plugin has processed the frame. */
Test(with_plugin, undelivered_notifications_are_published_again_after_a_reconnect) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        for (int i = 0; i < 4; i++)
                broker_notified_after_set(&broker);
        broker_say(&broker, COMPANION_DELIVERED, "1");
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_forget(&broker);
        broker_welcome(&broker, KEY, "0\nguarded\n2\n7\n");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), FRAME("3:0-end:7") FRAME("4:0-end:7"));
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("5:0-end:7") REPLY);
}

/* The broker drops DELIVERED if the queue of the store's session is full. */
Test(with_plugin, acknowledgement_that_does_not_arrive_is_requested_again) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        for (int i = 0; i < 2; i++)
                broker_notified_after_set(&broker);
        broker_say(&broker, COMPANION_DELIVERED, "1");
        for (int i = 0; i < 2; i++) {
                broker_forget(&broker);
                broker_pass_deadline(&broker);
                cr_expect_str_eq(broker_sent(&broker), CONTROL "deliver:2:0-end::: ");
        }

        broker_say(&broker, COMPANION_DELIVERED, "2");
        cr_expect_eq(broker.pipeline->delivery.deadline_ns, INT64_MAX);
}

Test(with_plugin, acknowledgement_of_an_unpublished_notification_is_ignored) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_notified_after_set(&broker);
        broker_say(&broker, COMPANION_DELIVERED, "2");
        broker_say(&broker, COMPANION_DELIVERED, "no number");
        cr_expect_eq(broker.pipeline->state->notifications.n_pending, 1);
        broker_say(&broker, COMPANION_DELIVERED, "1");
        cr_expect_eq(broker.pipeline->state->notifications.n_pending, 0);
}

Test(with_plugin, sequences_continue_above_the_delivered_sequence_of_welcome) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_notified_after_set(&broker);
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_welcome(&broker, KEY, "0\nguarded\n41\n7\n");
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("42:0-end:7") REPLY);
}

static void register_many(uint64_t n) {
        for (uint64_t i = 0; i < n; i++) {
                char client[24];

                snprintf(client, sizeof(client), "c%" PRIu64, i);
                broker_ask(
                        &broker,
                        (struct sending){ WORDS(S("KEYNOTIFY"), S("k")),
                                          .sender = { KEY, slice_from_string(client), { 0 }, 10 + i, 0 } });
        }
}

Test(with_plugin, one_frame_notifies_all_watchers_of_a_change) {
        register_many(4);
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("1:0-end:10,11,12,13") REPLY);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_notifications_set, 4);
}

Test(with_plugin, change_is_split_into_frames_below_the_maximum_packet_size) {
        size_t n_recipients = 0, n_frames;

        register_many(100);
        pipeline_set_max_packet(broker.pipeline, 700);
        broker_notified_after_set(&broker);
        n_frames = broker.n_sent - 1;
        cr_assert_gt(n_frames, 1);
        for (size_t i = 0; i < n_frames; i++) {
                const struct message *message = broker_sent_message(&broker, i);
                struct companion_frame frame;

                cr_expect_leq(message_packet_size(message), 700);
                cr_expect(i + 1 == n_frames || message_packet_size(message) > 700 - 40,
                          "each frame but the last is filled");
                cr_assert_eq(companion_frame_read(message->payload, &frame), 0);
                cr_expect_eq(frame.sequence, 1);
                cr_expect_eq(frame.index, n_recipients);
                cr_expect_eq(frame.is_last, i + 1 == n_frames);
                for (size_t j = 0; j < companion_frame_n_recipients(&frame); j++)
                        cr_expect_eq(companion_frame_recipient(&frame, j), 10 + n_recipients++);
        }
        cr_expect_eq(n_recipients, 100);
}

/* The broker reads no other packet until the notifications of a frame are written. */
Test(with_plugin, recipients_of_a_frame_are_limited) {
        const size_t expected[] = { 100, 100, 50 };

        register_many(250);
        broker_notified_after_set(&broker);
        cr_assert_eq(broker.n_sent, 3 + 1);
        for (size_t i = 0; i < 3; i++) {
                struct companion_frame frame;

                cr_assert_eq(companion_frame_read(broker_sent_message(&broker, i)->payload, &frame), 0);
                cr_expect_eq(companion_frame_n_recipients(&frame), expected[i]);
                cr_expect_eq(frame.is_last, i == 2);
        }
}

static const struct {
        const char *name;
        size_t client_length, key_length, value_length;
        size_t n_expected; /* recipients of the first frame */
} large_copies[] = {
        { "small", 10, 10, 10, 100 },
        { "values of 400 kB", 10, 10, 400000, 10 },
        { "values of 3 MB", 10, 10, 3000000, 1 },
        { "values of 6 MB", 10, 10, 6000000, 1 },
        { "keys of 30 kB", 10, 30000, 10, 68 },
        { "client ids of 30 kB", 30000, 10, 10, 68 },
        { "all together", 15000, 15000, 400000, 9 },
};

static struct slice filled(char c, size_t length) {
        return (struct slice){ memset(malloc(length), c, length), length };
}

/* Return the number of recipients of the first frame. */
static size_t large_n_recipients(size_t i) {
        struct slice client = filled('c', large_copies[i].client_length),
                     key = filled('k', large_copies[i].key_length),
                     value = filled('v', large_copies[i].value_length);
        struct companion_frame frame;
        size_t n;

        for (uint64_t connection = 10; connection < 110; connection++) {
                *(uint8_t *)client.data = (uint8_t)connection;
                broker_ask(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), key),
                                                      .sender = { KEY, client, { 0 }, connection, 0 } });
        }
        broker_forget(&broker);
        broker_send(&broker, (struct sending){ WORDS(S("SET"), key, value) });
        broker_flush(&broker);
        cr_assert_eq(companion_frame_read(broker_sent_message(&broker, 0)->payload, &frame), 0);
        cr_expect_eq(broker_sent_message(&broker, 0)->broker_bytes,
                     companion_frame_n_recipients(&frame) *
                             (topic_notify_length(client.length, key.length) + frame.payload.length + 1024),
                     ROW(large_copies, i));
        n = companion_frame_n_recipients(&frame);
        cr_expect_eq(broker.n_sent, 100 / n + (100 % n > 0) + 1, ROW(large_copies, i));
        broker_forget(&broker);
        free((void *)client.data);
        free((void *)key.data);
        free((void *)value.data);
        return n;
}

/*
 * The broker makes a copy of topic and value for each recipient: 4 MiB of copies in a frame, or one
 * copy.
 */
Test(with_plugin, copies_of_a_frame_are_limited) {
        for (size_t i = 0; i < N_ROWS(large_copies); i++) {
                teardown();
                setup_with_plugin();
                cr_expect_eq(large_n_recipients(i), large_copies[i].n_expected, ROW(large_copies, i));
        }
}

/* The remaining recipients follow when there is room, and the reply after the last. */
Test(with_plugin, partly_published_change_is_continued) {
        static uint8_t value[20 << 20];

        memset(value, 'v', sizeof(value));
        register_many(2);
        broker_forget(&broker);
        broker.room = 1;
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), { value, sizeof(value) }) });
        broker_flush(&broker);
        cr_assert_eq(broker.n_sent, 1);
        cr_expect(
                slice_starts_with(slice_from_string(broker_sent(&broker)), S(CONTROL "deliver:1:0-:10:k:")));
        broker_forget(&broker);
        broker.room = 1;
        broker_flush(&broker);
        cr_expect(slice_starts_with(slice_from_string(broker_sent(&broker)),
                                    S(CONTROL "deliver:1:1-end:11:k:")));
        broker_forget(&broker);
        broker.room = SIZE_MAX;
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK ");
}

/* A fault rule of --control: the client of connection 10 is notified twice, that of 11 not at all. */
static int fault(void *userdata, struct slice client, struct slice key) {
        (void)userdata;
        cr_expect(slice_equal(key, S("k")));
        return slice_equal(client, S("c0")) ? 2 : slice_equal(client, S("c1")) ? 0 : 1;
}

static uint64_t no_number(void *userdata, struct invocation *invocation, struct now now) {
        (void)userdata;
        (void)invocation;
        (void)now;
        return 0;
}

static void send_reply(void *userdata, uint64_t number, const struct message *reply, struct now now) {
        uint16_t id;

        (void)userdata;
        (void)number;
        (void)now;
        cr_assert_eq(publisher_send(&broker.pipeline->publisher, reply, &id), 0);
}

Test(with_plugin, fault_rules_of_control_repeat_and_omit_recipients) {
        const struct hooks hooks = { .request = no_number, .reply = send_reply, .notification = fault };

        register_many(3);
        pipeline_set_hooks(broker.pipeline, &hooks);
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("1:0-end:10,10,12") REPLY);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_notifications_set, 3);
}

static int omit(void *userdata, struct slice client, struct slice key) {
        (void)userdata;
        (void)client;
        (void)key;
        return 0;
}

Test(with_plugin, change_without_recipients_is_delivered_with_an_empty_frame) {
        const struct hooks hooks = { .request = no_number, .reply = send_reply, .notification = omit };
        struct gauges gauges;

        register_many(1);
        pipeline_set_hooks(broker.pipeline, &hooks);
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("1:0-end:") REPLY);
        broker_say(&broker, SYS "delivered", "1");
        pipeline_read_gauges(broker.pipeline, 0, &gauges);
        cr_expect_eq(gauges.n_pending_notifications, 0);
}

/* After a crash, registrations of a former connection may be stored beside those of the present one. */
Test(with_plugin, client_with_stored_registrations_of_two_connections_is_not_kicked) {
        struct engine *engine = broker.pipeline->state->engine;

        cr_assert_eq(engine_put_registration(engine, S("c"), (struct slice){ 0 }, S("a"), 7), 0);
        cr_assert_eq(engine_put_registration(engine, S("c"), (struct slice){ 0 }, S("b"), 8), 0);
        pipeline_disconnected(broker.pipeline);
        broker_say(&broker, COMPANION_BANNER, COMPANION_VERSION);
        broker_connect(&broker, true);
        broker_forget(&broker);
        broker_welcome(&broker, KEY, ALL "8\n");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect_null(engine_find_registration(engine, S("c"), S("a")));
        cr_expect_not_null(engine_find_registration(engine, S("c"), S("b")));
}

Test(with_plugin, recipients_of_an_unpublishable_notification_are_kicked) {
        register_many(2);
        broker_forget(&broker);
        broker.too_large = COMPANION_DELIVER;
        cr_expect_str_eq(broker_notified_after_set(&broker), CONTROL "kick:10 " CONTROL "kick:11 " REPLY);
}

static const struct {
        const char *name;
        struct slice correlation;
} other_welcomes[] = {
        { "to an earlier HELLO", S("42:1") },          { "to another run", S("41:2") },
        { "to a HELLO that was not sent", S("42:3") }, { "no Correlation Data", { 0 } },
        { "malformed Correlation Data", S("42") },
};

/*
 * A welcome that was in flight when the connection broke arrives late and does not list newer
 * registrations.
 */
Test(with_plugin, only_the_welcome_of_the_latest_hello_counts) {
        for (size_t i = 0; i < N_ROWS(other_welcomes); i++) {
                teardown();
                setup_with_plugin();
                pipeline_disconnected(broker.pipeline);
                meet_plugin(true);
                broker.broker_kind = BROKER_UNKNOWN;
                broker_welcome_as(&broker, KEY, ALL, other_welcomes[i].correlation);
                cr_expect_eq(broker.broker_kind, BROKER_UNKNOWN, ROW(other_welcomes, i));

                broker_welcome(&broker, KEY, ALL);
                cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN, ROW(other_welcomes, i));
                send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
                broker_welcome_as(&broker, KEY, ALL, other_welcomes[i].correlation);
                broker_notified_after_set(&broker);
                cr_expect_eq(broker.n_sent, 2, ROW(other_welcomes, i));
        }
}

Test(with_plugin, welcome_counts_once) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_welcome(&broker, KEY, ALL);
        cr_expect_str_eq(broker_notified_after_set(&broker), FRAME("1:0-end:7") REPLY);
}

Test(with_plugin, next_broker_without_the_plugin_ends_all_registrations) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        pipeline_disconnected(broker.pipeline);
        broker_connect(&broker, true);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
}

/* The store restarts while the broker restarts without the plugin, but with the store's session. */
Test(with_plugin, plain_broker_after_a_restart_ends_the_registrations_of_connections) {
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        pipeline_disconnected(broker.pipeline);
        broker.pipeline->delivery.broker_kind = BROKER_UNKNOWN; /* as after a restart */
        broker_connect(&broker, true);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_registrations, 0);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
}

/* The store serves two brokers alternately; their clients stay connected. */
Test(with_plugin, tracked_clients_that_lost_registrations_to_another_broker_are_disconnected) {
        const char keys[] = { OTHER_KEY, KEY, KEY };
        const char *welcomes[] = { ALL, ALL "7\n8\n", ALL "8\n7\n" };
        const char *said[] = { "", CONTROL "kick:7 " CONTROL "kick:8 ", CONTROL "kick:8 " };

        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        broker_do(&broker, "SET k v");
        broker_say(&broker, COMPANION_DELIVERED, "1");
        for (size_t i = 0; i < N_ROWS(keys); i++) {
                pipeline_disconnected(broker.pipeline);
                meet_plugin(true);
                broker_forget(&broker);
                broker_welcome(&broker, keys[i], welcomes[i]);
                broker_flush(&broker);
                cr_expect_str_eq(broker_sent(&broker), said[i]);
                if (i == 0)
                        send_with_mac("KEYNOTIFY", "k", NULL, OTHER_KEY, 3);
                else
                        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        }
}

Test(with_plugin, new_mac_key_replaces_the_former_one) {
        pipeline_disconnected(broker.pipeline);
        meet_plugin(true);
        broker_welcome(&broker, OTHER_KEY, ALL);
        broker_forget(&broker);
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 7);
        cr_expect_eq(broker.n_sent, 0);
        send_with_mac("KEYNOTIFY", "k", NULL, OTHER_KEY, 7);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "track:7 replies:+OK ");
}

#define DELETED(sequence) CONTROL "deliver:" sequence ":0-end:5:k:*2|$6|NOTIFY|$6|DELETE "

/* Restart with a client that watches a key which is lost. */
static void setup_lost(void) {
        broker_init_down(&broker, broker_config());
        meet_plugin(false);
        broker_welcome(&broker, KEY, ALL);
        send_with_mac("KEYNOTIFY", "k", NULL, KEY, 5);
        pipeline_disconnected(broker.pipeline);
        engine_restore_lost_keys(broker.pipeline->state->engine);
        meet_plugin(true);
        broker_welcome(&broker, KEY, ALL "5\n");
        broker_flush(&broker);
        broker_forget(&broker);
}

TestSuite(lost_keys, .init = setup_lost, .fini = teardown);

/* Nothing but the notification is committed. */
Test(lost_keys, notification_of_a_lost_key_is_committed_before_it_is_published) {
        broker.n_notifications_committed = 0;
        broker.commit_result = 1;
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_eq(broker.n_notifications_committed, 1);
        cr_expect_not(broker.header.keys_may_be_lost);
        cr_expect_str_eq(broker_sent(&broker), DELETED("1"));

        broker_say(&broker, COMPANION_DELIVERED, "1");
        broker_forget(&broker);
        broker_tick(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
}

Test(lost_keys, notification_of_a_lost_key_is_repeated_after_a_failed_commit) {
        broker.commit_result = -EIO;
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
        broker.commit_result = 0;
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), DELETED("1"));
}

/* A restart before the notification must notify again. */
Test(lost_keys, commit_before_the_notification_stores_that_keys_may_be_lost) {
        send_with_mac("SET", "other", "v", KEY, 6);
        broker_flush(&broker);
        cr_expect(broker.header.keys_may_be_lost);
}
