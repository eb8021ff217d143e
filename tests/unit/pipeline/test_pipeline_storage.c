/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A batch is committed before any of its messages is published. A failed commit undoes the batch.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "pipeline/internal.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/capture.h"
#include "unit/support/table.h"

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
        return broker_replies_with(
                &broker, (struct sending){ WORDS(S("GET"), slice_from_string(key)), .topic = S("probe") },
                payload);
}

Test(storage, only_batches_with_changes_are_committed) {
        send_words("SET", "k", "v");
        send_words("SET", "l", "v");
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_eq(broker.n_changes_committed, 4); /* two keys, two remembered replies */

        send_words("GET", "k", NULL);
        send_words("SCAN", "*", NULL);
        send_words("get", "k", NULL);
        broker_flush(&broker);
        broker_flush(&broker);
        broker_tick(&broker);
        cr_expect_eq(broker.n_commits, 1);
}

Test(storage, messages_of_a_batch_wait_for_its_commit) {
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
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v "
                                               "replies:+OK replies:$1|v ");
        cr_expect(pipeline_is_idle(broker.pipeline));
}

Test(storage, requests_that_arrive_during_a_commit_form_the_next_batch) {
        broker.commit_result = 1;
        send_words("SET", "k", "1");
        broker_flush(&broker);
        send_words("GET", "k", NULL);
        send_words("SET", "k", "2");
        send_words("SET", "k", "3");
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_eq(counters_n_requests(pipeline_counters(broker.pipeline)),
                     0); /* the outcome is not known before the commit ends */

        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK ");
        cr_expect_eq(broker.n_commits, 2);
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK replies:$1|1 replies:+OK replies:+OK ");
        cr_expect(pipeline_is_idle(broker.pipeline));
}

Test(storage, expiry_waits_during_a_commit) {
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

static bool is_disk_full(void) {
        struct gauges gauges;

        pipeline_read_gauges(broker.pipeline, 0, &gauges);
        cr_expect_eq(gauges.is_storage_failing, gauges.is_disk_full);
        return gauges.is_disk_full;
}

/* Otherwise a request that only removes something would fail beside one that adds something. */
Test(storage, on_a_full_disk_each_request_is_committed_alone) {
        struct pipeline_config config = broker_config();

        config.is_disk_full = true; /* since the start */
        broker_deinit(&broker);
        broker_init(&broker, config);
        cr_expect(is_disk_full());
        broker.commit_result = 1;
        send_words("GET", "k", NULL);
        send_words("SET", "k", "v");
        send_words("DEL", "k", NULL);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 ");
        broker_flush(&broker);
        broker_committed(&broker, -ENOSPC);
        cr_expect(is_disk_full());
        broker_committed(&broker, STORAGE_FULL);
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 replies:-ERR the disk is full replies::0 ");
        cr_expect(is_disk_full(), "DEL needed no room");

        send_words("SET", "k", "v");
        broker_flush(&broker);
        broker_committed(&broker, 0);
        cr_expect_not(is_disk_full());
        broker.n_commits = 0;
        send_words("SET", "k", "v");
        send_words("SET", "l", "v");
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1, "both in one batch");
        broker_committed(&broker, 0);
}

/* Send a SET of this key that is known again by its content. */
static void send_identified_set(const char *key) {
        broker_send(&broker, (struct sending){ WORDS(S("SET"), slice_from_string(key), S("v")),
                                               .correlation = S("0123456789abcdef"),
                                               .timestamp = S(BROKER_TS), .source = S("c") });
}

