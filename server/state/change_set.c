/* SPDX-License-Identifier: Apache-2.0 */

#include "state/change_set.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/array.h"
#include "base/assert.h"
#include "engine/uthash_table.h"

/* The changes of one key, or of one registration. */
struct coalesced_change {
        UT_hash_handle hh; /* by identity */
        struct digest identity;
        const struct change *first, *last;
};

void row_list_deinit(struct row_list *list) {
        free(list->rows);
        free(list->coalesced);
        *list = (struct row_list){ 0 };
}

void row_list_add(struct row_list *list, struct row row) {
        ASSERT(list->n_rows < list->capacity);
        list->rows[list->n_rows++] = row;
}

/* Identifies the key, or the client and the key, of a change. */
static struct digest change_identity(const struct change *change, const struct hash_key *hash_key) {
        struct digest digests[2];

        if (change->type == CHANGE_ENTRY) {
                const struct entry *entry = change->entry.after ? change->entry.after : change->entry.before;
                const struct slice key = entry_key(entry);

                return hash_parts(hash_key, &key, 1, digests);
        }

        return hash_parts(hash_key,
                          (struct slice[]){ change->registration.registration->client_id,
                                            change->registration.registration->key_name },
                          2, digests);
}

/*
 * Coalesce the changes of entries and registrations in their order. There is room for each change. Returns
 * the number of coalesced changes, or -ENOMEM.
 */
static ssize_t coalesce_changes(struct row_list *list, const struct effects *effects,
                                const struct hash_key *hash_key) {
        struct coalesced_change *table = NULL, *found;
        ssize_t n = 0;

        for (size_t i = 0; i < effects->n_changes && n >= 0; i++) {
                const struct change *change = &effects->changes[i];
                struct digest identity;

                if (change->type != CHANGE_ENTRY && change->type != CHANGE_REGISTRATION)
                        continue;
                identity = change_identity(change, hash_key);
                HASH_FIND(hh, table, &identity, sizeof(identity), found);
                if (found) {
                        found->last = change;
                        continue;
                }
                found = &list->coalesced[n++];
                *found = (struct coalesced_change){ .identity = identity, .first = change, .last = change };
                HASH_ADD(hh, table, identity, sizeof(identity), found);
                if (!found->hh.tbl)
                        n = -ENOMEM;
        }
        HASH_CLEAR(hh, table);
        return n;
}

struct row entry_row_of(const struct entry *entry, int64_t deadline_ns, struct timescale timescale) {
        struct row row = { .type = ROW_ENTRY,
                           .entry = { .key = entry_key(entry),
                                      .value = entry_value(entry),
                                      .version = entry_version(entry),
                                      .expires_at_ms = EXPIRES_NEVER } };

        if (deadline_ns != DEADLINE_NEVER)
                row.entry.expires_at_ms = timescale_from_deadline(timescale, deadline_ns);
        row.entry.has_fence = entry_fence(entry, &row.entry.fence);
        return row;
}

struct row registration_row_of(const struct registration *registration) {
        return (struct row){ .type = ROW_REGISTRATION,
                             .registration = { .client = registration->client_id,
                                               .key = registration->key_name,
                                               .connection = registration->connection,
                                               .user = registration->user } };
}

static void add_entry_row(struct row_list *list, const struct coalesced_change *change,
                          struct timescale timescale) {
        const struct entry *before = change->first->entry.before, *after = change->last->entry.after;

        if (after && after->is_persistent)
                row_list_add(list, entry_row_of(after, change->last->entry.after_deadline_ns, timescale));
        else if (before && before->is_persistent)
                row_list_add(list, (struct row){ .type = ROW_ENTRY,
                                                 .is_removed = true,
                                                 .entry = { .key = entry_key(before) } });
}

/*
 * Also if a registration was added and has ended within the changes: a former one may be stored, which was
 * removed without a change because it was made again.
 */
static void add_registration_row(struct row_list *list, const struct change *change) {
        struct row row = registration_row_of(change->registration.registration);

        if (!change->registration.is_added)
                row = (struct row){ .type = ROW_REGISTRATION,
                                    .is_removed = true,
                                    .registration = { .client = row.registration.client,
                                                      .key = row.registration.key } };
        row_list_add(list, row);
}

/* A row by content and a row by number. */
static void add_execution_rows(struct row_list *list, const struct change *change,
                               struct timescale timescale) {
        if (change->execution.reply_number > 0)
                row_list_add(list,
                             (struct row){ .type = ROW_REPLY,
                                           .reply = { .number = change->execution.reply_number,
                                                      .digest = change->execution.digest,
                                                      .result = change->execution.result,
                                                      .forget_at_ms = timescale_from_deadline(
                                                              timescale, change->execution.forget_ns) } });
        if (change->execution.number > 0)
                row_list_add(list, (struct row){ .type = ROW_EXECUTION,
                                                 .execution = { change->execution.number,
                                                                change->execution.result } });
}

int row_list_fill(struct row_list *list, const struct effects *effects, const struct engine *engine,
                  struct timescale timescale, size_t n_more) {
        ssize_t n_coalesced;

        list->n_rows = 0;
        if (array_reserve((void **)&list->coalesced, &list->coalesced_capacity, effects->n_changes,
                          sizeof(*list->coalesced)) < 0 ||
            array_reserve((void **)&list->rows, &list->capacity, 2 * effects->n_changes + n_more,
                          sizeof(*list->rows)) < 0)
                return -ENOMEM;
        n_coalesced = coalesce_changes(list, effects, &engine_config(engine)->table_key);
        if (n_coalesced < 0)
                return (int)n_coalesced;

        for (ssize_t i = 0; i < n_coalesced; i++)
                if (list->coalesced[i].first->type == CHANGE_ENTRY)
                        add_entry_row(list, &list->coalesced[i], timescale);
                else
                        add_registration_row(list, list->coalesced[i].last);
        for (size_t i = 0; i < effects->n_changes; i++)
                if (effects->changes[i].type == CHANGE_EXECUTION)
                        add_execution_rows(list, &effects->changes[i], timescale);
        return 0;
}
