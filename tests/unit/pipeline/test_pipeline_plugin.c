/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PROTOCOL.md "Broker abilities" for a broker with the plugin: HELLO and WELCOME, and frames
 * (common/protocol/companion.h).
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
#include "unit/pipeline/fake_broker.h"
#include "unit/support/capture.h"
#include "unit/support/table.h"

#define CONTROL COMPANION_CONTROL

/* The notification of "SET k v": sequence, index and recipients as broker_sent() shows them. */
#define NOTIFY(recipients) "notify:" recipients ":k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v "

#define REPLY "x:+OK "

static struct broker broker;

static void teardown(void) {
        broker_deinit(&broker);
}

static void setup_with_plugin(void) {
        broker_init_down(&broker, broker_config());
        broker_serve_plugin(&broker);
}

TestSuite(with_plugin, .init = setup_with_plugin, .fini = teardown);

static void send_as(const char *client, uint64_t connection, const char *verb, const char *key,
                    const char *value) {
        broker_send(&broker, (struct sending){ WORDS(slice_from_string(verb), slice_from_string(key),
                                                     slice_from_string(value)),
                                               .source = S("claimed"),
                                               .sender = { connection, slice_from_string(client), { 0 } } });
        broker_flush(&broker);
}

/* Send a request of client c over the connection 7. */
static void send(const char *verb, const char *key, const char *value) {
        send_as("c", 7, verb, key, value);
}

static void reconnect(void) {
        broker_disconnect(&broker);
        broker_meet_plugin(&broker, true);
}

/* Let several HELLOs of this connection time out. Meanwhile the store must not serve. */
static void time_out_hellos(void) {
        for (int i = 0; i < 10; i++) {
                cr_expect_eq(broker.n_serving, 0);
                broker_pass_deadline(&broker);
        }
        cr_expect_eq(broker.n_serving, 0);
}

Test(hello, hello_that_cannot_be_published_is_repeated) {
        broker_init_down(&broker, broker_config());
        broker_say(&broker, COMPANION_BANNER, COMPANION_VERSION);
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

        broker_say(&broker, COMPANION_BANNER, COMPANION_VERSION);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        pipeline_acknowledged(broker.pipeline, broker.last_id, false, broker.now);
        broker_welcome(&broker);
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

        broker_disconnect(&broker);
        capture_start(&capture, STDERR_FILENO);
        if (banner)
                broker_say(&broker, COMPANION_BANNER, banner);
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

        reconnect();
        cr_expect_eq(reconnect_without_plugin(), 1);
        cr_expect_eq(reconnect_without_plugin(), 0);
        broker_deinit(&broker);
}

/* The broker drops WELCOME if the queue of the store's session is full. */
Test(hello, welcome_timeout_repeats_hello) {
        broker_init_down(&broker, broker_config());
        broker_meet_plugin(&broker, false);
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 " CONTROL "hello:instance-1 ");
        cr_expect_eq(broker.n_serving, 0);
        broker_welcome(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_deinit(&broker);
}

Test(hello, requests_wait_for_the_welcome) {
        broker_init_down(&broker, broker_config());
        broker_meet_plugin(&broker, false);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .sender = { 7, S("c"), { 0 } } });
        broker_flush(&broker);
        cr_expect_eq(broker.n_serving, 0);
        cr_expect_eq(broker.n_sent, 1);

        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 replies:$-1 ");
        broker_deinit(&broker);
}

Test(hello, other_version_is_logged_once_until_this_version_is_detected) {
        broker_init_down(&broker, broker_config());
        cr_expect_eq(reconnect_to_other_version(), 1);
        cr_expect_eq(reconnect_to_other_version(), 0);
        cr_expect_eq(reconnect_to_other_version(), 0);

        reconnect();
        cr_expect_eq(reconnect_to_other_version(), 1);
        cr_expect_eq(reconnect_to_other_version(), 0);
        broker_deinit(&broker);
}

Test(hello, plugin_of_another_version_gets_no_hello) {
        broker_init_down(&broker, broker_config());
        broker_say(&broker, COMPANION_BANNER, "1");
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
        broker_meet_plugin(&broker, false);
        cr_assert_neq(pipeline_next_deadline(broker.pipeline), INT64_MAX);
        broker_pass_ms(&broker, 1);
        broker_tick(&broker);
        time_out_hellos();

        broker_welcome(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker_deinit(&broker);
}

/*
 * Without the PUBACK of hello the broker is stalled, and the plugin has not received hello. The
 * store must not serve the broker as plain: registrations made then would later count as
 * registrations under the plugin.
 */
Test(hello, hello_is_repeated_without_its_puback) {
        broker_init_down(&broker, broker_config());
        broker_say(&broker, COMPANION_BANNER, COMPANION_VERSION);
        broker_connect(&broker, false);
        for (int i = 1; i <= 20; i++) {
                broker.now.mono_ns = pipeline_next_deadline(broker.pipeline) - 1;
                broker_tick(&broker);
                cr_expect_eq(broker.n_sent, (size_t)i);
                broker_pass_deadline(&broker);
                cr_expect_eq(broker.n_sent, (size_t)i + 1, "HELLO is repeated");
                cr_expect_eq(broker.n_serving, 0);
        }
        broker_deinit(&broker);
}

Test(with_plugin, registrations_stay_while_the_plugin_does_not_reply) {
        send("KEYNOTIFY", "k", NULL);
        reconnect();
        broker.n_serving = 0;
        time_out_hellos();
        broker_welcome(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("1:0-end:7") REPLY);
}

/* A wake-up can bring WELCOME and requests behind it. */
Test(hello, policy_is_in_force_for_a_request_directly_behind_welcome) {
        struct policy *policy;

        broker_init_down(&broker, broker_config());
        cr_assert_eq(policy_new(&policy), 0);
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE);
        pipeline_set_policy(broker.pipeline, policy);
        pipeline_advance(broker.pipeline, broker.now);
        broker_meet_plugin(&broker, false);
        broker_welcome(&broker);
        broker_forget(&broker);
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 1);
        cr_expect(strstr(broker_sent(&broker), "-ERR"), "%s", broker_sent(&broker));
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_keys, 0);
        broker_deinit(&broker);
}

