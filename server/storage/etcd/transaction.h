/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "etcd/client.h"

/*
 * A key that a transaction compares. A cluster that was restored from a copy assigns the later
 * revisions again, so the value is compared, too.
 */
struct transaction_guard {
        struct slice key;
        uint64_t revision;  /* of its last change; 0: the key must not exist */
        struct slice value; /* unless revision is 0 */
};

/*
 * A transaction of etcd: if the guard is unchanged, it executes operations, else it reads the
 * guard. It is built once, and can be sent several times. Initialize with zeros.
 *
 *     transaction_reset(&transaction);
 *     etcd_key_append_header(&transaction.bytes, prefix);
 *     transaction_end_key(&transaction);
 *     etcd_header_append(&transaction.bytes, &header);
 *     transaction_end_put(&transaction);
 *     r = transaction_prepare(&transaction, &guard);
 */
struct transaction {
        struct buf bytes; /* keys and values; the caller appends to it */
        struct transaction_operation *operations;
        size_t n_operations, capacity;
        size_t from, key_end; /* of the operation that is being built */
        Etcd__TxnRequest request;
        void *messages; /* that the request refers to */
};

void transaction_reset(struct transaction *transaction);
void transaction_deinit(struct transaction *transaction);

/*
 * What was appended since the last operation is the key. What is appended next is the value, or the
 * end of the range.
 */
void transaction_end_key(struct transaction *transaction);

/* Put the key with this value, which gets a checksum (keys.h). */
void transaction_end_put(struct transaction *transaction);

/* Remove the keys from the first one up to the end, exclusive; without an end, the key. */
void transaction_end_remove(struct transaction *transaction);

/*
 * Build the request. The guard is borrowed. Nothing may be appended afterwards. Returns 0 or
 * -ENOMEM.
 */
int transaction_prepare(struct transaction *transaction, const struct transaction_guard *guard);

/* Length of the request, after transaction_prepare(). */
size_t transaction_length(const struct transaction *transaction);

enum transaction_result {
        TRANSACTION_DONE,
        TRANSACTION_REFUSED, /* the guard was changed; nothing else was done */
};

/*
 * Send the transaction. *ret_response is valid until the next call of the client. After
 * TRANSACTION_REFUSED, *ret_guard is the guard, NULL if it does not exist. Returns an enum
 * transaction_result, or an error of etcd_call().
 */
int transaction_send(const struct transaction *transaction, struct etcd_client *client,
                     const Etcd__TxnResponse **ret_response, const Etcd__KeyValue **ret_guard);
