/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "storage/etcd/internal.h"

static void write_single(struct etcd_storage *storage, const struct row *row,
                         const struct hash_key *hash_key) {
        struct transaction *transaction = &storage->transaction;

        etcd_key_append(&transaction->bytes, storage->config.prefix, hash_key, row);
        transaction_end_key(transaction);
        if (row->is_removed) {
                transaction_end_remove(transaction);
                return;
        }
        etcd_value_append(&transaction->bytes, row);
        transaction_end_put(transaction);
}

static void write_execution_key(struct etcd_storage *storage, size_t index) {
        const struct executed_request *places = &storage->staged[index * EXECUTION_KEY_PLACES];
        struct transaction *transaction = &storage->transaction;
        bool is_empty = true;

        etcd_key_append_number(&transaction->bytes, storage->config.prefix, ROW_EXECUTION,
                               index * EXECUTION_KEY_PLACES);
        transaction_end_key(transaction);
        for (size_t i = 0; i < EXECUTION_KEY_PLACES; i++) {
                if (places[i].number == 0)
                        continue;
                etcd_value_append(&transaction->bytes,
                                  &(struct row){ .type = ROW_EXECUTION, .execution = places[i] });
                is_empty = false;
        }
        if (is_empty)
                transaction_end_remove(transaction);
        else
                transaction_end_put(transaction);
}

static void write_executions(struct etcd_storage *storage, const struct change_set *change_set) {
        bool is_changed[N_EXECUTION_KEYS] = { 0 };

        memcpy(storage->staged, storage->executions, sizeof(storage->staged));
        for (size_t place = 0; place < EXECUTIONS_PLACES && change_set->forgets_executions; place++) {
                is_changed[place / EXECUTION_KEY_PLACES] |= storage->staged[place].number > 0;
                storage->staged[place] = (struct executed_request){ 0 };
        }
        for (size_t i = 0; i < change_set->n_rows; i++) {
                const struct executed_request *execution = &change_set->rows[i].execution;

                if (change_set->rows[i].type != ROW_EXECUTION)
                        continue;
                storage->staged[executions_place(execution->number)] = *execution;
                is_changed[executions_place(execution->number) / EXECUTION_KEY_PLACES] = true;
        }
        for (size_t i = 0; i < N_EXECUTION_KEYS; i++)
                if (is_changed[i])
                        write_execution_key(storage, i);
}

/* The number of a row of a list, or 0 if it is another row or is removed. */
static uint64_t list_number(const struct row *row, enum row_type type) {
        if (row->type != type || row->is_removed)
                return 0;
        return type == ROW_REPLY ? row->reply.number : row->notification.sequence;
}

/*
 * Write the replies or the notifications above `removed` in one value. Returns the last number, or 0.
 */
static uint64_t write_list(struct etcd_storage *storage, const struct change_set *change_set,
                           enum row_type type, uint64_t removed) {
        struct transaction *transaction = &storage->transaction;
        uint64_t last = 0;

        for (size_t i = 0; i < change_set->n_rows; i++)
                if (list_number(&change_set->rows[i], type) > last)
                        last = list_number(&change_set->rows[i], type);
        if (last <= removed)
                return 0;

        etcd_key_append_number(&transaction->bytes, storage->config.prefix, type, last);
        transaction_end_key(transaction);
        for (size_t i = 0; i < change_set->n_rows; i++)
                if (list_number(&change_set->rows[i], type) > removed)
                        etcd_value_append(&transaction->bytes, &change_set->rows[i]);
        transaction_end_put(transaction);
        return last;
}

/*
 * Remove the keys of a list up to a number, unless it was removed up to there before. etcd refuses
 * to put one of them in the same transaction.
 */
static void remove_list(struct etcd_storage *storage, enum row_type type, uint64_t up_to,
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

        for (size_t i = 0; i < change_set->n_rows; i++) {
                const struct row *row = &change_set->rows[i];

                if (row->type == ROW_ENTRY || row->type == ROW_REGISTRATION)
                        write_single(storage, row, &change_set->header.row_hash_key);
        }
        write_executions(storage, change_set);
        remove_list(storage, ROW_REPLY, change_set->forgotten_up_to, &header->forgotten_up_to);
        last_reply = write_list(storage, change_set, ROW_REPLY, header->forgotten_up_to);
        if (last_reply > 0)
                header->last_reply = last_reply;
        remove_list(storage, ROW_NOTIFICATION, change_set->acknowledged, &header->acknowledged);
        write_list(storage, change_set, ROW_NOTIFICATION, header->acknowledged);
}
