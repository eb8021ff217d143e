/* SPDX-License-Identifier: Apache-2.0 */

/* Calls to a real etcd. Each test states which outcome a failure has. */

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/system_clock.h"
#include "etcd/client.h"
#include "support/etcd_process.h"
#include "support/tcp_proxy.h"

#define S SLICE_LITERAL

static struct etcd_process process;
static struct tcp_proxy proxy;
static struct etcd_client *client;
static const char *endpoints[2];

static void setup(void) {
        etcd_process_start(&process, NULL);
        tcp_proxy_start(&proxy, process.url);
}

static void teardown(void) {
        etcd_client_free(client);
        tcp_proxy_stop(&proxy);
        etcd_process_stop(&process);
}

TestSuite(etcd_client, .init = setup, .fini = teardown);

static struct etcd_config config_of(const char *first, const char *second) {
        endpoints[0] = first;
        endpoints[1] = second;
        return (struct etcd_config){ .endpoints = endpoints,
                                     .n_endpoints = second ? 2 : 1,
                                     .timeout_ms = 5000, /* rarely reached on a busy machine */
                                     .max_reply_bytes = 1 << 20 };
}

static void open_client(struct etcd_config config) {
        cr_assert_eq(etcd_client_new(&client, &config), 0);
}

/* A transaction with one comparison and one put. It has pointers to itself. */
struct put_if {
        Etcd__Compare compare, *compares[1];
        Etcd__PutRequest put;
        Etcd__RequestOp operation, *operations[1];
        Etcd__TxnRequest request;
};

/* Put the key if its last change has this revision; 0: if it does not exist. */
static void put_if_init(struct put_if *put_if, struct slice key, struct slice value, int64_t revision) {
        etcd__compare__init(&put_if->compare);
        etcd__put_request__init(&put_if->put);
        etcd__request_op__init(&put_if->operation);
        etcd__txn_request__init(&put_if->request);
        put_if->compare.target = ETCD__COMPARE__TARGET__MOD;
        put_if->compare.key = etcd_bytes(key);
        put_if->compare.target_union_case = ETCD__COMPARE__TARGET_UNION_MOD_REVISION;
        put_if->compare.mod_revision = revision;
        put_if->put.key = etcd_bytes(key);
        put_if->put.value = etcd_bytes(value);
        put_if->operation.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_PUT;
        put_if->operation.request_put = &put_if->put;
        put_if->compares[0] = &put_if->compare;
        put_if->operations[0] = &put_if->operation;
        put_if->request.compare = put_if->compares;
        put_if->request.success = put_if->operations;
        put_if->request.n_compare = put_if->request.n_success = 1;
}

/* As put_if_init(). Sets *ret_succeeded and *ret_revision. */
static int put_if(struct slice key, struct slice value, int64_t revision, bool *ret_succeeded,
                  int64_t *ret_revision) {
        const ProtobufCMessage *message;
        const Etcd__TxnResponse *response;
        struct put_if put_if;
        int r;

        put_if_init(&put_if, key, value, revision);
        r = etcd_call(client, ETCD_TXN, &put_if.request.base, &message);
        if (r < 0)
                return r;

        response = (const Etcd__TxnResponse *)message;
        *ret_succeeded = response->succeeded;
        *ret_revision = response->header->revision;
        return 0;
}

static int get(struct slice key, int64_t revision, const Etcd__RangeResponse **ret_response) {
        Etcd__RangeRequest request = ETCD__RANGE_REQUEST__INIT;

        request.key = etcd_bytes(key);
        request.revision = revision;
        return etcd_call(client, ETCD_RANGE, &request.base, (const ProtobufCMessage **)ret_response);
}

static void expect_value(struct slice key, struct slice value) {
        const Etcd__RangeResponse *response;

        cr_assert_eq(get(key, 0, &response), 0);
        cr_assert_eq(response->n_kvs, 1);
        cr_expect(slice_equal(etcd_slice(response->kvs[0]->key), key));
        cr_expect(slice_equal(etcd_slice(response->kvs[0]->value), value));
}

