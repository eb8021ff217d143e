/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Transactions of etcd, one after the other: each compares the revision of the key that the one
 * before has written last, and writes keys of the given sizes. Prints how long one takes. With
 * --port each follows a SET at the store of that port, and the time of both is printed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/arguments.h"
#include "bench/fail.h"
#include "bench/load.h"
#include "bench/samples.h"
#include "bench/stopwatch.h"
#include "etcd/client.h"

#define TIMEOUT_MS 10000
#define REPLY_MAX  65536

/* A key and its value, together of the size that is asked for. */
struct put {
        char key[16];
        uint8_t *value;
        Etcd__PutRequest request;
        Etcd__RequestOp operation;
};

static struct {
        struct put puts[ARGUMENT_TEXTS_MAX];
        Etcd__RequestOp *operations[ARGUMENT_TEXTS_MAX];
        Etcd__Compare compare, *compares[1];
        Etcd__TxnRequest request;
} transaction;

static void prepare_put(size_t i, const char *size_text) {
        struct put *put = &transaction.puts[i];
        size_t key_length = (size_t)snprintf(put->key, sizeof(put->key), "bench/%02zu", i);
        uint64_t size = strtoull(size_text, NULL, 10);

        if (size < key_length)
                fail("--put: at least %zu bytes were expected, not \"%s\"", key_length, size_text);
        put->value = calloc(1, size - key_length + 1);
        if (!put->value)
                fail("out of memory");
        etcd__put_request__init(&put->request);
        put->request.key = etcd_bytes((struct slice){ (uint8_t *)put->key, key_length });
        put->request.value = etcd_bytes((struct slice){ put->value, size - key_length });
        etcd__request_op__init(&put->operation);
        put->operation.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_PUT;
        put->operation.request_put = &put->request;
        transaction.operations[i] = &put->operation;
}

static void prepare(const struct argument_texts *sizes) {
        for (size_t i = 0; i < sizes->n_texts; i++)
                prepare_put(i, sizes->texts[i]);
        etcd__compare__init(&transaction.compare);
        transaction.compare.result = ETCD__COMPARE__RESULT__EQUAL;
        transaction.compare.target = ETCD__COMPARE__TARGET__MOD;
        transaction.compare.target_union_case = ETCD__COMPARE__TARGET_UNION_MOD_REVISION;
        transaction.compare.key = transaction.puts[0].request.key;
        transaction.compares[0] = &transaction.compare;
        etcd__txn_request__init(&transaction.request);
        transaction.request.success = transaction.operations;
        transaction.request.n_success = sizes->n_texts;
}

/* The first transaction of the program compares nothing. */
static void execute(struct etcd_client *client) {
        const ProtobufCMessage *message;
        const Etcd__TxnResponse *response;
        int r = etcd_call(client, ETCD_TXN, &transaction.request.base, &message);

        if (r < 0)
                fail("a transaction failed: %s; %s", strerror(-r), etcd_client_reason(client));
        response = (const Etcd__TxnResponse *)message;
        if (!response->succeeded || !response->header)
                fail("another program has written the key");
        transaction.compare.mod_revision = response->header->revision;
        transaction.request.compare = transaction.compares;
        transaction.request.n_compare = 1;
}

/* Send one SET, and wait for its reply. */
static void set(struct load *load) {
        load_start(load);
        load_stop(load);
        load_run(load, stopwatch_ns() + LOAD_PATIENCE_NS);
        if (load->n_outstanding > 0 || load->n_errors > 0)
                fail("a SET has no reply, or a wrong one");
}

int main(int n_arguments, char **arguments) {
        const char *endpoint = NULL;
        struct argument_texts sizes = { 0 };
        struct load_options sets = { .n_clients = 1, .depth = 1, .n_keys = 1 };
        uint64_t warm_up_ms = 100, measure_ms = 2000;
        struct load load;
        struct samples latencies_ns = { 0 };
        struct etcd_client *client;
        int64_t from_ns, until_ns;

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){ { "etcd", ARGUMENT_TEXT, &endpoint },
                                                  { "put", ARGUMENT_TEXTS, &sizes },
                                                  { "port", ARGUMENT_NUMBER, &sets.port },
                                                  { "warm-up-ms", ARGUMENT_NUMBER, &warm_up_ms },
                                                  { "measure-ms", ARGUMENT_NUMBER, &measure_ms },
                                                  { 0 } });
        if (!endpoint || sizes.n_texts == 0)
                fail("--etcd URL --put BYTES... [--port PORT] was expected");
        prepare(&sizes);
        if (etcd_client_new(&client, &(struct etcd_config){ .endpoints = &endpoint,
                                                            .n_endpoints = 1,
                                                            .timeout_ms = TIMEOUT_MS,
                                                            .max_reply_bytes = REPLY_MAX }) < 0)
                fail("out of memory");

        if (sets.port > 0)
                load_open(&load, &sets);
        from_ns = stopwatch_ns() + (int64_t)warm_up_ms * NS_PER_MS;
        until_ns = from_ns + (int64_t)measure_ms * NS_PER_MS;
        for (int64_t begin_ns = stopwatch_ns(), end_ns; begin_ns < until_ns; begin_ns = end_ns) {
                if (sets.port > 0)
                        set(&load);
                execute(client);
                end_ns = stopwatch_ns();
                if (begin_ns >= from_ns)
                        samples_add(&latencies_ns, (uint64_t)(end_ns - begin_ns));
        }
        samples_sort(&latencies_ns);
        printf("transactions %zu\n", latencies_ns.n_values);
        printf("p50_us %.1f\n", (double)samples_percentile(&latencies_ns, 0.5) / 1000);
        printf("p99_us %.1f\n", (double)samples_percentile(&latencies_ns, 0.99) / 1000);
        if (sets.port > 0)
                load_close(&load);
        etcd_client_free(client);
        return 0;
}