/* As after a start, when keys have expired meanwhile and stored registrations have not been checked. */
Test(with_plugin, no_key_expires_before_a_new_policy_is_in_force) {
        struct policy *policy;

        send("KEYNOTIFY", "k", NULL);
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v"), S("PX"), S("1000")) });
        broker_flush(&broker);
        broker_forget(&broker);
        cr_assert_eq(policy_new(&policy), 0);
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE); /* grants nothing */
        pipeline_set_policy(broker.pipeline, policy);
        broker_pass_ms(&broker, 1000);
        broker_flush(&broker);
        broker_pass_deadline(&broker);
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_keys, 0);
        cr_expect_not(strstr(broker_sent(&broker), "NOTIFY"), "%s", broker_sent(&broker));
}

Test(hello, malformed_welcome_is_ignored) {
        broker_init_down(&broker, broker_config());
        broker_meet_plugin(&broker, false);
        broker_say_welcome(&broker, S("\x0A"));
        time_out_hellos();
        broker_deinit(&broker);
}

/* 1. Records in frames */

Test(with_plugin, reply_says_whether_the_connection_is_tracked) {
        send("KEYNOTIFY", "k", NULL);
        cr_expect_str_eq(broker_sent(&broker), "tracked:7 replies:+OK ");
        broker_forget(&broker);
        send("KEYNOTIFY", "l", NULL);
        send("KEYNOTIFY", "k", "STOP");
        cr_expect_str_eq(broker_sent(&broker), "tracked:7 replies:+OK tracked:7 replies:+OK ");
        broker_forget(&broker);
        send("GET", "k", NULL);
        send("KEYNOTIFY", "l", "STOP");
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 untracked:7 replies:+OK ");
}

/* The last registration ended by a failed commit is restored. */
Test(with_plugin, failed_commit_leaves_the_connection_tracked) {
        send("KEYNOTIFY", "k", NULL);
        broker_forget(&broker);
        broker.commit_result = -EIO;
        send("KEYNOTIFY", "k", "STOP");
        cr_expect(slice_starts_with(slice_from_string(broker_sent(&broker)), S("tracked:7 replies:-ERR")));
}

Test(with_plugin, requests_that_wait_in_the_plugin_share_a_frame) {
        broker.is_plugin_stalled = true;
        for (int i = 0; i < 4; i++)
                send("SET", "k", "v");
        cr_expect_eq(broker.n_frames, 1);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK ");
        broker.is_plugin_stalled = false;
        broker_flush(&broker);
        cr_expect_eq(broker.n_frames, 2);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK replies:+OK replies:+OK replies:+OK ");
        cr_expect_eq(broker.plugin.numbered.n, 0);
        cr_expect_eq(broker.plugin.n_unreplied, 0);
}

Test(with_plugin, end_of_a_request_follows_its_commit) {
        broker.commit_result = 1;
        send("SET", "k", "v");
        cr_expect_eq(broker.n_frames, 0);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_eq(broker.n_frames, 1);
        cr_expect_eq(broker.plugin.numbered.n, 0);
}

/* A packet with a short response topic needs fewer bytes than the frame. */
Test(with_plugin, reply_that_is_too_large_for_a_frame_is_an_error) {
        const struct sending get = { WORDS(S("GET"), S("key")), .topic = S("x"), .correlation = S("") };

        send("SET", "key", "value");
        broker_forget(&broker);
        broker_send(&broker, get);
        broker_flush(&broker);
        cr_assert_str_eq(broker_sent(&broker), "x:$5|value ");
        pipeline_set_max_packet(broker.pipeline, message_packet_size(broker.frames[0]) - 20);
        broker_send(&broker, get);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "x:$5|value x:-ERR the reply is too large ");
        cr_expect_eq(broker.plugin.numbered.n, 0);
}

