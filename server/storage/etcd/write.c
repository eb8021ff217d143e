/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "storage/etcd/internal.h"

static void write_single(struct etcd_storage *storage, const struct change *change,
                         const struct hash_key *hash_key) {
        struct transaction *transaction = &storage->transaction;

        etcd_key_append(&transaction->bytes, storage->config.prefix, hash_key, change);
        transaction_end_key(transaction);
        if (change->is_removed) {
                transaction_end_remove(transaction);
                return;
        }
        etcd_value_append(&transaction->bytes, change);
        transaction_end_put(transaction);
}

static void write_execution_row(struct etcd_storage *storage, size_t row) {
        const struct executed_request *places = &storage->staged[row * EXECUTION_ROW_PLACES];
        struct transaction *transaction = &storage->transaction;
        bool is_empty = true;

        etcd_key_append_number(&transaction->bytes, storage->config.prefix, CHANGE_EXECUTION,
                               row * EXECUTION_ROW_PLACES);
        transaction_end_key(transaction);
        for (size_t i = 0; i < EXECUTION_ROW_PLACES; i++) {
                if (places[i].number == 0)
                        continue;
                etcd_value_append(&transaction->bytes,
                                  &(struct change){ .type = CHANGE_EXECUTION, .execution = places[i] });
                is_empty = false;
        }
        if (is_empty)
                transaction_end_remove(transaction);
        else
                transaction_end_put(transaction);
}

static void write_executions(struct etcd_storage *storage, const struct change_set *change_set) {
        bool is_changed[N_EXECUTION_ROWS] = { 0 };

        memcpy(storage->staged, storage->executions, sizeof(storage->staged));
        for (size_t place = 0; place < EXECUTIONS_PLACES && change_set->forgets_executions; place++) {
                is_changed[place / EXECUTION_ROW_PLACES] |= storage->staged[place].number > 0;
                storage->staged[place] = (struct executed_request){ 0 };
        }
        for (size_t i = 0; i < change_set->n_changes; i++) {
                const struct executed_request *execution = &change_set->changes[i].execution;

                if (change_set->changes[i].type != CHANGE_EXECUTION)
                        continue;
                storage->staged[executions_place(execution->number)] = *execution;
                is_changed[executions_place(execution->number) / EXECUTION_ROW_PLACES] = true;
        }
        for (size_t row = 0; row < N_EXECUTION_ROWS; row++)
                if (is_changed[row])
                        write_execution_row(storage, row);
}

/* The number of a change of a list, or 0 if it is another change or removes one. */
static uint64_t list_number(const struct change *change, enum change_type type) {
        if (change->type != type || change->is_removed)
                return 0;
        return type == CHANGE_REPLY ? change->reply.number : change->notification.sequence;
}

/*
 * Write the replies or the notifications above `removed` in one row. Returns the last number, or 0.
 */
static uint64_t write_list(struct etcd_storage *storage, const struct change_set *change_set,
                           enum change_type type, uint64_t removed) {
        struct transaction *transaction = &storage->transaction;
        uint64_t last = 0;

        for (size_t i = 0; i < change_set->n_changes; i++)
                if (list_number(&change_set->changes[i], type) > last)
                        last = list_number(&change_set->changes[i], type);
        if (last <= removed)
                return 0;

        etcd_key_append_number(&transaction->bytes, storage->config.prefix, type, last);
        transaction_end_key(transaction);
        for (size_t i = 0; i < change_set->n_changes; i++)
                if (list_number(&change_set->changes[i], type) > removed)
                        etcd_value_append(&transaction->bytes, &change_set->changes[i]);
        transaction_end_put(transaction);
        return last;
}

/*
 * Remove the rows of a list up to a number, unless it was removed up to there before. etcd refuses
 * to put one of them in the same transaction.
 */
static void remove_list(struct etcd_storage *storage, enum change_type type, uint64_t up_to,
                        uint64_t *removed) {
        struct transaction *transaction = &storage->transaction;

        if (up_to <= *removed)
                return;
        etcd_key_append_number(&transaction->bytes, storage->config.prefix, type, *removed + 1);
        transaction_end_key(transaction);
        etcd_key_append_number(&transaction->bytes, storage->config.prefix, type, up_to + 1);
        transaction_end_remove(transaction);
        *removed = up_to;
}

/* A reply that is forgotten before its time stays until all replies up to it are forgotten. */
void etcd_write_changes(struct etcd_storage *storage, const struct change_set *change_set,
                        struct etcd_header *header) {
        uint64_t last_reply;

        for (size_t i = 0; i < change_set->n_changes; i++) {
                const struct change *change = &change_set->changes[i];

                if (change->type == CHANGE_ENTRY || change->type == CHANGE_REGISTRATION)
                        write_single(storage, change, &change_set->header.row_hash_key);
        }
        write_executions(storage, change_set);
        remove_list(storage, CHANGE_REPLY, change_set->forgotten_up_to, &header->forgotten_up_to);
        last_reply = write_list(storage, change_set, CHANGE_REPLY, header->forgotten_up_to);
        if (last_reply > 0)
                header->last_reply = last_reply;
        remove_list(storage, CHANGE_NOTIFICATION, change_set->acknowledged, &header->acknowledged);
        write_list(storage, change_set, CHANGE_NOTIFICATION, header->acknowledged);
}