/* The request has changed its key. So an error would be wrong, however the present commit ends. */
Test(storage, repeated_request_of_an_earlier_commit_gets_its_reply_although_the_commit_fails) {
        send_identified_set("k");
        broker_flush(&broker);
        broker_forget(&broker);

        broker.commit_result = 1;
        send_identified_set("k");
        send_identified_set("l");
        send_identified_set("l");
        broker_flush(&broker);
        broker_committed(&broker, -ENOSPC);
        cr_expect_str_eq(broker_sent(&broker),
                         "replies:+OK replies:-ERR the disk is full replies:-ERR the disk is full ");
        broker.commit_result = 0;
        cr_expect(has("k", S("$1\r\nv\r\n")));
        cr_expect(has("l", S("$-1\r\n")));
}

static const struct {
        const char *name;
        int result;
        struct slice payload;
} failures[] = {
        { "disk full", -ENOSPC, S("-ERR the disk is full\r\n") },
        { "I/O error", -EIO, S("-ERR the storage has failed\r\n") },
        { "out of memory", -ENOMEM, S("-ERR out of memory\r\n") },
};

Test(storage, failed_commit_undoes_the_batch_and_every_reply_is_an_error) {
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
                        cr_expect_not(broker.has_ended, ROW(failures, i));

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
                                         "replies:+OK c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|x replies:+OK ",
                                         ROW(failures, i));
                }
}

/* A failed commit uses up no number of a commit or a notification, and numbers of replies ascend. */
Test(storage, numbers_continue_after_failed_commits) {
        for (size_t i = 0; i < N_ROWS(failures); i++) {
                struct state_header before;
                uint64_t last_reply;

                teardown();
                setup();
                broker_do(&broker, "KEYNOTIFY k");
                broker_do(&broker, "SET k old");
                before = broker.header;
                last_reply = broker.last_reply;
                cr_assert_eq(before.notification_sequence, 1);
                cr_assert_gt(last_reply, 0);

                broker.commit_result = failures[i].result;
                for (int j = 0; j < 3; j++) {
                        send_words("SET", "k", "new");
                        broker_flush(&broker);
                }
                broker.commit_result = 0;
                broker_do(&broker, "SET k later");

                cr_expect_eq(broker.header.n_commits, before.n_commits + 1, ROW(failures, i));
                cr_expect_eq(broker.header.notification_sequence, 2, ROW(failures, i));
                cr_expect_gt(version_compare(broker.header.clock, before.clock), 0, ROW(failures, i));
                cr_expect_gt(broker.last_reply, last_reply, ROW(failures, i));
        }
}

Test(storage, commit_with_an_unknown_result_ends_the_process_without_a_message) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_forget(&broker);
        broker.commit_result = 1;
        send_words("SET", "k", "new");
        send_words("GET", "k", NULL);
        broker_flush(&broker);

        broker_committed(&broker, -ESTALE);

        cr_expect(broker.has_ended);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect_eq(broker.n_commits, 2);
}

/* Execute a SET whose commit has this result. Return the number of log lines with this text. */
static size_t count_logged_by_set(int commit_result, const char *text) {
        struct capture capture;
        size_t n_lines;
        char *printed;

        broker.commit_result = commit_result;
        capture_start(&capture, STDERR_FILENO);
        send_words("SET", "k", "v");
        broker_flush(&broker);
        printed = capture_end(&capture);
        n_lines = capture_count(printed, text);
        free(printed);
        return n_lines;
}

Test(storage, failed_commit_is_logged_with_its_remedy) {
        cr_expect_eq(count_logged_by_set(-ENOSPC, "commit failed: free space"), 1);
        cr_expect_eq(count_logged_by_set(-ENOMEM, "commit failed: give the process more memory"), 1);
        cr_expect_eq(count_logged_by_set(-EIO, "commit failed: check the disk"), 1);
}

Test(storage, success_is_logged_once_after_failed_commits) {
        cr_expect_eq(count_logged_by_set(0, "succeed again"), 0);
        for (int i = 0; i < 2; i++) {
                cr_expect_eq(count_logged_by_set(-EIO, "succeed again"), 0);
                cr_expect_eq(count_logged_by_set(-EIO, "succeed again"), 0);
                cr_expect_eq(count_logged_by_set(0, "succeed again"), 1);
                cr_expect_eq(count_logged_by_set(0, "succeed again"), 0);
        }
}