Test(etcd_client, compares_and_writes_over_one_connection) {
        int64_t revision = 0, other;
        bool succeeded;

        open_client(config_of(process.url, NULL));
        for (int i = 0; i < 100; i++) {
                char key[16];

                snprintf(key, sizeof(key), "key %d", i);
                cr_assert_eq(put_if(slice_from_string(key), S("a\0b"), 0, &succeeded, &revision), 0);
                cr_assert(succeeded);
                expect_value(slice_from_string(key), S("a\0b"));
        }
        cr_assert_eq(put_if(S("key 1"), S("c"), 0, &succeeded, &other), 0);
        cr_expect(!succeeded);
        cr_assert_eq(put_if(S("key 99"), S("c"), revision, &succeeded, &other), 0);
        cr_expect(succeeded);
        cr_expect_gt(other, revision);
}

static bool has_key(struct slice key) {
        const Etcd__RangeResponse *response;

        cr_assert_eq(get(key, 0, &response), 0);
        return response->n_kvs > 0;
}

/* Send a transaction that puts the key, and wait until etcd has executed it. */
static void put_ahead(struct slice key, struct slice value) {
        struct etcd_client *caller = client;
        const char *endpoint = process.url;
        struct etcd_config config = {
                .endpoints = &endpoint, .n_endpoints = 1, .timeout_ms = 5000, .max_reply_bytes = 1 << 20
        };
        struct put_if put_if;

        put_if_init(&put_if, key, value, 0);
        etcd_call_ahead(client, ETCD_TXN, &put_if.request.base);
        open_client(config); /* another one */
        while (!has_key(key))
                continue;
        etcd_client_free(client);
        client = caller;
}

Test(etcd_client, executes_a_call_while_the_caller_does_something_else) {
        const Etcd__RangeResponse *response;
        int64_t revision;
        bool succeeded;

        open_client(config_of(process.url, NULL));
        cr_assert_eq(put_if(S("key"), S("a"), 0, &succeeded, &revision), 0);
        for (int i = 0; i < 3; i++) {
                char key[16];

                snprintf(key, sizeof(key), "key %d", i);
                cr_assert_eq(get(S("key"), 0, &response), 0);
                put_ahead(slice_from_string(key), S("b"));
                cr_expect(slice_equal(etcd_slice(response->kvs[0]->value), S("a")));
                cr_assert_eq(put_if(slice_from_string(key), S("b"), 0, &succeeded, &revision), 0);
                cr_expect(succeeded); /* the reply to what was sent: a second one would have failed */
        }
}

Test(etcd_client, another_call_drops_the_one_that_was_sent) {
        int64_t revision;
        bool succeeded;

        open_client(config_of(process.url, NULL));
        cr_assert_eq(put_if(S("key"), S("a"), 0, &succeeded, &revision), 0);
        put_ahead(S("other"), S("b"));
        expect_value(S("key"), S("a"));
        cr_assert_eq(put_if(S("other"), S("b"), 0, &succeeded, &revision), 0);
        cr_expect(!succeeded);
}

Test(etcd_client, call_that_was_sent_to_a_lost_endpoint_is_open_and_the_next_one_is_used) {
        const Etcd__RangeResponse *response;
        int64_t revision;
        bool succeeded;

        open_client(config_of(proxy.url, process.url));
        cr_assert_eq(get(S("key"), 0, &response), 0);
        tcp_proxy_lose(&proxy, 1);
        put_ahead(S("key"), S("a"));
        cr_expect_eq(put_if(S("key"), S("a"), 0, &succeeded, &revision), -ETIMEDOUT);
        cr_expect_str_eq(etcd_client_endpoint(client), proxy.url);
        expect_value(S("key"), S("a"));
        cr_expect_str_eq(etcd_client_endpoint(client), process.url);
}

/* libcurl sends it again on a new connection, which is refused. */
Test(etcd_client, call_on_a_connection_that_is_reset_is_an_open_outcome) {
        const Etcd__RangeResponse *response;
        int64_t revision;
        bool succeeded;

        open_client(config_of(proxy.url, NULL));
        cr_assert_eq(get(S("key"), 0, &response), 0);
        tcp_proxy_lose(&proxy, 1);
        put_ahead(S("key"), S("a"));
        tcp_proxy_reset(&proxy);
        cr_expect_eq(put_if(S("key"), S("a"), 0, &succeeded, &revision), -ETIMEDOUT);
        tcp_proxy_start(&proxy, process.url);
}

