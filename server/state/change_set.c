/* SPDX-License-Identifier: Apache-2.0 */

#include "state/change_set.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/array.h"
#include "engine/uthash_table.h"

/* The rows of one key, or of one registration. */
struct coalesced_row {
        UT_hash_handle hh;
        const struct row *first, *last;
};

void change_buffer_deinit(struct change_buffer *buffer) {
        free(buffer->rows);
        free(buffer->entries);
        free(buffer->registrations);
        free(buffer->replies);
        buf_deinit(&buffer->clients);
        buf_deinit(&buffer->keys);
        *buffer = (struct change_buffer){ 0 };
}

/* What all rows of one key, or of one registration, have in common. */
static struct slice row_name(const struct row *row) {
        const struct registration *registration;

        if (row->type == ROW_ENTRY)
                return entry_key(row->entry.after ? row->entry.after : row->entry.before);

        registration = row->registration.registration;
        return (struct slice){ (const uint8_t *)registration->topic, registration->topic_length };
}

/*
 * Coalesce the rows of this type in their order. There is room for each row. Returns the number of
 * coalesced rows, or -ENOMEM.
 */
static ssize_t coalesce(struct change_buffer *buffer, const struct effects *effects, enum row_type type,
                        const struct hash_key *hash_key) {
        struct coalesced_row *table = NULL, *found;
        ssize_t n = 0;

        for (size_t i = 0; i < effects->n_rows && n >= 0; i++) {
                const struct row *row = &effects->rows[i];
                struct slice name;
                unsigned int value;

                if (row->type != type)
                        continue;
                name = row_name(row);
                value = hash_value(hash_bytes(hash_key, name));
                HASH_FIND_BYHASHVALUE(hh, table, name.data, name.length, value, found);
                if (found) {
                        found->last = row;
                        continue;
                }
                found = &buffer->rows[n++];
                *found = (struct coalesced_row){ .first = row, .last = row };
                HASH_ADD_KEYPTR_BYHASHVALUE(hh, table, name.data, name.length, value, found);
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

struct reply_change reply_change_of(const struct reply_row *row, struct timescale timescale) {
        return (struct reply_change){
                .number = row->number,
                .digest = row->digest,
                .reply = row->reply,
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

static int fill_entries(struct change_buffer *buffer, const struct effects *effects,
                        const struct hash_key *hash_key, struct timescale timescale) {
        ssize_t n = coalesce(buffer, effects, ROW_ENTRY, hash_key);
        int r;

        if (n < 0)
                return (int)n;
        r = array_reserve((void **)&buffer->entries, &buffer->entries_capacity, (size_t)n,
                          sizeof(*buffer->entries));
        if (r < 0)
                return r;

        for (ssize_t i = 0; i < n; i++)
                append_entry(buffer, &buffer->rows[i], timescale);
        return 0;
}

/*
 * Append the names to the buffers, which may move: set only the lengths. set_names() lets the
 * changes borrow.
 */
static void append_registration(struct change_buffer *buffer, const struct row *row) {
        const struct registration *registration = row->registration.registration;
        size_t clients_length = buffer->clients.length, keys_length = buffer->keys.length;
        struct registration_change change = { .is_removed = !row->registration.is_added };

        registration_append_names(registration, &buffer->clients, &buffer->keys);
        change.client.length = buffer->clients.length - clients_length;
        change.key.length = buffer->keys.length - keys_length;
        if (!change.is_removed) {
                change.connection = registration->connection;
                change.user = registration->user;
        }
        buffer->registrations[buffer->n_registrations++] = change;
}

static void set_names(struct change_buffer *buffer) {
        const uint8_t *client = buffer->clients.data, *key = buffer->keys.data;

        for (size_t i = 0; i < buffer->n_registrations; i++) {
                struct registration_change *change = &buffer->registrations[i];

                change->client.data = client;
                change->key.data = key;
                client += change->client.length;
                key += change->key.length;
        }
}

static int fill_registrations(struct change_buffer *buffer, const struct effects *effects,
                              const struct hash_key *hash_key) {
        ssize_t n = coalesce(buffer, effects, ROW_REGISTRATION, hash_key);
        int r;

        if (n < 0)
                return (int)n;
        r = array_reserve((void **)&buffer->registrations, &buffer->registrations_capacity, (size_t)n,
                          sizeof(*buffer->registrations));
        if (r < 0)
                return r;

        buf_reset(&buffer->clients);
        buf_reset(&buffer->keys);
        /*
         * Also if a registration was added and has ended within the rows: a former one may be
         * stored, which was removed without a row because it was made again.
         */
        for (ssize_t i = 0; i < n; i++)
                append_registration(buffer, buffer->rows[i].last);
        if (buf_failed(&buffer->clients) || buf_failed(&buffer->keys))
                return -ENOMEM;
        set_names(buffer);
        return 0;
}

static int fill_replies(struct change_buffer *buffer, const struct effects *effects,
                        struct timescale timescale) {
        int r;

        r = array_reserve((void **)&buffer->replies, &buffer->replies_capacity, effects->n_rows,
                          sizeof(*buffer->replies));
        if (r < 0)
                return r;

        for (size_t i = 0; i < effects->n_rows; i++)
                if (effects->rows[i].type == ROW_REPLY)
                        buffer->replies[buffer->n_replies++] =
                                reply_change_of(&effects->rows[i].reply, timescale);
        return 0;
}

int change_buffer_fill(struct change_buffer *buffer, const struct effects *effects,
                       const struct hash_key *hash_key, struct timescale timescale) {
        int r;

        buffer->n_entries = buffer->n_registrations = buffer->n_replies = 0;
        r = array_reserve((void **)&buffer->rows, &buffer->rows_capacity, effects->n_rows,
                          sizeof(*buffer->rows));
        if (r == 0)
                r = fill_entries(buffer, effects, hash_key, timescale);
        if (r == 0)
                r = fill_registrations(buffer, effects, hash_key);
        return r == 0 ? fill_replies(buffer, effects, timescale) : r;
}
