/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/etcd/etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "engine/engine.h"
#include "state/timescale.h"
#include "storage/etcd/internal.h"

/*
 * etcd compares its limit with the request and a header of its own, which has the name of the user.
 */
#define REQUEST_HEADER_BYTES 1024

/*
 * Operations beside those of entries and registrations: the keys of executions, put and removal of
 * lists, the header.
 */
#define OTHER_OPERATIONS (N_EXECUTION_KEYS + 5)

/*
 * etcd compacts after so many bytes were written. A revision costs about a page of its database and
 * a part of its index beside these bytes, so renewals count, too.
 */
#define COMPACTION_BYTES ((size_t)64 << 20)
#define REVISION_BYTES   4096

#define PAUSE_MS 50

void etcd_storage_report_alive(const struct etcd_storage *storage) {
        if (storage->config.alive)
                storage->config.alive();
}

void etcd_storage_pause(const struct etcd_storage *storage) {
        etcd_storage_report_alive(storage);
        system_clock_sleep_ms(PAUSE_MS);
}

const char *storage_etcd_reason(const struct storage *base) {
        const struct etcd_storage *storage = (const struct etcd_storage *)base;

        return storage->header_fault[0] ? storage->header_fault : etcd_client_reason(storage->client);
}

void etcd_storage_log_failure(struct etcd_storage *storage, const char *what) {
        log_limited(&storage->log_limit, LOG_ERROR, "%s at etcd %s: %s", what,
                    LOG_STRING(etcd_client_endpoint(storage->client)),
                    LOG_STRING(etcd_client_reason(storage->client)));
}

/* 1. Reading the header */

/* Read the header from etcd's key. Returns 0, or -EBADMSG with storage->header_fault. */
static int read_header_value(struct etcd_storage *storage, const Etcd__KeyValue *stored,
                             struct etcd_header *ret_header) {
        struct slice content;
        uint32_t version;
        int r;

        r = etcd_value_open(etcd_slice(stored->key), etcd_slice(stored->value), &content);
        if (r == 0)
                r = etcd_header_read(content, ret_header, &version);
        if (r == 0 && stored->mod_revision > 0) {
                ret_header->holder.mod_revision = (uint64_t)stored->mod_revision;
                return 0;
        }
        snprintf(storage->header_fault, sizeof(storage->header_fault),
                 "the header in etcd cannot be used: %s; its key is \"%s\"",
                 r == -EPROTONOSUPPORT ? stored_form_explain(version).text : "it is damaged",
                 LOG_TEXT(buf_slice(&storage->header_key)));
        return -EBADMSG;
}

/* Read the header from a response. NULL: it does not exist. Returns as read_header_value(). */
static int read_header(struct etcd_storage *storage, const Etcd__KeyValue *stored,
                       const Etcd__ResponseHeader *response, int64_t asked_ns,
                       struct storage_etcd_reading *ret_reading) {
        struct storage_etcd_reading reading = { 0 };

        storage->header_fault[0] = '\0';
        if (stored && read_header_value(storage, stored, &reading.header) < 0)
                return -EBADMSG;
        reading.election = (struct election_reading){
                .header = reading.header.holder,
                .cluster = response->cluster_id,
                .revision = (uint64_t)response->revision,
                .asked_ns = asked_ns,
                .received_ns = system_clock_boot_ns(),
                .wall_ms = system_clock_wall_ms(),
        };
        *ret_reading = reading;
        return 0;
}

int storage_etcd_observe(struct storage *base, struct storage_etcd_reading *ret_reading) {
        struct etcd_storage *storage = (struct etcd_storage *)base;
        Etcd__RangeRequest request = ETCD__RANGE_REQUEST__INIT;
        const Etcd__RangeResponse *response;
        const ProtobufCMessage *message;
        int64_t asked_ns = system_clock_boot_ns();
        int r;

        request.key = etcd_bytes(buf_slice(&storage->header_key));
        request.serializable = !storage->config.read_only;
        storage->header_fault[0] = '\0';
        r = etcd_call(storage->client, ETCD_RANGE, &request.base, &message);
        if (r < 0)
                return r == -ENOMEM || r == -EACCES ? r : -EIO;

        response = (const Etcd__RangeResponse *)message;
        if (!response->header)
                return -EIO;
        r = read_header(storage, response->n_kvs > 0 ? response->kvs[0] : NULL, response->header, asked_ns,
                        ret_reading);
        if (r == 0 && ret_reading->election.header.mod_revision > storage->seen_revision)
                storage->seen_revision = ret_reading->election.header.mod_revision;
        if (r == 0 && storage->config.read_only) {
                storage->header = ret_reading->header;
                /* Each commit writes the header, so there was none since. That revision may be compacted. */
                storage->header.holder.mod_revision = ret_reading->election.revision;
        }
        return r;
}