Test(storage, failed_commit_is_not_remembered_for_a_redelivered_request) {
        struct sending sending = { WORDS(S("SET"), S("k"), S("v"), S("NX")), .timestamp = S(BROKER_TS) };

        broker.commit_result = -EIO;
        cr_expect(broker_replies_with(&broker, sending, S("-ERR the storage has failed\r\n")));
        broker.commit_result = 0;
        cr_expect(broker_replies_with(&broker, sending, S("+OK\r\n")));
        cr_expect(broker_replies_with(&broker, sending, S("+OK\r\n")));
}

Test(storage, versions_grow_across_failed_commits) {
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

Test(storage, expiry_is_notified_once_after_failed_commits) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_do(&broker, "SET k v PX 1000");
        broker.commit_result = -EIO;
        broker_pass_ms(&broker, 1000);
        broker_tick(&broker);
        cr_expect_eq(broker.n_sent, 0);
        cr_expect(has("k", S("$-1\r\n"))); /* GET does not return the expired key */
        broker_forget(&broker);

        cr_expect_gt(pipeline_next_deadline(broker.pipeline), broker.now.mono_ns); /* the retry is delayed */
        broker.commit_result = 0;
        broker_pass_deadline(&broker);
        cr_expect_str_eq(broker_sent(&broker), "c/k:*2|$6|NOTIFY|$6|DELETE ");
        broker_tick(&broker);
        cr_expect_eq(broker.n_sent, 1);
}

static void check_storage(void) {
        pipeline_check_storage(broker.pipeline, broker.now);
        pipeline_advance(broker.pipeline, broker.now);
        broker_finish_work(&broker);
}

Test(storage, storage_that_needs_a_commit_gets_one_without_rows) {
        broker_flush(&broker);
        check_storage();
        cr_expect_eq(broker.n_commits, 1, "to find out whether the disk has room");
        check_storage();
        cr_expect_eq(broker.n_commits, 1);
        broker.n_commits = 0;
        broker.now.wall_ms += CLOCK_STEP_MS;
        check_storage();
        cr_expect_eq(broker.n_commits, 1);
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);

        broker.commit_result = 1;
        send_words("SET", "k", "v");
        broker.now.wall_ms += CLOCK_STEP_MS;
        check_storage();
        cr_expect_eq(broker.n_commits, 2);
        check_storage(); /* a commit is in progress */
        cr_expect_eq(broker.n_commits, 2);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK ");
}

/* Otherwise, a read would fail with a commit that only tries the storage. */
Test(storage, request_waits_behind_a_required_commit) {
        broker.commit_result = -EIO;
        broker.now.wall_ms += CLOCK_STEP_MS;
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
        check_storage();
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 ");
}

static void serve_plugin(void) {
        broker_disconnect(&broker);
        broker_serve_plugin(&broker);
}

/*
 * The undo of KEYNOTIFY STOP restores the registration. When commits succeed again, WELCOME does not
 * list its connection. From HELLO to WELCOME no request is executed.
 */
