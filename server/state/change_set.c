/* SPDX-License-Identifier: Apache-2.0 */

#include "state/change_set.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/time_units.h"
#include "engine/uthash_table.h"

/* The rows of one key, or of one registration. */
struct coalesced_row {
        UT_hash_handle hh; /* by identity */
        struct digest identity;
        const struct row *first, *last;
};

void change_list_deinit(struct change_list *list) {
        free(list->changes);
        free(list->rows);
        *list = (struct change_list){ 0 };
}

void change_list_add(struct change_list *list, struct change change) {
        ASSERT(list->n_changes < list->capacity);
        list->changes[list->n_changes++] = change;
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
                          (struct slice[]){ row->registration.registration->client_id,
                                            row->registration.registration->key_name },
                          2, digests);
}

/*
 * Coalesce the rows of entries and registrations in their order. There is room for each row. Returns
 * the number of coalesced rows, or -ENOMEM.
 */
static ssize_t coalesce_rows(struct change_list *list, const struct effects *effects,
                             const struct hash_key *hash_key) {
        struct coalesced_row *table = NULL, *found;
        ssize_t n = 0;

        for (size_t i = 0; i < effects->n_rows && n >= 0; i++) {
                const struct row *row = &effects->rows[i];
                struct digest identity;

                if (row->type != ROW_ENTRY && row->type != ROW_REGISTRATION)
                        continue;
                identity = row_identity(row, hash_key);
                HASH_FIND(hh, table, &identity, sizeof(identity), found);
                if (found) {
                        found->last = row;
                        continue;
                }
                found = &list->rows[n++];
                *found = (struct coalesced_row){ .identity = identity, .first = row, .last = row };
                HASH_ADD(hh, table, identity, sizeof(identity), found);
                if (!found->hh.tbl)
                        n = -ENOMEM;
        }
        HASH_CLEAR(hh, table);
        return n;
}

struct change entry_change_of(const struct entry *entry, int64_t deadline_ns, struct timescale timescale) {
        struct change change = { .type = CHANGE_ENTRY,
                                 .entry = { .key = entry_key(entry),
                                            .value = entry_value(entry),
                                            .version = entry_version(entry),
                                            .expires_at_ms = EXPIRES_NEVER } };

        if (deadline_ns != DEADLINE_NEVER)
                change.entry.expires_at_ms = timescale_from_deadline(timescale, deadline_ns);
        change.entry.has_fence = entry_fence(entry, &change.entry.fence);
        return change;
}

struct change registration_change_of(const struct registration *registration) {
        return (struct change){ .type = CHANGE_REGISTRATION,
                                .registration = { .client = registration->client_id,
                                                  .key = registration->key_name,
                                                  .connection = registration->connection,
                                                  .user = registration->user } };
}

struct change reply_change_of(const struct remembered_reply *reply, struct timescale timescale) {
        return (struct change){ .type = CHANGE_REPLY,
                                .reply = { .number = reply->number,
                                           .digest = reply->digest,
                                           .result = reply->result,
                                           .forget_at_ms = timescale_from_deadline(
                                                   timescale, reply->deadline_s * NS_PER_S) } };
}

static void add_entry(struct change_list *list, const struct coalesced_row *row,
                      struct timescale timescale) {
        const struct entry *before = row->first->entry.before, *after = row->last->entry.after;

        if (after && after->is_persistent)
                change_list_add(list, entry_change_of(after, row->last->entry.after_deadline_ns, timescale));
        else if (before && before->is_persistent)
                change_list_add(list, (struct change){ .type = CHANGE_ENTRY,
                                                       .is_removed = true,
                                                       .entry = { .key = entry_key(before) } });
}

/*
 * Also if a registration was added and has ended within the rows: a former one may be stored, which was
 * removed without a row because it was made again.
 */
static void add_registration(struct change_list *list, const struct row *row) {
        struct change change = registration_change_of(row->registration.registration);

        if (!row->registration.is_added)
                change = (struct change){ .type = CHANGE_REGISTRATION,
                                          .is_removed = true,
                                          .registration = { .client = change.registration.client,
                                                            .key = change.registration.key } };
        change_list_add(list, change);
}

/* Nothing if the reply was dropped after that. */
static void add_reply(struct change_list *list, const struct row *row, const struct engine *engine,
                      struct timescale timescale) {
        const struct remembered_reply *reply = engine_find_reply(engine, &row->reply.digest);

        if (reply && reply->number == row->reply.number)
                change_list_add(list, reply_change_of(reply, timescale));
}

int change_list_fill(struct change_list *list, const struct effects *effects, const struct engine *engine,
                     struct timescale timescale, size_t n_more) {
        ssize_t n_coalesced;

        list->n_changes = 0;
        if (array_reserve((void **)&list->rows, &list->rows_capacity, effects->n_rows, sizeof(*list->rows)) <
                    0 ||
            array_reserve((void **)&list->changes, &list->capacity, effects->n_rows + n_more,
                          sizeof(*list->changes)) < 0)
                return -ENOMEM;
        n_coalesced = coalesce_rows(list, effects, &engine_config(engine)->table_key);
        if (n_coalesced < 0)
                return (int)n_coalesced;

        for (ssize_t i = 0; i < n_coalesced; i++)
                if (list->rows[i].first->type == ROW_ENTRY)
                        add_entry(list, &list->rows[i], timescale);
                else
                        add_registration(list, list->rows[i].last);
        for (size_t i = 0; i < effects->n_rows; i++) {
                const struct row *row = &effects->rows[i];

                if (row->type == ROW_REPLY)
                        add_reply(list, row, engine, timescale);
                else if (row->type == ROW_EXECUTION)
                        change_list_add(list, (struct change){ .type = CHANGE_EXECUTION,
                                                               .execution = row->execution.after });
        }
        return 0;
}