/* Return 1 if the table has a row, 0 if it has none, or -EIO or -ENOMEM. */
static int has_rows(struct etcd_storage *storage, enum row_type type) {
        CLEANUP(buf_deinit) struct buf from = { 0 }, end = { 0 };
        Etcd__RangeRequest request = ETCD__RANGE_REQUEST__INIT;
        const ProtobufCMessage *response;
        int r;

        etcd_key_append_number(&from, storage->config.prefix, type, 0);
        etcd_key_append_end(&end, storage->config.prefix, type);
        if (buf_failed(&from) || buf_failed(&end))
                return -ENOMEM;
        request.key = etcd_bytes(buf_slice(&from));
        request.range_end = etcd_bytes(buf_slice(&end));
        request.limit = 1;
        r = etcd_call(storage->client, ETCD_RANGE, &request.base, &response);
        if (r == 0)
                return ((const Etcd__RangeResponse *)response)->n_kvs > 0;
        etcd_storage_log_failure(storage, "cannot read");
        return r == -ENOMEM ? -ENOMEM : -EIO;
}

/*
 * Before a first header is created: refuse if there are rows, because no new header fits to them.
 * Returns as storage_etcd_win(); STORAGE_ETCD_LOST if another member has created the header.
 */
static int require_no_rows(struct etcd_storage *storage, struct storage_etcd_reading *reading) {
        int r = 0;

        for (size_t i = 0; i < N_ROW_TYPES && r == 0; i++)
                r = has_rows(storage, (enum row_type)i);
        if (r <= 0)
                return r;

        r = storage_etcd_observe(&storage->storage, reading);
        if (r < 0) {
                log_limited(&storage->log_limit, LOG_ERROR, "cannot lead: %s",
                            storage_etcd_reason(&storage->storage));
                return r;
        }
        if (reading->election.header.mod_revision > 0)
                return STORAGE_ETCD_LOST;
        log_limited(&storage->log_limit, LOG_ERROR,
                    "cannot lead: etcd has rows of a store, but not their header, the key \"%s\": restore a "
                    "backup of etcd, or remove all keys that begin with \"%s\"",
                    LOG_TEXT(buf_slice(&storage->header_key)), LOG_STRING(storage->config.prefix));
        return -EBADMSG;
}

/* 2. Transactions */

/*
 * Send the transaction once. Returns as transaction_send(). After TRANSACTION_DONE, *ret_revision
 * is that of the transaction. After TRANSACTION_REFUSED, *ret_present is the header, or zeros with
 * storage->header_fault.
 */
static int try_transaction(struct etcd_storage *storage, const struct transaction *transaction,
                           uint64_t *ret_revision, struct storage_etcd_reading *ret_present) {
        const Etcd__TxnResponse *response;
        const Etcd__KeyValue *guard;
        int64_t asked_ns = system_clock_boot_ns();
        int r;

        r = transaction_send(transaction, storage->client, &response, &guard);
        if (r == TRANSACTION_DONE)
                *ret_revision = (uint64_t)response->header->revision;
        if (r == TRANSACTION_REFUSED &&
            read_header(storage, guard, response->header, asked_ns, ret_present) < 0)
                *ret_present = (struct storage_etcd_reading){ 0 };
        return r;
}

static struct transaction_guard guard_of(const struct etcd_storage *storage) {
        return (struct transaction_guard){ .key = buf_slice(&storage->header_key),
                                           .revision = storage->header.holder.mod_revision,
                                           .value = buf_slice(&storage->header_value) };
}

/*
 * After -ENOSPC: compare without a change. Returns as try_transaction(); TRANSACTION_DONE: nothing
 * is stored.
 */