Test(with_plugin, request_at_another_qos_gets_an_error_in_its_turn) {
        const struct message *reply = broker_ask(
                &broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")), .has_qos = true, .qos = 0 });

        cr_expect(slice_equal(message_property(reply, "__stat"), S("400")));
        cr_expect(slice_equal(message_property(reply, "__propName"), S("QoS")));
        cr_expect_eq(broker.plugin.numbered.n, 0);
}

Test(with_plugin, sender_is_the_client_of_the_record_not_the_claimed_one) {
        send("KEYNOTIFY", "k", NULL);
        cr_expect_not_null(engine_find_registration(broker.pipeline->state->engine, S("c"), S("k")));
        cr_expect_null(engine_find_registration(broker.pipeline->state->engine, S("claimed"), S("k")));
}

/* A will, or a message through a listener without the plugin. */
Test(with_plugin, request_outside_a_frame_is_dropped) {
        const struct sending request = { WORDS(S("SET"), S("k"), S("v")), .source = S("c"),
                                         .is_will = true };

        broker_send(&broker, request);
        broker_flush(&broker);
        reconnect();
        broker_send(&broker, request); /* it waits until the kind of the broker is known */
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_drops[DROP_OUTSIDE_FRAME], 2);
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_keys, 0);
}

/* 2. Lost frames */

static void delete_without_timestamp(void) {
        broker_send(&broker, (struct sending){ WORDS(S("DEL"), S("k")), .no_timestamp = true });
        broker_flush(&broker);
}

Test(with_plugin, executed_request_is_not_executed_again_after_the_loss_of_its_reply) {
        send("SET", "k", "v");
        broker.is_plugin_stalled = true;
        broker_forget(&broker);
        delete_without_timestamp();
        cr_expect_str_eq(broker_sent(&broker), "replies::1 ");
        reconnect();
        broker.is_plugin_stalled = false;
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies::1 ");
        cr_expect_eq(broker.plugin.numbered.n, 0);
        broker_forget(&broker);
        delete_without_timestamp();
        cr_expect_str_eq(broker_sent(&broker), "replies::0 ", "an equal request is another one");
}

Test(with_plugin, request_that_is_sent_again_gets_its_reply_although_the_commit_fails) {
        send("SET", "k", "v");
        broker.is_plugin_stalled = true;
        delete_without_timestamp();
        send("SET", "l", "v");
        reconnect();
        broker.is_plugin_stalled = false;
        broker_forget(&broker);
        broker.commit_result = -ENOSPC;
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies::1 replies:-ERR the disk is full ");
        cr_expect_eq(broker.plugin.numbered.n, 0);
}

/* The plugin sends a frame without records after a time-out. */
Test(with_plugin, lost_frame_of_the_plugin_leads_to_hello) {
        broker.loses_frames = true;
        send("SET", "k", "v");
        broker.loses_frames = false;
        cr_expect_eq(broker.n_sent, 0);
        broker.now.mono_ns = model_plugin_deadline(&broker.plugin);
        model_plugin_tick(&broker.plugin, broker.now.mono_ns);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_commits, 1,
                     "only the run of the broker is stored");
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 replies:+OK ");
}

/* The plugin sends a frame without records after a time-out, which the broker may drop. */
static void send_empty_frame(bool is_lost) {
        broker.loses_frames = is_lost;
        broker.now.mono_ns = model_plugin_deadline(&broker.plugin);
        model_plugin_tick(&broker.plugin, broker.now.mono_ns);
        broker_flush(&broker);
        broker.loses_frames = false;
}

/* When a client has its reply, the watchers are notified. */
Test(with_plugin, replies_do_not_precede_notifications_if_a_frame_is_lost_during_a_commit) {
        send("KEYNOTIFY", "k", NULL);
        broker_forget(&broker);
        broker.commit_result = 1;
        send_as("d", 8, "SET", "k", "v");
        send_empty_frame(true);
        send_empty_frame(false);
        cr_expect_eq(broker.n_sent, 0, "the commit has not ended");

        broker_committed(&broker, 0);
        broker.commit_result = 0;
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker),
                         CONTROL "hello:instance-1 " NOTIFY("1:0-end:7") "replies:+OK ");
}

/* Until WELCOME, the plugin may not know the loss: nothing is executed. */
Test(with_plugin, nothing_is_executed_between_hello_and_welcome) {
        broker.is_plugin_stalled = true;
        send("SET", "k", "v");
        broker_forget(&broker);
        reconnect();
        broker.is_plugin_stalled = false;
        send("SET", "l", "v");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_keys, 1);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 replies:+OK replies:+OK ");
}

Test(with_plugin, frame_of_the_store_that_cannot_be_published_leads_to_hello) {
        broker.publish_result = -EAGAIN;
        send("SET", "k", "v");
        cr_expect_eq(broker.n_sent, 0);
        broker.publish_result = 0;
        broker_flush(&broker);
        cr_expect_eq(broker.n_sent, 0, "not at once");
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 replies:+OK ");
        cr_expect_eq(broker.plugin.numbered.n, 0);
}

/*
 * Requests that the plugin sends again after the loss of the replies: a STOP of connection 7, and a
 * SET of another client before and behind it.
 */