Test(storage, hello_is_repeated_after_failed_commits) {
        const char *hello = "$CONTROL/statestore/v1/hello:instance-1 ";

        serve_plugin();
        broker_ask(&broker,
                   (struct sending){ WORDS(S("KEYNOTIFY"), S("k")), .sender = { 7, S("c"), { 0 } } });
        broker.commit_result = -EIO;
        send_words("SET", "l", "v");
        broker_flush(&broker);
        broker.commit_result = 0;
        send_words("SET", "l", "v");
        broker_flush(&broker);
        broker_forget(&broker);
        check_storage();
        cr_expect_str_eq(broker_sent(&broker), ""); /* no registration had ended */

        broker.commit_result = -EIO;
        broker_send(&broker, (struct sending){ WORDS(S("KEYNOTIFY"), S("k"), S("STOP")),
                                               .sender = { 7, S("c"), { 0 } } });
        broker_flush(&broker);
        broker_end_connection(&broker, 7);
        broker_flush(&broker);
        broker_forget(&broker);
        check_storage();
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_registrations, 1);

        broker.commit_result = 0;
        send_words("SET", "l", "v");
        broker_flush(&broker);
        broker_forget(&broker);
        check_storage();
        check_storage();
        cr_expect_str_eq(broker_sent(&broker), hello);
        broker_forget(&broker);
        broker_send(&broker,
                    (struct sending){ WORDS(S("KEYNOTIFY"), S("k")), .sender = { 8, S("d"), { 0 } } });
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "");

        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "tracked:8 replies:+OK ");
        cr_expect_null(engine_find_registration(broker.pipeline->state->engine, S("c"), S("k")));
        cr_expect_not_null(engine_find_registration(broker.pipeline->state->engine, S("d"), S("k")));
        broker_forget(&broker);
        check_storage();
        cr_expect_str_eq(broker_sent(&broker), "");
}

Test(storage, failed_registration_is_not_tracked) {
        serve_plugin();
        broker_forget(&broker);
        broker.commit_result = -EIO;
        broker_send(&broker,
                    (struct sending){ WORDS(S("KEYNOTIFY"), S("k")), .sender = { 7, S("c"), { 0 } } });
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "untracked:7 replies:-ERR the storage has failed ");
}

/* Messages of the plugin that arrive during a commit take effect after it. */

static void begin_to_store(void) {
        broker.commit_result = 1;
        send_words("SET", "k", "v");
        broker_flush(&broker);
}

/*
 * The connection breaks during the commit of a registration. The plugin ignores the reply, because
 * it precedes HELLO, and sends the request again.
 */
Test(deferral, hello_waits_until_registrations_are_committed) {
        const char *reply = "tracked:7 replies:+OK ", *hello = "$CONTROL/statestore/v1/hello:instance-1 ";

        setup();
        serve_plugin();
        broker.commit_result = 1;
        broker_send(&broker,
                    (struct sending){ WORDS(S("KEYNOTIFY"), S("k")), .sender = { 7, S("c"), { 0 } } });
        broker_flush(&broker);
        broker_forget(&broker);

        broker_disconnect(&broker);
        broker_meet_plugin(&broker, true);
        cr_expect_str_eq(broker_sent(&broker), "");
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect(slice_ends_with(slice_from_string(broker_sent(&broker)), slice_from_string(hello)));
        broker_forget(&broker);
        broker_welcome(&broker);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), reply);
        cr_expect_eq(broker.plugin.numbered.n, 0);
        teardown();
}

Test(deferral, serving_a_plain_broker_waits_for_the_commit) {
        setup();
        broker_do(&broker, "KEYNOTIFY k");
        begin_to_store();
        broker_disconnect(&broker);
        broker_connect(&broker, false);
        cr_expect_eq(broker.n_serving, 1);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_eq(broker.n_serving, 2);
        broker_forget(&broker);
        send_words("SET", "k", "v");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK ");
        teardown();
}

Test(deferral, deferred_hello_is_dropped_with_its_connection) {
        setup();
        begin_to_store();
        broker_disconnect(&broker);
        broker_meet_plugin(&broker, true);
        broker_disconnect(&broker);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK ");
        teardown();
}

/* The timeout for welcome begins with hello, so a slow disk does not use it up. */
Test(deferral, deferred_hello_does_not_time_out) {
        setup();
        begin_to_store();
        broker_disconnect(&broker);
        broker_meet_plugin(&broker, true);
        broker_pass_ms(&broker, 10000);
        broker_tick(&broker);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        broker_tick(&broker);
        broker_welcome(&broker);
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        teardown();
}