static int probe_header(struct etcd_storage *storage, struct storage_etcd_reading *ret_present) {
        CLEANUP(transaction_deinit) struct transaction probe = { 0 };
        struct transaction_guard guard = guard_of(storage);
        uint64_t revision;
        int r;

        buf_append_slice(&probe.bytes, guard.key);
        buf_append_string(&probe.bytes, "/none");
        transaction_end_key(&probe);
        transaction_end_remove(&probe);
        r = transaction_prepare(&probe, &guard);
        return r < 0 ? r : try_transaction(storage, &probe, &revision, ret_present);
}

/*
 * Send the transaction once. *is_open: whether an earlier attempt may be executed. Returns TRANSACTION_DONE,
 * TRANSACTION_REFUSED, -ENOSPC or -EIO, or -EAGAIN if the outcome is not known yet. A transaction that is
 * refused after an open attempt says nothing about that attempt. Logs the first failed attempt.
 */
static int attempt_transaction(struct etcd_storage *storage, bool *is_open, uint64_t *ret_revision,
                               struct storage_etcd_reading *ret_present) {
        int r = try_transaction(storage, &storage->transaction, ret_revision, ret_present);

        if (r >= 0)
                return r;
        if (!atomic_load(&storage->is_waiting))
                etcd_storage_log_failure(storage, "cannot commit");
        if (r == -ENOSPC && !*is_open) {
                r = probe_header(storage, ret_present);
                return r == TRANSACTION_DONE ? -ENOSPC : r < 0 ? -EAGAIN : r;
        }
        if (etcd_is_refused(r) && r != -ENOTCONN && !*is_open)
                return -EIO;
        *is_open |= !etcd_is_refused(r) && r != -ENOSPC;
        return -EAGAIN;
}

/*
 * Send the transaction until its outcome is known. Returns as attempt_transaction(), but not -EAGAIN. Logs
 * the end if this took more than one attempt.
 */
static int resolve_transaction(struct etcd_storage *storage, uint64_t *ret_revision,
                               struct storage_etcd_reading *ret_present) {
        bool is_open = false;
        int r;

        while ((r = attempt_transaction(storage, &is_open, ret_revision, ret_present)) == -EAGAIN) {
                atomic_store(&storage->is_waiting, true);
                etcd_storage_pause(storage);
        }
        if (atomic_exchange(&storage->is_waiting, false))
                log_limited(&storage->log_limit, LOG_INFO, "etcd %s has answered the commit",
                            LOG_STRING(etcd_client_endpoint(storage->client)));
        return r;
}

/*
 * Set the value that the transaction compares, that of the present header: a header has one
 * encoding.
 */
static void set_header_value(struct etcd_storage *storage) {
        struct buf *value = &storage->header_value;
        size_t key_length = storage->header_key.length;

        buf_reset(value);
        buf_append_slice(value, buf_slice(&storage->header_key));
        etcd_header_append(value, &storage->header);
        etcd_value_seal(value, 0, key_length);
        if (buf_failed(value))
                return;
        value->length -= key_length;
        memmove(value->data, value->data + key_length, value->length);
}

/*
 * Append the header, and build the transaction. Returns 0, -ENOMEM, or -EIO if it exceeds a limit
 * of etcd.
 */
static int build_transaction(struct etcd_storage *storage, struct etcd_header *header) {
        struct transaction *transaction = &storage->transaction;
        struct transaction_guard guard;
        size_t length;
        int r;

        set_header_value(storage);
        if (buf_failed(&storage->header_value))
                return -ENOMEM;
        guard = guard_of(storage);
        random_fill(header->transaction, sizeof(header->transaction));
        header->holder.sent_ns = system_clock_boot_ns();
        header->holder.wall_ms = system_clock_wall_ms();
        storage->begun_ns = system_clock_mono_ns();
        buf_append_slice(&transaction->bytes, buf_slice(&storage->header_key));
        transaction_end_key(transaction);
        etcd_header_append(&transaction->bytes, header);
        transaction_end_put(transaction);
        r = transaction_prepare(transaction, &guard);
        if (r < 0)
                return r;

        length = transaction_length(transaction) + REQUEST_HEADER_BYTES;
        if (transaction->n_operations <= storage->config.max_txn_ops &&
            length <= storage->config.max_request_bytes)
                return 0;
        log_limited(&storage->log_limit, LOG_ERROR,
                    "a commit exceeds the limits of etcd: operations=%zu bytes=%zu",
                    transaction->n_operations, length);
        return -EIO;
}