Test(with_plugin, redelivered_registrations_end_as_they_did) {
        static const struct {
                const char *name;
                /* "": KEYNOTIFY of connection 7; "STOP": its end; NULL: SET of another client */
                const char *requests[3];
                bool is_registered;
        } rows[] = {
                { "registered before SET", { "", NULL, NULL }, true },
                { "STOP before SET", { "", "STOP", NULL }, false },
                { "STOP behind SET", { "", NULL, "STOP" }, false },
                { "registered again", { "", "STOP", "" }, true },
                { "registered again behind SET", { "STOP", NULL, "" }, true },
        };

        for (size_t i = 0; i < N_ROWS(rows); i++) {
                const char *notified;

                teardown();
                setup_with_plugin();
                send_as("other", 8, "GET", "x", NULL); /* the rest of the requests share a frame */
                broker.is_plugin_stalled = true;
                send_as("other", 8, "GET", "x", NULL);
                for (size_t j = 0; j < 3; j++)
                        if (rows[i].requests[j])
                                send("KEYNOTIFY", "k", rows[i].requests[j][0] ? "STOP" : NULL);
                        else
                                send_as("other", 8, "SET", "k", "v");
                broker.is_plugin_stalled = false;
                broker_finish_work(&broker);
                broker.is_plugin_stalled = true;
                broker_flush(&broker); /* executed, and the replies are lost */
                for (int times = 0; times < 2; times++) {
                        reconnect();
                        broker_welcome(&broker);
                        broker_flush(&broker);
                }
                broker.is_plugin_stalled = false;
                broker_finish_work(&broker);
                cr_expect_eq(broker.plugin.numbered.n, 0, ROW(rows, i));
                cr_expect_eq(broker.plugin.connections->is_tracked ||
                                     broker.plugin.connections->next->is_tracked,
                             rows[i].is_registered, ROW(rows, i));
                notified = broker_notified_after_set(&broker);
                cr_expect_eq(strstr(notified, "notify:") != NULL, rows[i].is_registered, ROW(rows, i));
        }
}

Test(with_plugin, redelivered_registration_of_an_ended_connection_ends) {
        broker.is_plugin_stalled = true;
        send("KEYNOTIFY", "k", NULL);
        broker_end_connection(&broker, 7);
        reconnect();
        broker.is_plugin_stalled = false;
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_eq(broker.plugin.numbered.n, 0);
        cr_expect_null(broker.plugin.connections);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
}

/* A new instance has no data: it executes the kept requests on its empty state. */
Test(with_plugin, kept_requests_are_executed_by_the_next_store) {
        send("SET", "k", "v");
        send("KEYNOTIFY", "k", NULL);
        broker.is_plugin_stalled = true;
        send("GET", "k", NULL);
        broker_restart_store(&broker, broker_config());
        broker.is_plugin_stalled = false;
        broker_meet_plugin(&broker, true);
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 ");
}

/* 3. Notifications */

Test(with_plugin, notification_is_delivered_to_the_registered_connection) {
        const struct message *message;

        send("KEYNOTIFY", "k", NULL);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("1:0-end:7") REPLY);
        message = broker_sent_message(&broker, 0);
        cr_expect(slice_equal(message_property(message, "__ts"),
                              message_property(broker_sent_message(&broker, 1), "__ts")));
        cr_expect(slice_equal(message_property(message, "__srcId"), S("StateStore")));
        cr_expect_null(message_property(message, "__stat").data);
}

Test(with_plugin, end_of_a_connection_ends_its_registrations) {
        send("KEYNOTIFY", "k", NULL);
        send_as("d", 8, "KEYNOTIFY", "other", NULL);
        broker_end_connection(&broker, 8);
        broker_flush(&broker);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("1:0-end:7") REPLY);
        broker_end_connection(&broker, 7);
        broker_flush(&broker);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
        cr_expect_eq(broker.plugin.numbered.n, 0);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_slow_watchers, 0);
}

Test(with_plugin, end_of_a_slow_watcher_is_counted) {
        send("KEYNOTIFY", "k", NULL);
        model_plugin_disconnected(&broker.plugin, 7, true, broker.now.mono_ns);
        broker_flush(&broker);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_slow_watchers, 1);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
}

Test(with_plugin, counters_of_the_plugin_are_gauges) {
        struct gauges gauges;

        broker.plugin.counters = (struct frame_counters){ 1, 2, 3, 4 };
        send("GET", "k", NULL);
        pipeline_read_gauges(broker.pipeline, 0, &gauges);
        cr_expect_eq(gauges.plugin.n_too_many, 1);
        cr_expect_eq(gauges.plugin.n_unavailable, 2);
        cr_expect_eq(gauges.plugin.n_dropped, 3);
        cr_expect_eq(gauges.plugin.n_denied, 4);
}

Test(with_plugin, welcome_under_another_key_is_ignored) {
        struct message *former;

        reconnect();
        broker.broker_kind = BROKER_UNKNOWN;
        former = broker.hello;
        broker.hello = message_copy(former);
        cr_assert_not_null(broker.hello);
        ((uint8_t *)broker.hello->payload.data)[1 + 3 * 8]++; /* a byte of the key */
        broker_welcome(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_UNKNOWN);
        free(former);
}