/* WELCOME changes the state, so it needs an open batch. */
Test(deferral, welcome_during_a_commit_waits_for_its_end) {
        setup();
        broker_disconnect(&broker);
        broker_meet_plugin(&broker, true);
        broker.commit_result = 1;
        broker.now.wall_ms += CLOCK_STEP_MS;
        check_storage();
        broker.n_serving = 0;
        broker_forget(&broker);
        broker_welcome(&broker);
        cr_expect_eq(broker.n_serving, 0);
        cr_expect_str_eq(broker_sent(&broker), "");

        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "");
        cr_expect_eq(broker.broker_kind, BROKER_WITH_PLUGIN);
        cr_expect_eq(broker.n_serving, 1);
        teardown();
}

Test(deferral, disconnect_keeps_its_position_among_the_requests) {
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
                         "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v replies:+OK "
                         "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|1 replies:+OK replies:+OK ");
        broker_deinit(&broker);
}

Test(storage, version_is_committed_before_its_reply_without_changed_rows) {
        struct sending again = { WORDS(S("KEYNOTIFY"), S("k")), .source = S("c"), .no_timestamp = true,
                                 .correlation = S("short") };

        broker_do(&broker, "KEYNOTIFY k");
        broker_forget(&broker);
        broker.n_commits = broker.n_changes_committed = 0;
        broker.commit_result = 1;
        broker_send(&broker, again);
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_eq(broker.n_changes_committed, 0);
        cr_expect_eq(broker.n_sent, 0);

        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "replies:+OK ");
}

Test(storage, failed_commit_of_a_version_sends_no_version) {
        struct sending again = { WORDS(S("KEYNOTIFY"), S("k")), .source = S("c"), .no_timestamp = true,
                                 .correlation = S("short") };

        broker_do(&broker, "KEYNOTIFY k");
        broker_forget(&broker);
        broker.commit_result = -EIO;
        broker_send(&broker, again);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:-ERR the storage has failed ");
}

Test(storage, read_waits_for_a_commit_if_the_lease_has_ended) {
        broker.has_no_lease = true;
        broker.commit_result = 1;
        send_words("GET", "k", NULL);
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_eq(broker.n_changes_committed, 0);
        cr_expect_eq(broker.n_sent, 0);

        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 ");
}

/* -ENOSPC proves that there was no other writer. */
Test(storage, reads_without_a_lease_are_answered_on_a_full_storage) {
        broker.has_no_lease = true;
        broker.commit_result = -ENOSPC;
        send_words("GET", "k", NULL);
        broker_flush(&broker);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 ");
        cr_expect(is_disk_full());
        send_words("SET", "k", "v");
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:$-1 replies:-ERR the disk is full ");

        broker_forget(&broker);
        broker.commit_result = -EIO;
        send_words("GET", "k", NULL);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:-ERR the storage has failed ");
}

/* Its reply has a version that must not be issued again after a restart. */
Test(storage, registration_on_a_full_storage_fails_although_it_was_made_before) {
        broker_do(&broker, "KEYNOTIFY k");
        broker_forget(&broker);
        broker.commit_result = -ENOSPC;
        send_words("KEYNOTIFY", "k", NULL);
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "replies:-ERR the disk is full ");
}

Test(storage, lease_is_renewed_without_a_request) {
        broker.renewal_ns = broker.now.mono_ns + NS_PER_S;
        broker_tick(&broker);
        cr_expect_eq(broker.n_commits, 0);
        cr_expect_eq(pipeline_next_deadline(broker.pipeline), broker.renewal_ns);

        broker.commit_result = 1;
        broker_pass_deadline(&broker);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_gt(pipeline_next_deadline(broker.pipeline),
                     broker.renewal_ns); /* the commit is in flight */

        broker.renewal_ns = 0;
        broker_committed(&broker, 0);
        cr_expect_eq(broker.n_commits, 1);
}