/*
 * Add the new header to the transaction, which may have operations already, and send it until its
 * outcome is known. Sets the id and the times of the header. If it is stored, it becomes
 * storage->header. Returns as storage_etcd_win(). *ret_present is set only with STORAGE_ETCD_LOST; it is
 * zeros with storage->header_fault.
 */
static int send_header(struct etcd_storage *storage, struct etcd_header *header,
                       struct storage_etcd_reading *ret_present) {
        struct storage_etcd_reading present;
        uint64_t revision = 0;
        int r;

        r = build_transaction(storage, header);
        if (r == 0)
                r = resolve_transaction(storage, &revision, &present);
        if (r < 0)
                return r;

        if (r == TRANSACTION_REFUSED) {
                if (memcmp(present.header.transaction, header->transaction, sizeof(header->transaction)) !=
                    0) {
                        *ret_present = present;
                        return STORAGE_ETCD_LOST;
                }
                revision = present.header.holder.mod_revision;
        }
        header->holder.mod_revision = revision;
        storage->header = *header;
        atomic_store(&storage->sent_ns, header->holder.sent_ns);
        return 0;
}

/* As send_header(), for a process that leads: to have lost is -ESTALE. */
static int transact_as_leader(struct etcd_storage *storage, struct etcd_header *header) {
        struct storage_etcd_reading present;
        int r;

        r = send_header(storage, header, &present);
        if (r != STORAGE_ETCD_LOST)
                return r;
        if (storage->header_fault[0])
                log_error("this member does not lead any more: %s", storage->header_fault);
        else
                log_error("this member does not lead any more: \"%s\" leads in term %" PRIu64,
                          LOG_STRING(present.header.holder.name), present.header.holder.term);
        return -ESTALE;
}

/*
 * The clock of deadlines has advanced since the last transaction. A standby continues from the reading
 * in the header that it received last, so it would not count this time.
 */
static void advance_reading(struct etcd_header *header) {
        struct timescale timescale = { header->state.reading_ms, header->holder.sent_ns };

        header->state.reading_ms =
                timescale_read(timescale, (struct now){ .mono_ns = system_clock_boot_ns() });
}

int etcd_storage_renew(struct etcd_storage *storage, bool gives_up) {
        struct etcd_header header = storage->header;

        advance_reading(&header);
        header.holder.has_given_up = gives_up;
        transaction_reset(&storage->transaction);
        return transact_as_leader(storage, &header);
}

int storage_etcd_win(struct storage *base, struct storage_etcd_reading *reading, int64_t shift_ms) {
        struct etcd_storage *storage = (struct etcd_storage *)base;
        uint64_t revision = reading->election.header.mod_revision;
        struct now now = { .wall_ms = system_clock_wall_ms_rounded_up() };
        struct storage_etcd_reading present;
        struct etcd_header header;
        int r;

        if (revision == 0) {
                r = require_no_rows(storage, reading);
                if (r != 0)
                        return r;
        }
        header = reading->header;
        if (revision == 0)
                state_header_init(&header.state);
        else if (header.cluster != reading->election.cluster || revision < storage->seen_revision)
                state_header_renew_instance(&header.state);
        header.state.shift_ms = shift_ms;
        header.state.reading_ms = timescale_resume(header.state.reading_ms, shift_ms, now).start_ms;
        header.cluster = reading->election.cluster;
        header.holder = storage->config.holder;
        header.holder.term = reading->header.holder.term + 1;

        storage->header = reading->header;
        transaction_reset(&storage->transaction);
        r = send_header(storage, &header, &present);
        if (r != STORAGE_ETCD_LOST)
                return r;
        if (storage->header_fault[0]) {
                log_limited(&storage->log_limit, LOG_ERROR, "cannot lead: %s", storage->header_fault);
                return -EBADMSG;
        }
        *reading = present;
        return STORAGE_ETCD_LOST;
}

int storage_etcd_give_up(struct storage *base) {
        return etcd_storage_renew((struct etcd_storage *)base, true);
}

/* 3. The storage */

/* To have won is to be the writer: storage_etcd_win() has created the header. */
static int etcd_storage_lead(struct storage *storage, const struct state_header *header) {
        (void)header;
        ((struct etcd_storage *)storage)->config.alive = NULL;
        return 0;
}

/*
 * After a commit: let etcd remove former values, so that it uses their space again. If this fails,
 * the next one removes them, too. -ERANGE: they were removed before.
 */