Test(hello, each_hello_has_a_new_key) {
        struct handshake_hello first, second;

        broker_init_down(&broker, broker_config());
        broker_meet_plugin(&broker, false);
        cr_assert_eq(handshake_hello_read(broker.hello->payload, &first), 0);
        reconnect();
        cr_assert_eq(handshake_hello_read(broker.hello->payload, &second), 0);
        cr_expect_neq(memcmp(first.key, second.key, sizeof(first.key)), 0);
        broker_deinit(&broker);
}

Test(with_plugin, acknowledgements_without_subscribers_are_ignored) {
        send("KEYNOTIFY", "k", NULL);
        broker_notified_after_set(&broker);
        pipeline_acknowledged(broker.pipeline, (uint16_t)(broker.last_id - 1), true, broker.now);
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
}

static const struct {
        const char *name;
        bool has_7, has_8, restarts_broker;
        const char *notified; /* the frame after a SET; the connections 7 and 8 registered */
} returns[] = {
        { "both connected", true, true, false, NOTIFY("1:0-end:7,8") },
        { "one connected", false, true, false, NOTIFY("1:0-end:8") },
        { "none connected", false, false, false, "" },
        { "broker restarted", true, true, true, "" },
};

Test(with_plugin, reconnect_keeps_the_registrations_of_connections_in_welcome) {
        for (size_t i = 0; i < N_ROWS(returns); i++) {
                teardown();
                setup_with_plugin();
                send("KEYNOTIFY", "k", NULL);
                send_as("d", 8, "KEYNOTIFY", "k", NULL);
                broker_disconnect(&broker);
                if (!returns[i].has_7)
                        broker_end_connection(&broker, 7);
                if (!returns[i].has_8)
                        broker_end_connection(&broker, 8);
                if (returns[i].restarts_broker)
                        broker_restart_broker(&broker);
                broker_meet_plugin(&broker, i % 2);
                broker_welcome(&broker);
                broker_flush(&broker);
                broker_notified_after_set(&broker);
                cr_expect(slice_starts_with(slice_from_string(broker_sent(&broker)),
                                            slice_from_string(returns[i].notified)),
                          ROW(returns, i));
                cr_expect_eq(broker.n_sent, returns[i].notified[0] ? 2 : 1, ROW(returns, i));
        }
}

Test(with_plugin, sequences_continue_after_a_reconnect) {
        send("KEYNOTIFY", "k", NULL);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("1:0-end:7") REPLY);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("2:0-end:7") REPLY);
        reconnect();
        broker_welcome(&broker);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("3:0-end:7") REPLY);
}

/* The plugin says in each frame which changes are delivered. */
Test(with_plugin, delivered_notifications_are_removed) {
        send("KEYNOTIFY", "k", NULL);
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.pipeline->state->notifications.n_pending, 0);
        broker.is_plugin_stalled = true;
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.pipeline->state->notifications.n_pending, 1);
        broker.is_plugin_stalled = false;
        broker_finish_work(&broker);
        cr_expect_eq(broker.pipeline->state->notifications.n_pending, 0);
}

/* Publish the notifications 2 and 3, of which the plugin has processed the first. */
static void deliver_2_but_not_3(void) {
        send("KEYNOTIFY", "k", NULL);
        broker_notified_after_set(&broker);
        broker_notified_after_set(&broker);
        broker.is_plugin_stalled = true;
        broker_notified_after_set(&broker);
        broker_forget(&broker);
}

Test(with_plugin, undelivered_notifications_are_published_again_after_a_reconnect) {
        deliver_2_but_not_3();
        reconnect();
        broker.is_plugin_stalled = false;
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), NOTIFY("3:0-end:7") REPLY);
        cr_expect_eq(broker.pipeline->state->notifications.n_pending, 0);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("4:0-end:7") REPLY);
}

/* The plugin drops what it has published already, and the store learns it from WELCOME. */
Test(with_plugin, notifications_that_welcome_reports_as_delivered_are_not_published_again) {
        deliver_2_but_not_3();
        broker.loses_frames = true;
        broker.is_plugin_stalled = false;
        broker_finish_work(&broker);
        broker.loses_frames = false;
        cr_expect_eq(broker.pipeline->state->notifications.n_pending, 1);
        reconnect();
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect_eq(broker.pipeline->state->notifications.n_pending, 0);
}

/* The broker drops a frame of the plugin if the queue of the store's session is full. */
Test(with_plugin, store_asks_for_a_frame_if_delivered_does_not_arrive) {
        send("KEYNOTIFY", "k", NULL);
        broker.is_plugin_stalled = true;
        broker_notified_after_set(&broker);
        broker.is_plugin_stalled = false;
        broker.loses_frames = true;
        broker_finish_work(&broker);
        broker_forget(&broker);
        for (int i = 0; i < 2; i++) {
                broker_pass_deadline(&broker);
                cr_expect_str_eq(broker_sent(&broker), "");
                cr_expect_eq(broker.n_frames, 1, "a frame without records");
                broker_forget(&broker);
        }

        broker.loses_frames = false;
        broker_pass_deadline(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), CONTROL "hello:instance-1 ");
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_eq(broker.pipeline->outbox.frames.deadline_ns, INT64_MAX);
}

