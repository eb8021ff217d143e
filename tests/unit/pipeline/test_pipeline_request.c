/* SPDX-License-Identifier: Apache-2.0 */

/* Requests of clients inside the process: pipeline_request(). */

#include <errno.h>
#include <stdlib.h>

#include "pipeline/control_operations.h"
#include "pipeline/hooks.h"
#include "pipeline/internal.h"
#include "policy/policy_build.h"
#include "protocol/topics.h"
#include "unit/pipeline/fake_broker.h"
#include "unit/support/table.h"

/* The end of one request. */
struct asked {
        int n_ended;
        bool has_reply, has_message;
        enum outcome outcome;
        struct version version;
        char payload[256]; /* "" without a message */
};

static struct broker broker;

static void setup(void) {
        broker_init(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
}

static void serve_plugin(void) {
        broker_deinit(&broker);
        broker_init_down(&broker, broker_config());
        broker_serve_plugin(&broker);
        broker_forget(&broker);
}

TestSuite(request, .init = setup, .fini = teardown);

static void on_ended(void *userdata, const struct reply *reply, const struct message *message) {
        struct asked *asked = userdata;

        asked->n_ended++;
        asked->has_reply = reply;
        asked->has_message = message;
        if (reply) {
                asked->outcome = reply->result.outcome;
                asked->version = reply->result.version;
        }
        if (message && message->payload.length < sizeof(asked->payload))
                memcpy(asked->payload, message->payload.data, message->payload.length);
}

/* Return the condition of a request of the user "alice". */
static struct inner_client alice(struct asked *asked) {
        return (struct inner_client){ .user = S("alice"), .ended = on_ended, .userdata = asked };
}

static int send_on(const char *topic, const char *words_text, const struct inner_client *client) {
        struct slice words[WORDS_MAX] = { 0 }, rest = slice_from_string(words_text);
        struct buf payload = { 0 };
        struct message message = { .topic = slice_from_string(topic) };
        int r;

        for (size_t i = 0; rest.data && i < WORDS_MAX; i++)
                words[i] = slice_split(rest, ' ', &rest);
        append_words(&payload, words);
        message.payload = buf_slice(&payload);
        message.user_properties[message.n_user_properties++] =
                (struct user_property){ S("__ts"), S("1696374425000:1:console") };
        r = pipeline_request(broker.pipeline, &message, client, broker.now);
        buf_deinit(&payload);
        return r;
}

static void send_as(const char *words, const struct inner_client *client) {
        cr_assert_eq(send_on(TOPIC_INVOKE, words, client), 0);
}

static void ask_as(const char *words, const struct inner_client *client) {
        send_as(words, client);
        broker_flush(&broker);
}

static struct asked ask(const char *words) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        ask_as(words, &client);
        return asked;
}

/* 1. Replies */

static const char *const commands[][2] = {
        { "GET k", "$-1\r\n" },
        { "SET k v", "+OK\r\n" },
        { "SET k v", "+OK\r\n" },
        { "GET k", "$1\r\nv\r\n" },
        { "SCAN *", "*1\r\n*1\r\n$1\r\nk\r\n" },
        { "VDEL k x", ":-1\r\n" },
        { "DEL k", ":1\r\n" },
        { "DEL k", ":0\r\n" },
        { "GET", "-ERR wrong number of arguments\r\n" },
        { "KEYNOTIFY k", "-ERR unknown command\r\n" },
        { "KEYNOTIFY k STOP", "-ERR unknown command\r\n" },
};

static void expect_each_command(void) {
        for (size_t i = 0; i < N_ROWS(commands); i++) {
                struct asked asked = ask(commands[i][0]);

                cr_expect_eq(asked.n_ended, 1, "%s", commands[i][0]);
                cr_expect(asked.has_reply, "%s", commands[i][0]);
                cr_expect_str_eq(asked.payload, commands[i][1], "%s", commands[i][0]);
        }
        cr_expect_eq(broker.n_sent, 0, "nothing is sent to the broker: %s", broker_sent(&broker));
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_registrations, 0);
        cr_expect_eq(engine_stats(broker.pipeline->state->engine).n_remembered, 0);
}

Test(request, is_answered_to_its_sender_at_a_plain_broker) {
        expect_each_command();
}

Test(request, is_answered_to_its_sender_at_a_broker_with_the_plugin) {
        serve_plugin();
        expect_each_command();
}

Test(request, without_a_storage_is_answered_by_the_next_flush) {
        broker_deinit(&broker);
        broker = (struct broker){ .is_volatile = true };
        broker_init(&broker, broker_config());
        expect_each_command();
}

/* Otherwise a reply could be known whose change is lost. */
Test(request, has_its_reply_after_its_commit) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        broker.commit_result = 1;
        ask_as("SET k v", &client);
        cr_expect_eq(broker.n_commits, 1);
        cr_expect_eq(asked.n_ended, 0);
        broker_committed(&broker, 0);
        cr_expect_eq(asked.n_ended, 1);
        cr_expect_str_eq(asked.payload, "+OK\r\n");
}