static void compact_if_due(struct etcd_storage *storage) {
        Etcd__CompactionRequest request = ETCD__COMPACTION_REQUEST__INIT;
        const ProtobufCMessage *response;
        int r;

        storage->n_bytes_written += transaction_length(&storage->transaction) + REVISION_BYTES;
        if (storage->n_bytes_written < COMPACTION_BYTES)
                return;
        storage->n_bytes_written = 0;
        request.revision = (int64_t)storage->header.holder.mod_revision;
        r = etcd_call(storage->client, ETCD_COMPACTION, &request.base, &response);
        if (r < 0 && r != -ERANGE)
                etcd_storage_log_failure(storage, "cannot compact");
}

static int etcd_storage_commit(struct storage *base, const struct change_set *change_set) {
        struct etcd_storage *storage = (struct etcd_storage *)base;
        struct etcd_header header = storage->header;
        int r;

        header.state = change_set->header;
        transaction_reset(&storage->transaction);
        etcd_write_changes(storage, change_set, &header);
        r = transact_as_leader(storage, &header);
        if (r < 0)
                return r;

        memcpy(storage->executions, storage->staged, sizeof(storage->executions));
        compact_if_due(storage);
        return 0;
}

static int64_t etcd_storage_renewal_ns(const struct storage *base) {
        const struct etcd_storage *storage = (const struct etcd_storage *)base;

        return election_renewal_ns(storage->config.holder.lease_ns, storage->begun_ns);
}

static int64_t etcd_storage_lease_left_ns(const struct storage *base) {
        const struct etcd_storage *storage = (const struct etcd_storage *)base;

        return election_lease_left_ns(storage->config.holder.lease_ns, atomic_load(&storage->sent_ns),
                                      system_clock_boot_ns());
}

static bool etcd_storage_is_waiting(const struct storage *base) {
        return atomic_load(&((const struct etcd_storage *)base)->is_waiting);
}

static struct storage *etcd_storage_close(struct storage *base) {
        struct etcd_storage *storage = (struct etcd_storage *)base;

        etcd_client_free(storage->client);
        transaction_deinit(&storage->transaction);
        buf_deinit(&storage->header_key);
        buf_deinit(&storage->header_value);
        free(storage);
        return NULL;
}

/*
 * Limits that leave room for one step of the engine. A step has ENGINE_STEP_CHANGES_MAX changes. The
 * smallest request, in KiB:
 *
 *     192   batch
 *     768   the largest entry, once stored and once in a notification
 *     128   its recipients
 *     128   expired keys: ENGINE_STEP_BYTES_MAX
 *     192   the last expired key, and its recipients
 *     128   replies, executions, the header
 */
static void set_limits(struct etcd_storage *storage) {
        const struct storage_etcd_config *config = &storage->config;

        ASSERT(config->max_txn_ops > OTHER_OPERATIONS + ENGINE_STEP_CHANGES_MAX);

        storage->operations = (struct storage_operations){
                .load = etcd_storage_load,
                .lead = etcd_storage_lead,
                .commit = etcd_storage_commit,
                .renewal_ns = etcd_storage_renewal_ns,
                .lease_left_ns = etcd_storage_lease_left_ns,
                .is_waiting = etcd_storage_is_waiting,
                .close = etcd_storage_close,
                .limits = { .entry_bytes = config->max_request_bytes / 4,
                            .n_rows = config->max_txn_ops - OTHER_OPERATIONS - ENGINE_STEP_CHANGES_MAX,
                            .n_bytes = config->max_request_bytes / 8 },
        };
        storage->storage.operations = &storage->operations;
}

int storage_etcd_open(struct storage **ret_storage, const struct storage_etcd_config *config) {
        struct etcd_storage *storage = calloc(1, sizeof(*storage));
        int r;

        if (!storage)
                return -ENOMEM;

        storage->config = *config;
        set_limits(storage);
        r = etcd_client_new(&storage->client, &config->etcd);
        if (r == 0) {
                etcd_key_append_header(&storage->header_key, config->prefix);
                r = buf_failed(&storage->header_key) ? -ENOMEM : 0;
        }
        if (r < 0) {
                etcd_storage_close(&storage->storage);
                return r;
        }

        *ret_storage = &storage->storage;
        return 0;
}