Test(etcd_client, time_out_of_a_call_that_was_sent_does_not_count_before_it_is_waited_for) {
        struct etcd_config config = config_of(process.url, NULL);
        const Etcd__RangeResponse *response;
        int64_t revision, begun_ms;
        bool succeeded;

        config.timeout_ms = 2000;
        open_client(config);
        cr_assert_eq(get(S("key"), 0, &response), 0);
        begun_ms = system_clock_mono_ms();
        put_ahead(S("key"), S("a"));
        while (system_clock_mono_ms() - begun_ms < config.timeout_ms)
                poll(NULL, 0, 100);
        cr_assert_eq(put_if(S("key"), S("a"), 0, &succeeded, &revision), 0);
        cr_expect(succeeded);
}

Test(etcd_client, uses_the_next_endpoint_if_one_refuses_connections) {
        const Etcd__RangeResponse *response;

        open_client(config_of("http://127.0.0.1:1", process.url));
        cr_expect_eq(get(S("key"), 0, &response), 0);
        cr_expect_str_eq(etcd_client_endpoint(client), process.url);
}

Test(etcd_client, call_without_any_endpoint_is_refused) {
        const Etcd__RangeResponse *response;

        open_client(config_of("http://127.0.0.1:1", "https://127.0.0.1:1"));
        cr_expect_eq(get(S("key"), 0, &response), -ENOTCONN);
        cr_expect_gt(strlen(etcd_client_reason(client)), 0);
}

Test(etcd_client, lost_reply_is_an_open_outcome_and_the_connection_is_not_used_again) {
        int64_t revision;
        bool succeeded;

        open_client(config_of(proxy.url, NULL));
        tcp_proxy_lose(&proxy, 1);
        cr_expect_eq(put_if(S("key"), S("a"), 0, &succeeded, &revision), -ETIMEDOUT);
        expect_value(S("key"), S("a"));

        tcp_proxy_lose(&proxy, 1); /* of a connection that has had a request */
        cr_expect_eq(put_if(S("other"), S("a"), 0, &succeeded, &revision), -ETIMEDOUT);
        expect_value(S("other"), S("a"));
}

Test(etcd_client, stopped_endpoint_is_an_open_outcome_and_the_next_one_is_used) {
        const Etcd__RangeResponse *response;
        struct etcd_process other;

        etcd_process_start(&other, NULL);
        open_client(config_of(other.url, process.url));
        cr_assert_eq(get(S("key"), 0, &response), 0);
        kill(other.pid, SIGSTOP);
        cr_assert_eq(waitpid(other.pid, NULL, WUNTRACED), other.pid); /* its threads stop one by one */
        cr_expect_eq(get(S("key"), 0, &response), -ETIMEDOUT);
        cr_expect_eq(get(S("key"), 0, &response), 0);
        etcd_process_stop(&other);
}

Test(etcd_client, continues_after_etcd_has_restarted) {
        const Etcd__RangeResponse *response;
        int64_t revision;
        bool succeeded;
        int r;

        open_client(config_of(process.url, NULL));
        cr_assert_eq(put_if(S("key"), S("a"), 0, &succeeded, &revision), 0);
        etcd_process_restart(&process);
        r = get(S("key"), 0, &response); /* libcurl may use the old connection */
        cr_expect(r == 0 || r == -ETIMEDOUT, "%d", r);
        expect_value(S("key"), S("a"));
}