Test(request, gets_the_error_of_a_failed_commit) {
        struct asked asked;

        broker.commit_result = -EIO;
        asked = ask("SET k v");
        cr_expect_eq(asked.n_ended, 1);
        cr_expect_eq(asked.outcome, OUTCOME_STORAGE_FAILED);
        cr_expect_str_eq(asked.payload, "-ERR the storage has failed\r\n");

        broker.commit_result = 0;
        cr_expect_str_eq(ask("GET k").payload, "$-1\r\n");
}

Test(request, notifies_watchers_before_its_reply) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        broker_do(&broker, "KEYNOTIFY k");
        broker_forget(&broker);
        broker.commit_result = 1;
        ask_as("SET k v", &client);
        broker.room = 0;
        broker_committed(&broker, 0);
        cr_expect_str_eq(broker_sent(&broker), "");
        broker.room = 1;
        broker_flush(&broker);
        cr_expect_str_eq(broker_sent(&broker), "c/k:*4|$6|NOTIFY|$3|SET|$5|VALUE|$1|v ");
        cr_expect_eq(asked.n_ended, 0);
        broker.room = 1;
        broker_flush(&broker);
        cr_expect_eq(asked.n_ended, 1);
}

/* 2. Requests without a reply */

Test(request, waits_while_no_broker_is_served) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        broker_disconnect(&broker);
        ask_as("SET k v", &client);
        cr_expect_eq(asked.n_ended, 0);
        broker_connect(&broker, true);
        broker_flush(&broker);
        cr_expect_eq(asked.n_ended, 1);
        cr_expect_str_eq(asked.payload, "+OK\r\n");
}

Test(request, ends_without_a_reply_when_its_time_is_over_and_is_not_executed) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        broker_disconnect(&broker);
        ask_as("SET k v", &client);
        cr_expect_eq(pipeline_next_deadline(broker.pipeline),
                     broker.now.mono_ns + INNER_REQUEST_TIMEOUT_S * NS_PER_S);
        broker_pass_ms(&broker, INNER_REQUEST_TIMEOUT_S * 1000 - 1);
        broker_tick(&broker);
        cr_expect_eq(asked.n_ended, 0);
        broker_pass_ms(&broker, 1);
        broker_tick(&broker);
        cr_expect_eq(asked.n_ended, 1);
        cr_expect_not(asked.has_message);

        broker_connect(&broker, true);
        cr_expect_str_eq(ask("GET k").payload, "$-1\r\n");
        cr_expect_eq(asked.n_ended, 1);
}

Test(request, ends_once_if_its_commit_takes_too_long) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        broker.commit_result = 1;
        ask_as("SET k v", &client);
        broker_pass_ms(&broker, INNER_REQUEST_TIMEOUT_S * 1000);
        broker_tick(&broker);
        cr_expect_eq(asked.n_ended, 1);
        cr_expect_not(asked.has_message);
        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect_eq(asked.n_ended, 1);
        cr_expect_str_eq(ask("GET k").payload, "$1\r\nv\r\n");
}

Test(request, keeps_its_reply_if_the_connection_ends_during_the_commit) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        serve_plugin();
        broker.commit_result = 1;
        ask_as("SET k v", &client);
        broker_disconnect(&broker);
        broker_committed(&broker, 0);
        cr_expect_eq(asked.n_ended, 1);
        cr_expect_str_eq(asked.payload, "+OK\r\n");
}

Test(request, ends_with_the_pipeline) {
        struct asked waiting = { 0 }, executed = { 0 };
        struct inner_client client = alice(&executed);

        broker.commit_result = 1;
        ask_as("SET k v", &client);
        client.userdata = &waiting;
        ask_as("SET k v", &client);
        broker.room = 0;
        broker_committed(&broker, 0);
        cr_expect_eq(executed.n_ended + waiting.n_ended, 0);
        teardown();
        setup();
        cr_expect_eq(executed.n_ended, 1);
        cr_expect_eq(waiting.n_ended, 1);
        cr_expect_not(executed.has_message || waiting.has_message);
}

Test(request, on_an_unknown_topic_is_refused) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        cr_expect_eq(send_on("x", "GET k", &client), -ENOTSUP);
        cr_expect_eq(send_on(TOPIC_CONTROL, "reset", &client), -ENOTSUP);
        broker_flush(&broker);
        cr_expect_eq(asked.n_ended, 0);
}

/* 3. Users */

static void set_policy_for(enum policy_principal_kind kind, struct slice name, struct slice keys) {
        struct policy *policy;

        cr_assert_eq(policy_new(&policy), 0);
        cr_assert_eq(policy_add_rule(policy, S("rule")), 0);
        policy_set_access(policy, ACCESS_READ | ACCESS_WRITE);
        cr_assert_eq(policy_add_principal(policy, kind, name), 0);
        cr_assert_eq(policy_add_keys(policy, POLICY_PATTERN, keys, 1), 0);
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE);
        pipeline_set_policy(broker.pipeline, policy);
        pipeline_advance(broker.pipeline, broker.now);
}

