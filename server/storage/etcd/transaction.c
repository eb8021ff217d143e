/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/etcd/transaction.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "storage/etcd/keys.h"

/* Offsets in `bytes`. */
struct transaction_operation {
        bool is_put;
        size_t from, key_end, end;
};

struct operation_messages {
        Etcd__RequestOp operation;
        Etcd__PutRequest put;
        Etcd__DeleteRangeRequest remove;
};

/* The messages of one request. */
struct transaction_messages {
        Etcd__Compare compare[2], *compares[2];
        Etcd__RangeRequest range;
        Etcd__RequestOp read, *reads[1];
        Etcd__RequestOp **operations;
        struct operation_messages items[];
};

static void free_messages(struct transaction *transaction) {
        struct transaction_messages *messages = transaction->messages;

        if (messages)
                free(messages->operations);
        free(messages);
        transaction->messages = NULL;
}

void transaction_reset(struct transaction *transaction) {
        free_messages(transaction);
        buf_reset(&transaction->bytes);
        transaction->n_operations = transaction->from = transaction->key_end = 0;
}

void transaction_deinit(struct transaction *transaction) {
        free_messages(transaction);
        buf_deinit(&transaction->bytes);
        free(transaction->operations);
        *transaction = (struct transaction){ 0 };
}

void transaction_end_key(struct transaction *transaction) {
        transaction->key_end = transaction->bytes.length;
}

static void end_operation(struct transaction *transaction, bool is_put) {
        if (array_reserve((void **)&transaction->operations, &transaction->capacity,
                          transaction->n_operations + 1, sizeof(*transaction->operations)) < 0) {
                transaction->bytes.failed = true;
                return;
        }
        transaction->operations[transaction->n_operations++] =
                (struct transaction_operation){ .is_put = is_put,
                                                .from = transaction->from,
                                                .key_end = transaction->key_end,
                                                .end = transaction->bytes.length };
        transaction->from = transaction->bytes.length;
}

static struct slice bytes_between(const struct transaction *transaction, size_t from, size_t to) {
        return (struct slice){ transaction->bytes.data + from, to - from };
}

void transaction_end_put(struct transaction *transaction) {
        etcd_value_seal(&transaction->bytes, transaction->from, transaction->key_end);
        end_operation(transaction, true);
}

void transaction_end_remove(struct transaction *transaction) {
        end_operation(transaction, false);
}

static void fill_operation(const struct transaction *transaction, struct operation_messages *item,
                           const struct transaction_operation *operation) {
        struct slice key = bytes_between(transaction, operation->from, operation->key_end);
        struct slice rest = bytes_between(transaction, operation->key_end, operation->end);

        etcd__request_op__init(&item->operation);
        if (operation->is_put) {
                etcd__put_request__init(&item->put);
                item->put.key = etcd_bytes(key);
                item->put.value = etcd_bytes(rest);
                item->operation.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_PUT;
                item->operation.request_put = &item->put;
        } else {
                etcd__delete_range_request__init(&item->remove);
                item->remove.key = etcd_bytes(key);
                item->remove.range_end = etcd_bytes(rest);
                item->operation.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
                item->operation.request_delete_range = &item->remove;
        }
}

/* Returns the number of comparisons. */
static size_t fill_guard(struct transaction_messages *messages, const struct transaction_guard *guard) {
        size_t n = guard->revision > 0 ? 2 : 1;

        for (size_t i = 0; i < n; i++) {
                etcd__compare__init(&messages->compare[i]);
                messages->compare[i].result = ETCD__COMPARE__RESULT__EQUAL;
                messages->compare[i].key = etcd_bytes(guard->key);
                messages->compares[i] = &messages->compare[i];
        }
        messages->compare[0].target = ETCD__COMPARE__TARGET__MOD;
        messages->compare[0].target_union_case = ETCD__COMPARE__TARGET_UNION_MOD_REVISION;
        messages->compare[0].mod_revision = (int64_t)guard->revision;
        messages->compare[1].target = ETCD__COMPARE__TARGET__VALUE;
        messages->compare[1].target_union_case = ETCD__COMPARE__TARGET_UNION_VALUE;
        messages->compare[1].value = etcd_bytes(guard->value);

        etcd__range_request__init(&messages->range);
        messages->range.key = etcd_bytes(guard->key);
        etcd__request_op__init(&messages->read);
        messages->read.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_RANGE;
        messages->read.request_range = &messages->range;
        messages->reads[0] = &messages->read;
        return n;
}

int transaction_prepare(struct transaction *transaction, const struct transaction_guard *guard) {
        size_t n = transaction->n_operations;
        struct transaction_messages *messages;

        if (buf_failed(&transaction->bytes))
                return -ENOMEM;
        free_messages(transaction);
        messages = calloc(1, sizeof(*messages) + n * sizeof(messages->items[0]));
        transaction->messages = messages;
        if (!messages)
                return -ENOMEM;
        messages->operations = calloc(n ? n : 1, sizeof(messages->operations[0]));
        if (!messages->operations)
                return -ENOMEM;

        for (size_t i = 0; i < n; i++) {
                fill_operation(transaction, &messages->items[i], &transaction->operations[i]);
                messages->operations[i] = &messages->items[i].operation;
        }
        etcd__txn_request__init(&transaction->request);
        transaction->request.n_compare = fill_guard(messages, guard);
        transaction->request.compare = messages->compares;
        transaction->request.success = messages->operations;
        transaction->request.failure = messages->reads;
        transaction->request.n_failure = 1;
        transaction->request.n_success = n;
        return 0;
}

size_t transaction_length(const struct transaction *transaction) {
        return etcd__txn_request__get_packed_size(&transaction->request);
}

int transaction_send(const struct transaction *transaction, struct etcd_client *client,
                     const Etcd__TxnResponse **ret_response, const Etcd__KeyValue **ret_guard) {
        const ProtobufCMessage *message;
        const Etcd__TxnResponse *response;
        const Etcd__RangeResponse *range;
        int r;

        r = etcd_call(client, ETCD_TXN, &transaction->request.base, &message);
        if (r < 0)
                return r;

        response = (const Etcd__TxnResponse *)message;
        if (!response->header)
                return -EBADMSG;
        *ret_response = response;
        if (response->succeeded)
                return TRANSACTION_DONE;

        if (response->n_responses != 1 ||
            response->responses[0]->response_case != ETCD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE)
                return -EBADMSG;
        range = response->responses[0]->response_range;
        *ret_guard = range->n_kvs > 0 ? range->kvs[0] : NULL;
        return TRANSACTION_REFUSED;
}