Test(etcd_client, names_refusals) {
        const Etcd__RangeResponse *response;
        Etcd__TxnRequest request = ETCD__TXN_REQUEST__INIT;
        Etcd__RequestOp operation = ETCD__REQUEST_OP__INIT, *operations[129];
        Etcd__DeleteRangeRequest deletion = ETCD__DELETE_RANGE_REQUEST__INIT;
        const ProtobufCMessage *message;
        int64_t revision = 0;
        bool succeeded;

        open_client(config_of(process.url, NULL));
        cr_expect_eq(get(S(""), 0, &response), -EINVAL);
        cr_expect_str_eq(etcd_client_reason(client), "etcdserver: key is not provided");
        cr_expect_eq(get(S("key"), 1000000, &response), -ERANGE);

        deletion.key = etcd_bytes(S("key"));
        operation.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
        operation.request_delete_range = &deletion;
        for (size_t i = 0; i < 129; i++)
                operations[i] = &operation;
        request.success = operations;
        request.n_success = 129;
        cr_expect_eq(etcd_call(client, ETCD_TXN, &request.base, &message), -EINVAL);

        cr_assert_eq(put_if(S("key"), S("a"), 0, &succeeded, &revision), 0);
        cr_assert_eq(put_if(S("key"), S("b"), revision, &succeeded, &revision), 0);
        etcd_process_control(&process, "compaction 3");
        cr_expect_eq(get(S("key"), 2, &response), -ERANGE);
}

/* The response has few bytes for each operation, and needs much more memory for it. */
Test(etcd_client, reads_the_response_of_a_transaction_with_many_operations) {
        enum { N_OPERATIONS = 16000 };
        static Etcd__RequestOp operation = ETCD__REQUEST_OP__INIT, *operations[N_OPERATIONS];
        Etcd__DeleteRangeRequest removal = ETCD__DELETE_RANGE_REQUEST__INIT;
        Etcd__TxnRequest request = ETCD__TXN_REQUEST__INIT;
        const ProtobufCMessage *message;

        etcd_process_stop(&process);
        etcd_process_start(&process, "--max-txn-ops=16000");
        open_client(config_of(process.url, NULL));
        removal.key = etcd_bytes(S("key"));
        operation.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
        operation.request_delete_range = &removal;
        for (size_t i = 0; i < N_OPERATIONS; i++)
                operations[i] = &operation;
        request.success = operations;
        request.n_success = N_OPERATIONS;
        cr_assert_eq(etcd_call(client, ETCD_TXN, &request.base, &message), 0, "%s",
                     etcd_client_reason(client));
        cr_expect_eq(((const Etcd__TxnResponse *)message)->n_responses, N_OPERATIONS);
}

Test(etcd_client, refuses_a_reply_above_the_limit) {
        static uint8_t value[100000];
        const Etcd__RangeResponse *response;
        struct etcd_config config = config_of(process.url, NULL);
        int64_t revision;
        bool succeeded;

        config.max_reply_bytes = sizeof(value);
        open_client(config);
        cr_assert_eq(put_if(S("key"), (struct slice){ value, sizeof(value) }, 0, &succeeded, &revision), 0);
        cr_expect_eq(get(S("key"), 0, &response), -EMSGSIZE);
        cr_expect_str_eq(etcd_client_reason(client), "the reply is too large");
        cr_expect_eq(get(S("other"), 0, &response), 0);
}

static void enable_users(const struct etcd_process *etcd, const char *user) {
        char command[64];

        snprintf(command, sizeof(command), "user add %s", user);
        etcd_process_control(etcd, command);
        etcd_process_control(etcd, "user grant-role root root");
        etcd_process_control(etcd, "auth enable");
}

Test(etcd_client, repeats_a_refused_request_at_each_endpoint) {
        const Etcd__RangeResponse *response;

        open_client(config_of(proxy.url, process.url));
        cr_expect_eq(get(S(""), 0, &response), -EINVAL);
        cr_expect_str_eq(etcd_client_endpoint(client), process.url);
}

/* The users of the endpoints differ: one of them is of another cluster. */
Test(etcd_client, uses_the_next_endpoint_if_one_refuses_the_password) {
        const Etcd__RangeResponse *response;
        struct etcd_process other;
        struct etcd_config config;

        enable_users(&process, "root:secret");
        etcd_process_start(&other, NULL);
        enable_users(&other, "root:other");
        config = config_of(other.url, process.url);
        config.user = "root";
        config.password = "secret";
        open_client(config);
        cr_expect_eq(get(S("key"), 0, &response), 0);
        cr_expect_str_eq(etcd_client_endpoint(client), process.url);
        etcd_process_stop(&other);
}

