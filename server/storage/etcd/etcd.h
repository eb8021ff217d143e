/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "etcd/client.h"
#include "storage/etcd/header.h"
#include "storage/storage.h"

/*
 * The storage in etcd, for several machines. Of etcd it uses one property: a transaction compares
 * and writes atomically. Each transaction compares the header with that of the last one, and
 * replaces it. So a commit is also the proof that this process still leads.
 *
 * A process reads the header with storage_etcd_observe(), until the election decides that it leads.
 * Then it calls storage_etcd_win(), storage_load(), storage_lead(), and storage_commit(). A commit
 * of only the header renews the lease. Loading renews it, too.
 *
 * Open outcomes. If the outcome of a transaction is open (etcd/client.h), the same transaction is
 * sent again, until it succeeds or its comparison fails. Then the random id in the header says
 * whether it is stored. Reading the header instead would not help: the first transaction may be
 * executed later. While etcd is away, this does not end: storage_is_waiting() returns true. The
 * process may end without storage_close() then.
 *
 * Two stores in one etcd have different prefixes. One must not be in a table of the other, as
 * "/statestore/" and "/statestore/entry/A/" (keys.h).
 *
 * The quota of etcd. A transaction that is refused for lack of space may be stored, too. The same
 * comparison with an operation that changes nothing, which etcd admits, decides: see
 * storage_commit(), -ENOSPC. A full etcd admits no commit, not even one that only removes, because
 * each one writes the header. It does not renew the lease either: the others do not see it.
 *
 * etcd keeps former values until it compacts. The leader lets it compact after 64 MiB, so the quota
 * must exceed the stored data by 128 MiB. Recent releases of etcd, such as 3.6.16, let only
 * the user root compact. With another user, switch on etcd's automatic compaction.
 */

struct storage_etcd_config {
        struct etcd_config etcd;
        const char *prefix;            /* of all keys: "/statestore/NAME/"; borrowed */
        struct election_header holder; /* name, member, process and lease of this process */
        size_t max_txn_ops;            /* as --max-txn-ops of etcd */
        size_t max_request_bytes;      /* as --max-request-bytes of etcd */

        /*
         * This process never leads. It calls only storage_etcd_observe(), and storage_load(), which loads
         * what was stored with the header that was observed last, while another process may lead. It
         * fails if etcd is compacted meanwhile.
         */
        bool read_only;

        /*
         * Feeds a watchdog; NULL: none. Called before each range that is loaded, and each repetition of a
         * transaction, until storage_lead(). By the thread that wins and loads.
         */
        void (*alive)(void);
};

/*
 * Create the storage, without a connection. Returns 0 or -ENOMEM. The caller owns *ret_storage. The limits
 * must be at least the defaults of etcd: one step of the engine fits into them (server/config checks it).
 */
int storage_etcd_open(struct storage **ret_storage, const struct storage_etcd_config *config);

/* A reading of the header. election.header is header.holder. */
struct storage_etcd_reading {
        struct etcd_header header;
        struct election_reading election;
};

/*
 * Read the header from one etcd, by default that of this machine, which may be behind the others, but
 * not with read_only. Returns 0; -EBADMSG if the header is damaged, or if another version of statestored
 * wrote it in another form (storage/stored_form.h); -EACCES if etcd refuses the user, or what the user may
 * do; -EIO if etcd cannot be read now; or -ENOMEM. After -EBADMSG storage_etcd_reason() has the cause, which
 * is not logged.
 */
int storage_etcd_observe(struct storage *storage, struct storage_etcd_reading *ret_reading);

/*
 * Replace the header that was read by one of the next term, with this process as its holder.
 * Without a header, create that of an empty store; -EBADMSG if there are rows.
 *
 * The instance id is new if etcd was restored from a copy: if the cluster is another one than that of
 * the last term, or if this process has observed a later revision of the header than this one. All
 * processes may have been restarted since, and a restored cluster can have the same id. So restore
 * with another --initial-cluster-token, which changes the id (etcdutl snapshot restore).
 *
 * shift_ms: of the clock of deadlines (state/timescale.h). The header gets the reading of this clock, so
 * that a standby that wins next continues from there, although this process may not commit.
 *
 * Returns 0, or STORAGE_ETCD_LOST if the header is not the one that was read: then *reading is the
 * present one. Or -ENOSPC, -EIO, -EACCES, -EBADMSG or -ENOMEM: not won; the cause is logged. -EBADMSG also
 * if the present one cannot be used, see storage_etcd_observe().
 */
enum storage_etcd_result {
        STORAGE_ETCD_LOST = 1,
};
int storage_etcd_win(struct storage *storage, struct storage_etcd_reading *reading, int64_t shift_ms);

/*
 * Write the header with has_given_up, so that another member wins at once. Returns as
 * storage_commit().
 */
int storage_etcd_give_up(struct storage *storage);

/* For log messages: why the last call of etcd failed, or why the header cannot be used. */
const char *storage_etcd_reason(const struct storage *storage);