Test(request, is_that_of_a_verified_user_for_the_policy) {
        set_policy_for(POLICY_USER, S("alice"), S("a/*"));
        cr_expect_str_eq(ask("SET a/k v").payload, "+OK\r\n");
        cr_expect_str_eq(ask("SET b/k v").payload, "-ERR not authorized\r\n");
        set_policy_for(POLICY_CLIENT, S("console/alice"), S("b/*"));
        cr_expect_str_eq(ask("SET a/k v").payload, "-ERR not authorized\r\n");
        cr_expect_str_eq(ask("SET b/k v").payload, "+OK\r\n");
}

/* A client that claims to be the user is not verified. */
Test(request, user_cannot_be_claimed_by_a_client_of_the_broker) {
        set_policy_for(POLICY_CLIENT, S("console/alice"), S("*"));
        cr_expect(broker_replies_with(
                &broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")), .source = S("console/alice") },
                S("-ERR not authorized\r\n")));
}

/* The turns of a client that floods the store as the user cannot delay the user's. */
Test(request, of_a_user_waits_in_a_queue_of_its_own) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        broker.commit_result = 1;
        for (int i = 0; i < 3 * BATCH_ITEMS_MAX; i++)
                broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")),
                                                       .source = S("console/alice") });
        send_as("SET k v", &client);
        broker_flush(&broker);
        cr_assert_eq(asked.n_ended, 0);
        broker.commit_result = 0;
        broker.room = 2 + BATCH_ITEMS_MAX; /* for the first batches */
        broker_committed(&broker, 0);
        cr_expect_eq(asked.n_ended, 1);
        broker.room = SIZE_MAX;
        broker_flush(&broker);
}

Test(request, and_a_record_of_the_plugin_take_turns) {
        static struct asked asked[3]; /* the end of the test ends one */

        serve_plugin();
        broker.room = 0;
        for (size_t i = 0; i < N_ROWS(asked); i++) {
                struct inner_client client = alice(&asked[i]);

                send_as("GET k", &client);
        }
        broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .sender = { 7, S("c"), { 0 } } });
        cr_expect_not_null(queue_first(&broker.pipeline->queue)->requester);
        queue_pop(&broker.pipeline->queue);
        cr_expect_null(queue_first(&broker.pipeline->queue)->requester);
        queue_pop(&broker.pipeline->queue);
        cr_expect_not_null(queue_first(&broker.pipeline->queue)->requester);
        cr_expect_eq(asked[0].n_ended, 1);
        cr_expect_eq(asked[1].n_ended, 0);
}

/* 4. If-Version */

Test(request, changes_a_key_only_if_it_has_the_expected_version) {
        struct asked asked = { 0 };
        struct inner_client client = alice(&asked);

        client.version_condition = VERSION_NONE;
        ask_as("SET k 1", &client);
        cr_expect_eq(asked.outcome, OUTCOME_DONE);
        client.version_condition = VERSION_EXPECTED;
        client.expected_version = asked.version;
        broker_do(&broker, "SET k 2");
        ask_as("SET k 3", &client);
        cr_expect_eq(asked.n_ended, 2);
        cr_expect_eq(asked.outcome, OUTCOME_VERSION_CHANGED);
        cr_expect(strstr(asked.payload, "-ERR the version has changed\r\n"));
        cr_expect_str_eq(ask("GET k").payload, "$1\r\n2\r\n");
}

/* 5. Test control */

static void reply_to_control(void *userdata, const struct message *message, struct now now) {
        (void)userdata;
        (void)now;
        if (slice_starts_with(message->payload, S("*2")))
                pipeline_send_reply(broker.pipeline, message, S("+OK\r\n"));
}

static void refuse_request(void *userdata, struct invocation *invocation, struct now now) {
        (void)userdata;
        (void)invocation;
        (void)now;
        cr_assert_fail("test control does not see the requests of a console");
}

Test(request, of_test_control_is_answered_to_its_sender) {
        const struct hooks hooks = { .control = reply_to_control, .request = refuse_request };
        struct asked asked[2] = { 0 };

        pipeline_set_hooks(broker.pipeline, &hooks);
        for (size_t i = 0; i < N_ROWS(asked); i++) {
                struct inner_client client = alice(&asked[i]);

                cr_assert_eq(send_on(TOPIC_CONTROL, i == 0 ? "outage store" : "wait-for", &client), 0);
        }
        broker_flush(&broker);
        broker_flush(&broker);
        cr_expect_eq(asked[0].n_ended, 1);
        cr_expect_not(asked[0].has_reply);
        cr_expect_str_eq(asked[0].payload, "+OK\r\n");
        cr_expect_eq(asked[1].n_ended, 1);
        cr_expect_not(asked[1].has_message);
        cr_expect_eq(broker.n_sent, 0);
}