Test(etcd_client, stays_at_an_endpoint_that_refuses_what_a_user_may_not_do) {
        struct etcd_config config = config_of(proxy.url, process.url);
        const Etcd__RangeResponse *response;

        etcd_process_control(&process, "user add other:secret");
        enable_users(&process, "root:secret");
        config.user = "other";
        config.password = "secret";
        open_client(config);
        cr_expect_eq(get(S("key"), 0, &response), -EACCES);
        cr_expect_eq(get(S("key"), 0, &response), -EACCES);
        cr_expect_str_eq(etcd_client_endpoint(client), proxy.url);
}

Test(etcd_client, names_a_full_database) {
        static uint8_t value[500000];
        const Etcd__RangeResponse *response;
        int64_t revision;
        bool succeeded;
        char key[16];
        int r = 0;

        etcd_process_stop(&process);
        etcd_process_start(&process, "--quota-backend-bytes=2000000");
        open_client(config_of(process.url, NULL));
        for (int i = 0; r == 0 && i < 100; i++) {
                snprintf(key, sizeof(key), "key %d", i);
                r = put_if(slice_from_string(key), (struct slice){ value, sizeof(value) }, 0, &succeeded,
                           &revision);
        }
        cr_expect_eq(r, -ENOSPC);
        cr_expect_eq(get(slice_from_string(key), 0, &response), 0); /* reads go on */
}

Test(etcd_client, renews_a_token_that_etcd_has_forgotten) {
        struct etcd_config config = config_of(process.url, NULL);
        const Etcd__RangeResponse *response;

        enable_users(&process, "root:secret");
        config.user = "root";
        config.password = "secret";
        open_client(config);
        cr_expect_eq(get(S("key"), 0, &response), 0);
        etcd_process_control(&process, "--user root:secret auth disable");
        etcd_process_control(&process, "auth enable");
        cr_expect_eq(get(S("key"), 0, &response), 0);
}

Test(etcd_client, reports_a_wrong_user_and_a_wrong_password) {
        static const char *const names[][2] = { { NULL, NULL }, { "root", "wrong" }, { "other", "secret" } };
        const Etcd__RangeResponse *response;

        enable_users(&process, "root:secret");
        for (size_t i = 0; i < 3; i++) {
                struct etcd_config config = config_of(process.url, NULL);

                config.user = names[i][0];
                config.password = names[i][1];
                open_client(config);
                cr_expect_eq(get(S("key"), 0, &response), -EACCES, "%zu: %s", i, etcd_client_reason(client));
                client = etcd_client_free(client);
        }
}

Test(etcd_client, reports_that_etcd_knows_no_users) {
        struct etcd_config config = config_of(process.url, NULL);
        const Etcd__RangeResponse *response;

        config.user = "root";
        config.password = "secret";
        open_client(config);
        cr_expect_eq(get(S("key"), 0, &response), -EACCES);
}

Test(etcd_client, uses_tls_with_a_certificate_of_each_side) {
        const Etcd__RangeResponse *response;
        struct etcd_process secure;
        struct etcd_config config;
        char certificate[96], key[96];

        etcd_process_start_tls(&secure);
        snprintf(certificate, sizeof(certificate), "%s/certificate.pem", secure.directory);
        snprintf(key, sizeof(key), "%s/key.pem", secure.directory);
        config = config_of(secure.url, NULL);
        open_client(config);
        cr_expect_eq(get(S("key"), 0, &response), -ENOTCONN); /* an unknown authority */
        etcd_client_free(client);

        config.ca_file = certificate;
        open_client(config);
        cr_expect_lt(get(S("key"), 0, &response), 0); /* without a certificate of the client */
        etcd_client_free(client);

        config.certificate_file = certificate;
        config.key_file = key;
        open_client(config);
        for (int i = 0; i < 3; i++)
                cr_expect_eq(get(S("key"), 0, &response), 0);
        etcd_process_stop(&secure);
}
