/* SPDX-License-Identifier: Apache-2.0 */

#include "state/change_set.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/array.h"
#include "engine/uthash_table.h"

/* The rows of one key, or of one registration. */
struct coalesced_row {
        UT_hash_handle hh; /* by identity */
        struct digest identity;
        const struct row *first, *last;
};

void change_buffer_deinit(struct change_buffer *buffer) {
        free(buffer->rows);
        free(buffer->entries);
        free(buffer->registrations);
        free(buffer->replies);
        *buffer = (struct change_buffer){ 0 };
}

/* Identifies the key, or the client and the key, of a row. */
static struct digest row_identity(const struct row *row, const struct hash_key *hash_key) {
        struct digest digests[2];

        if (row->type == ROW_ENTRY) {
                const struct entry *entry = row->entry.after ? row->entry.after : row->entry.before;
                const struct slice key = entry_key(entry);

                return hash_parts(hash_key, &key, 1, digests);
        }

        return hash_parts(hash_key,
                          (struct slice[]){ row->registration.registration->client_name,
                                            row->registration.registration->key_name },
                          2, digests);
}

/*
 * Coalesce the rows of entries and registrations in their order. There is room for each row. Returns
 * the number of coalesced rows, or -ENOMEM.
 */
static ssize_t coalesce_rows(struct change_buffer *buffer, const struct effects *effects,
                             const struct hash_key *hash_key) {
        struct coalesced_row *table = NULL, *found;
        ssize_t n = 0;

        for (size_t i = 0; i < effects->n_rows && n >= 0; i++) {
                const struct row *row = &effects->rows[i];
                struct digest identity;

                if (row->type == ROW_REPLY)
                        continue;
                identity = row_identity(row, hash_key);
                HASH_FIND(hh, table, &identity, sizeof(identity), found);
                if (found) {
                        found->last = row;
                        continue;
                }
                found = &buffer->rows[n++];
                *found = (struct coalesced_row){ .identity = identity, .first = row, .last = row };
                HASH_ADD(hh, table, identity, sizeof(identity), found);
                if (!found->hh.tbl)
                        n = -ENOMEM;
        }
        HASH_CLEAR(hh, table);
        return n;
}

static bool is_stored(const struct entry *entry) {
        return entry && entry->is_persistent;
}

struct entry_change entry_change_of(const struct entry *entry, int64_t deadline_ns,
                                    struct timescale timescale) {
        struct entry_change change = {
                .key = entry_key(entry),
                .value = entry_value(entry),
                .version = entry_version(entry),
                .expires_at_ms = EXPIRES_NEVER,
        };

        if (deadline_ns != DEADLINE_NEVER)
                change.expires_at_ms = timescale_from_deadline(timescale, deadline_ns);
        change.has_fence = entry_fence(entry, &change.fence);
        return change;
}

struct registration_change registration_change_of(const struct registration *registration) {
        return (struct registration_change){
                .client = registration->client_name,
                .key = registration->key_name,
                .connection = registration->connection,
                .user = registration->user,
        };
}

struct reply_change reply_change_of(const struct reply_row *row, struct timescale timescale) {
        return (struct reply_change){
                .number = row->number,
                .digest = row->digest,
                .result = row->result,
                .forget_at_ms = timescale_from_deadline(timescale, row->deadline_ns),
        };
}

static void append_entry(struct change_buffer *buffer, const struct coalesced_row *row,
                         struct timescale timescale) {
        const struct entry *before = row->first->entry.before, *after = row->last->entry.after;

        if (is_stored(after))
                buffer->entries[buffer->n_entries++] =
                        entry_change_of(after, row->last->entry.after_deadline_ns, timescale);
        else if (is_stored(before))
                buffer->entries[buffer->n_entries++] = (struct entry_change){ .key = entry_key(before) };
}

/*
 * Also if a registration was added and has ended within the rows: a former one may be stored, which was
 * removed without a row because it was made again.
 */
static void append_registration(struct change_buffer *buffer, const struct row *row) {
        struct registration_change change = registration_change_of(row->registration.registration);

        if (!row->registration.is_added)
                change = (struct registration_change){ .client = change.client,
                                                       .key = change.key,
                                                       .is_removed = true };
        buffer->registrations[buffer->n_registrations++] = change;
}

/* Make room for one change of each row in each array. Returns 0 or -ENOMEM. */
static int reserve_changes(struct change_buffer *buffer, size_t n_rows) {
        int r;

        r = array_reserve((void **)&buffer->rows, &buffer->rows_capacity, n_rows, sizeof(*buffer->rows));
        if (r == 0)
                r = array_reserve((void **)&buffer->entries, &buffer->entries_capacity, n_rows,
                                  sizeof(*buffer->entries));
        if (r == 0)
                r = array_reserve((void **)&buffer->registrations, &buffer->registrations_capacity, n_rows,
                                  sizeof(*buffer->registrations));
        if (r == 0)
                r = array_reserve((void **)&buffer->replies, &buffer->replies_capacity, n_rows,
                                  sizeof(*buffer->replies));
        return r;
}

int change_buffer_fill(struct change_buffer *buffer, const struct effects *effects,
                       const struct hash_key *hash_key, struct timescale timescale) {
        ssize_t n_coalesced;
        int r;

        buffer->n_entries = buffer->n_registrations = buffer->n_replies = 0;
        r = reserve_changes(buffer, effects->n_rows);
        if (r < 0)
                return r;
        n_coalesced = coalesce_rows(buffer, effects, hash_key);
        if (n_coalesced < 0)
                return (int)n_coalesced;

        for (ssize_t i = 0; i < n_coalesced; i++)
                if (buffer->rows[i].first->type == ROW_ENTRY)
                        append_entry(buffer, &buffer->rows[i], timescale);
                else
                        append_registration(buffer, buffer->rows[i].last);
        for (size_t i = 0; i < effects->n_rows; i++)
                if (effects->rows[i].type == ROW_REPLY)
                        buffer->replies[buffer->n_replies++] =
                                reply_change_of(&effects->rows[i].reply, timescale);
        return 0;
}