/* The store was restored from an older copy of its data. */
Test(with_plugin, sequences_continue_above_the_delivered_sequence_of_welcome) {
        send("KEYNOTIFY", "k", NULL);
        broker_notified_after_set(&broker);
        broker.plugin.position.sequence = 41;
        reconnect();
        broker_welcome(&broker);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("42:0-end:7") REPLY);
}

static void register_many(uint64_t n) {
        for (uint64_t i = 0; i < n; i++) {
                char client[24];

                snprintf(client, sizeof(client), "c%" PRIu64, i);
                broker_ask(&broker,
                           (struct sending){ WORDS(S("KEYNOTIFY"), S("k")),
                                             .sender = { 10 + i, slice_from_string(client), { 0 } } });
        }
}

Test(with_plugin, one_frame_notifies_all_watchers_of_a_change) {
        register_many(4);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("1:0-end:10,11,12,13") REPLY);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_notifications_set, 4);
}

/* The first notification in a frame. */
static struct frame_notification notification_in(const struct message *frame) {
        struct frame_to_plugin_record record;
        struct slice records;

        cr_assert_eq(frame_to_plugin_read(frame->payload, &records), 0);
        cr_assert(frame_to_plugin_next(&records, &record));
        cr_assert_eq(record.kind, FRAME_NOTIFICATION);
        return record.notification;
}

Test(with_plugin, change_is_split_into_frames_below_the_maximum_packet_size) {
        size_t n_recipients = 0;

        register_many(100);
        pipeline_set_max_packet(broker.pipeline, 700);
        broker_notified_after_set(&broker);
        cr_assert_gt(broker.n_frames, 1);
        for (size_t i = 0; i < broker.n_frames && n_recipients < 100; i++) {
                const struct frame_notification notification = notification_in(broker.frames[i]);

                cr_expect_leq(message_packet_size(broker.frames[i]), 700);
                cr_expect(notification.is_last || message_packet_size(broker.frames[i]) > 700 - 40,
                          "each frame but the last is filled");
                cr_expect_eq(notification.sequence, 1);
                cr_expect_eq(notification.index, n_recipients);
                for (size_t j = 0; j < frame_n_recipients(&notification); j++)
                        cr_expect_eq(frame_recipient(&notification, j), 10 + n_recipients++);
                cr_expect_eq(notification.is_last, n_recipients == 100);
        }
        cr_expect_eq(n_recipients, 100);
}

/* The broker reads no other packet until the notifications of a frame are written. */
Test(with_plugin, recipients_of_a_frame_are_limited) {
        const size_t expected[] = { 100, 100, 50 };

        register_many(250);
        broker_notified_after_set(&broker);
        cr_assert_eq(broker.n_frames, 3);
        for (size_t i = 0; i < 3; i++) {
                const struct frame_notification notification = notification_in(broker.frames[i]);

                cr_expect_eq(frame_n_recipients(&notification), expected[i]);
                cr_expect_eq(notification.is_last, i == 2);
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
        struct frame_notification notification;
        size_t n;

        for (uint64_t connection = 10; connection < 110; connection++) {
                *(uint8_t *)client.data = (uint8_t)connection;
                broker_ask(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), key),
                                                      .sender = { connection, client, { 0 } } });
        }
        broker_forget(&broker);
        broker_send(&broker, (struct sending){ WORDS(S("SET"), key, value) });
        broker_flush(&broker);
        notification = notification_in(broker.frames[0]);
        n = frame_n_recipients(&notification);
        cr_expect_eq(broker.frames[0]->broker_bytes,
                     broker.frames[0]->payload.length + n * (topic_notify_length(client.length, key.length) +
                                                             notification.payload.length + 1024),
                     ROW(large_copies, i));
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

/* The remaining recipients follow when there is room, and the reply behind the last. */
Test(with_plugin, partly_published_change_is_continued) {
        static uint8_t value[20 << 20];

        memset(value, 'v', sizeof(value));
        register_many(2);
        broker_forget(&broker);
        broker.room = 1;
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), { value, sizeof(value) }) });
        broker_flush(&broker);
        cr_assert_eq(broker.n_sent, 1);
        cr_expect(slice_starts_with(slice_from_string(broker_sent(&broker)), S("notify:1:0-:10:k:")));
        broker_forget(&broker);
        broker.room = 1;
        broker_flush(&broker);
        cr_expect(slice_starts_with(slice_from_string(broker_sent(&broker)), S("notify:1:1-end:11:k:")));
        cr_expect(slice_ends_with(slice_from_string(broker_sent(&broker)), S(" replies:+OK ")));
}

/* A fault rule of --control: the client of connection 10 is notified twice, that of 11 not at all. */
static int fault(void *userdata, struct slice client, const struct pending_notification *notification) {
        (void)userdata;
        cr_expect(slice_equal(notification->key, S("k")));
        return slice_equal(client, S("c0")) ? 2 : slice_equal(client, S("c1")) ? 0 : 1;
}

