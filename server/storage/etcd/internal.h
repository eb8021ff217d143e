/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>

#include "base/log.h"
#include "storage/etcd/etcd.h"
#include "storage/etcd/keys.h"
#include "storage/etcd/transaction.h"
#include "storage/stored_form.h"

struct etcd_storage {
        struct storage storage;
        struct storage_operations operations; /* with the limits of this etcd */
        struct storage_etcd_config config;
        struct etcd_client *client;
        struct buf header_key;
        struct buf header_value;        /* that the present transaction compares */
        struct transaction transaction; /* the present or the last one */

        /* Why the header that was read last cannot be used; empty: it can, or was not read. */
        char header_fault[LOG_TEXT_MAX + sizeof(struct stored_form_text) + 64];

        /* What is stored. Before this process has won: the header that it has read. */
        struct etcd_header header; /* with holder.mod_revision; read_only: the revision that was read */
        struct executed_request executions[EXECUTIONS_PLACES];

        struct executed_request staged[EXECUTIONS_PLACES]; /* with the change set that is being committed */
        int64_t begun_ns;             /* monotonic; when the last transaction was begun */
        atomic_int_least64_t sent_ns; /* of the header: the lease begins then; for any thread */
        atomic_bool is_waiting;
        uint64_t seen_revision; /* the highest mod_revision of a header that this process has read */
        size_t n_bytes_written; /* since the last compaction */
        struct log_limit log_limit;
};

/* 1. Transactions: etcd.c */

/*
 * Write the present header again, which renews the lease, or gives it up. Returns 0, or as
 * storage_commit().
 */
int etcd_storage_renew(struct etcd_storage *storage, bool gives_up);

/* Log why the last call of etcd failed, limited. what: "cannot load". */
void etcd_storage_log_failure(struct etcd_storage *storage, const char *what);

void etcd_storage_report_alive(const struct etcd_storage *storage);

/* Wait before another attempt. */
void etcd_storage_pause(const struct etcd_storage *storage);

/* 2. Changes: write.c, load.c */

/*
 * Add the operations of the change set to the empty transaction, and change `staged` and the
 * numbers of the new header. Check buf_failed(&storage->transaction.bytes) for lack of memory.
 */
void etcd_write_changes(struct etcd_storage *storage, const struct change_set *change_set,
                        struct etcd_header *header);

int etcd_storage_load(struct storage *storage, const struct storage_sink *sink);