static void no_number(void *userdata, struct invocation *invocation, struct now now) {
        (void)userdata;
        (void)invocation;
        (void)now;
}

static bool publish_reply(void *userdata, uint64_t number, const struct message *reply, struct now now) {
        (void)userdata;
        (void)number;
        (void)reply;
        (void)now;
        return true;
}

Test(with_plugin, fault_rules_of_control_repeat_and_omit_recipients) {
        const struct hooks hooks = { .request = no_number, .reply = publish_reply, .notification = fault };

        register_many(3);
        pipeline_set_hooks(broker.pipeline, &hooks);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("1:0-end:10,10,12") REPLY);
        cr_expect_eq(pipeline_counters(broker.pipeline)->n_notifications_set, 3);
}

static int omit(void *userdata, struct slice client, const struct pending_notification *notification) {
        (void)userdata;
        (void)client;
        (void)notification;
        return 0;
}

Test(with_plugin, change_without_recipients_is_delivered_with_an_empty_frame) {
        const struct hooks hooks = { .request = no_number, .reply = publish_reply, .notification = omit };
        struct gauges gauges;

        register_many(1);
        pipeline_set_hooks(broker.pipeline, &hooks);
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("1:0-end:") REPLY);
        pipeline_read_gauges(broker.pipeline, 0, &gauges);
        cr_expect_eq(gauges.n_pending_notifications, 0);
}

/* After a crash, registrations of a former connection may be stored beside those of the present one. */
Test(with_plugin, client_with_stored_registrations_of_two_connections_is_not_kicked) {
        struct engine *engine = broker.pipeline->state->engine;

        send_as("c", 8, "KEYNOTIFY", "b", NULL);
        cr_assert_eq(engine_put_registration(engine, S("c"), (struct slice){ 0 }, S("a"), 7), 0);
        reconnect();
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect_null(engine_find_registration(engine, S("c"), S("a")));
        cr_expect_not_null(engine_find_registration(engine, S("c"), S("b")));
}

/* The broker's limit is lower than when the request was executed. */
Test(with_plugin, recipients_of_a_notification_that_is_too_large_are_kicked) {
        register_many(2);
        broker_forget(&broker);
        broker.commit_result = 1;
        broker_notified_after_set(&broker);
        pipeline_set_max_packet(broker.pipeline, 200);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "kick:10 kick:11 " REPLY);
}

/* A WELCOME without connections. */
static void say_empty_welcome(void) {
        const struct handshake_welcome welcome = { .broker_run = 1 };
        struct buf text = { 0 };

        handshake_welcome_append(&text, &welcome);
        cr_assert_not(buf_failed(&text));
        broker_say_welcome(&broker, buf_slice(&text));
        buf_deinit(&text);
}

/*
 * A welcome that was in flight when the connection broke arrives late and does not list newer
 * registrations.
 */
Test(with_plugin, only_the_welcome_of_the_latest_hello_counts) {
        struct message *former;
        struct buf text = { 0 };

        handshake_welcome_append(&text, &(struct handshake_welcome){ .broker_run = 1 });
        former = broker_welcome_message(&broker, buf_slice(&text));
        reconnect();
        broker.broker_kind = BROKER_UNKNOWN;
        pipeline_receive(broker.pipeline, former, broker.now);
        cr_expect_eq(broker.broker_kind, BROKER_UNKNOWN);

        broker_welcome(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        send("KEYNOTIFY", "k", NULL);
        pipeline_receive(broker.pipeline, former, broker.now);
        broker_notified_after_set(&broker);
        cr_expect_eq(broker.n_sent, 2);
        free(former);
        buf_deinit(&text);
}

Test(with_plugin, welcome_counts_once) {
        send("KEYNOTIFY", "k", NULL);
        say_empty_welcome();
        cr_expect_str_eq(broker_notified_after_set(&broker), NOTIFY("1:0-end:7") REPLY);
}

Test(with_plugin, next_broker_without_the_plugin_ends_all_registrations) {
        send("KEYNOTIFY", "k", NULL);
        broker_disconnect(&broker);
        broker_connect(&broker, true);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
}

/* The store restarts while the broker restarts without the plugin, but with the store's session. */
Test(with_plugin, plain_broker_after_a_restart_ends_the_registrations_of_connections) {
        send("KEYNOTIFY", "k", NULL);
        broker_disconnect(&broker);
        broker.pipeline->outbox.backend = NULL; /* as after a restart */
        broker_connect(&broker, true);
        cr_expect_eq(broker.broker_kind, BROKER_PLAIN);
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_registrations, 0);
        cr_expect_str_eq(broker_notified_after_set(&broker), REPLY);
}

/* Connect to the broker with this plugin, and keep the present one in its place. */
static void serve_broker(struct model_plugin *plugin) {
        struct model_plugin present = broker.plugin;

        broker_disconnect(&broker);
        broker.plugin = *plugin;
        *plugin = present;
        broker_meet_plugin(&broker, true);
        broker_welcome(&broker);
        broker_flush(&broker);
}

/* The registration ended while the plugin had no connection to the store. */
Test(with_plugin, tracked_client_without_registrations_is_disconnected) {
        send_as("d", 8, "KEYNOTIFY", "k", NULL);
        send("KEYNOTIFY", "k", NULL);
        engine_remove_registration(broker.pipeline->state->engine, S("d"), S("k"));
        reconnect();
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "kick:8 ");
}

/* A request of the client may register again. */
Test(with_plugin, tracked_client_with_a_pending_request_is_not_disconnected) {
        send("KEYNOTIFY", "k", NULL);
        broker.loses_frames = true;
        send("GET", "k", NULL);
        broker.loses_frames = false;
        engine_remove_registration(broker.pipeline->state->engine, S("c"), S("k"));
        reconnect();
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 ");
}

/* What a broker keeps from before another one was served may have been executed. */
Test(with_plugin, broker_ends_if_another_one_was_served_since) {
        struct model_plugin other;

        model_plugin_init(&other, 1000);
        send("SET", "k", "v");
        serve_broker(&other);
        cr_expect_not(broker.plugin.has_ended, "its first HELLO");
        cr_expect_eq(broker.header.served_broker_run, 1000);
        serve_broker(&other);
        cr_expect(broker.plugin.has_ended);
        model_plugin_deinit(&other);
}

/* The stored run is still the first one, but the store has served the one between. */
Test(with_plugin, broker_ends_if_the_run_between_was_not_committed) {
        struct model_plugin other;

        model_plugin_init(&other, 1000);
        send("SET", "k", "v");
        broker.commit_result = -EIO;
        serve_broker(&other);
        cr_expect_neq(broker.header.served_broker_run, 1000);
        serve_broker(&other);
        cr_expect(broker.plugin.has_ended);
        model_plugin_deinit(&other);
}

/* The run of a broker is stored before its first request is executed. */
Test(with_plugin, run_of_the_broker_is_committed_before_it_is_served) {
        broker_restart_broker(&broker);
        broker.commit_result = 1;
        broker_meet_plugin(&broker, false);
        broker.n_serving = 0;
        broker_welcome(&broker);
        send("SET", "k", "v");
        broker_flush(&broker);
        cr_expect(broker.is_committing);
        cr_expect_eq(broker.n_serving, 0);
        cr_expect_eq(broker.plugin.last_number, 0, "no record is numbered before the broker is served");

        broker.commit_result = 0;
        broker_committed(&broker, 0);
        broker_flush(&broker);
        cr_expect_eq(broker.header.served_broker_run, broker.plugin.broker_run);
        cr_expect_eq(broker.n_serving, 1);
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_keys, 1);
}

/* Reads are served even if nothing can be stored. */
Test(with_plugin, broker_is_served_if_its_run_cannot_be_committed) {
        broker_restart_broker(&broker);
        broker.commit_result = -EIO;
        broker_meet_plugin(&broker, false);
        broker_welcome(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        broker.commit_result = 0;
        send("SET", "k", "v");
        broker_flush(&broker);
        cr_expect_eq(broker.header.served_broker_run, broker.plugin.broker_run, "the next commit stores it");
}

#define DELETED(sequence) "notify:" sequence ":0-end:5:k:*2|$6|NOTIFY|$6|DELETE "

/* Restart with a client that watches a key which is lost. */
static void setup_lost(void) {
        broker_init_down(&broker, broker_config());
        broker_meet_plugin(&broker, false);
        broker_welcome(&broker);
        send_as("c", 5, "KEYNOTIFY", "k", NULL);
        broker_disconnect(&broker);
        engine_restore_lost_keys(broker.pipeline->state->engine);
        broker_meet_plugin(&broker, true);
}

/* The client is notified by then, unless the commit does not succeed. */
static void serve_with(int commit_result) {
        broker.commit_result = commit_result;
        broker_welcome(&broker);
        broker_tick(&broker);
}

TestSuite(lost_keys, .init = setup_lost, .fini = teardown);

/* Nothing but the notification is committed. */
Test(lost_keys, notification_of_a_lost_key_is_committed_before_it_is_published) {
        broker.n_notifications_committed = 0;
        serve_with(1);
        cr_expect_not(strstr(broker_sent(&broker), DELETED("1")));
        broker_forget(&broker);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_eq(broker.n_notifications_committed, 1);
        cr_expect_not(broker.header.keys_may_be_lost);
        cr_expect_str_eq(broker_sent(&broker), DELETED("1"));

        broker_forget(&broker);
        broker_tick(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");
}

Test(lost_keys, notification_of_a_lost_key_is_repeated_after_a_failed_commit) {
        serve_with(-EIO);
        cr_expect_not(strstr(broker_sent(&broker), DELETED("1")));
        broker_forget(&broker);
        broker.commit_result = 0;
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), DELETED("1"));
}

/* A restart before the notification must notify again. */
Test(lost_keys, commit_before_the_notification_stores_that_keys_may_be_lost) {
        broker.now.wall_ms += CLOCK_STEP_MS;
        pipeline_check_storage(broker.pipeline, broker.now);
        broker_flush(&broker);
        cr_expect(broker.header.keys_may_be_lost);
}
