/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/disk.h"
#include "engine/internal.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"

void disk_remove_notifications(struct disk *disk, uint64_t delivered) {
        size_t n = 0;

        while (n < disk->n_notifications && disk->notifications[n].sequence <= delivered)
                pending_notification_deinit(&disk->notifications[n++]);
        disk->n_notifications -= n;
        for (size_t i = 0; i < disk->n_notifications; i++)
                disk->notifications[i] = disk->notifications[i + n];
}

void disk_deinit(struct disk *disk) {
        for (size_t i = 0; i < disk->n_entries; i++)
                entry_unref(disk->entries[i].entry);
        for (size_t i = 0; i < disk->n_registrations; i++)
                registration_unref(disk->registrations[i]);
        free(disk->entries);
        free(disk->registrations);
        disk_remove_notifications(disk, UINT64_MAX);
        free(disk->notifications);
        free(disk->replies);
        *disk = (struct disk){ 0 };
}

/* 1. Rows */

static struct disk_entry *find(const struct disk *disk, struct slice key) {
        for (size_t i = 0; i < disk->n_entries; i++)
                if (slice_equal(entry_key(disk->entries[i].entry), key))
                        return &disk->entries[i];
        return NULL;
}

/* Return whether the row replaces the stored entry. */
static bool is_expected(const struct disk_entry *stored, const struct row *row) {
        const struct entry *before = row->entry.before;

        if (!before || !before->is_persistent)
                return !stored;
        return stored && stored->deadline_ns == row->entry.before_deadline_ns &&
               stored->entry->version_wall_ms == before->version_wall_ms &&
               stored->entry->version_counter == before->version_counter &&
               slice_equal(entry_value(stored->entry), entry_value(before));
}

static void store_entry(struct disk *disk, const struct row *row) {
        struct entry *before = row->entry.before, *after = row->entry.after;
        struct disk_entry *stored = find(disk, entry_key(after ? after : before));

        ASSERT(is_expected(stored, row));
        if (stored) {
                entry_unref(stored->entry);
                *stored = disk->entries[--disk->n_entries];
        }
        if (!after || !after->is_persistent)
                return;

        ASSERT(array_reserve((void **)&disk->entries, &disk->entries_capacity, disk->n_entries + 1,
                             sizeof(*disk->entries)) == 0);
        disk->entries[disk->n_entries++] =
                (struct disk_entry){ entry_ref(after), row->entry.after_deadline_ns };
}

/* The topic names client and key. */
static struct registration **find_registration(const struct disk *disk,
                                               const struct registration *registration) {
        for (size_t i = 0; i < disk->n_registrations; i++)
                if (strcmp(disk->registrations[i]->topic, registration->topic) == 0)
                        return &disk->registrations[i];
        return NULL;
}

static void store_registration(struct disk *disk, const struct row *row) {
        struct registration *registration = row->registration.registration;
        struct registration **stored = find_registration(disk, registration);

        ASSERT(!stored == row->registration.is_added);
        if (stored) {
                registration_unref(*stored);
                *stored = disk->registrations[--disk->n_registrations];
                return;
        }
        ASSERT(array_reserve((void **)&disk->registrations, &disk->registrations_capacity,
                             disk->n_registrations + 1, sizeof(*disk->registrations)) == 0);
        disk->registrations[disk->n_registrations++] = registration_ref(registration);
}

static void store_reply(struct disk *disk, const struct row *row) {
        while (disk->n_replies <= row->reply.number) {
                ASSERT(array_reserve((void **)&disk->replies, &disk->replies_capacity, disk->n_replies + 1,
                                     sizeof(*disk->replies)) == 0);
                disk->replies[disk->n_replies++] = (struct disk_reply){ 0 };
        }
        disk->replies[row->reply.number] = (struct disk_reply){
                .is_used = true,
                .digest = row->reply.digest,
                .reply = row->reply.reply,
                .deadline_ns = row->reply.deadline_ns,
        };
}

static void remove_forgotten(struct disk *disk, const struct storage_batch *batch) {
        for (size_t i = 0; i < disk->n_replies && i <= batch->forgotten_reply; i++) {
                ASSERT(!disk->replies[i].is_used || disk->replies[i].deadline_ns <= batch->now.mono_ns);
                disk->replies[i].is_used = false;
        }
}

static void store_notifications(struct disk *disk, const struct storage_batch *batch) {
        disk_remove_notifications(disk, batch->delivered);
        for (size_t i = 0; i < batch->n_notifications; i++) {
                const struct pending_notification *notification = &batch->notifications[i];

                ASSERT(notification->sequence > disk->header.notification_sequence);
                disk->header.notification_sequence = notification->sequence;
                ASSERT(array_reserve((void **)&disk->notifications, &disk->notifications_capacity,
                                     disk->n_notifications + 1, sizeof(*disk->notifications)) == 0);
                ASSERT(pending_notification_copy(&disk->notifications[disk->n_notifications++],
                                                 notification) == 0);
        }
}

void disk_commit(struct disk *disk, const struct storage_batch *batch) {
        ASSERT(version_compare(disk->header.clock, batch->clock) <= 0);
        disk->header.clock = batch->clock;
        disk->header.disconnect_epoch = batch->disconnect_epoch;
        disk->header.key_states = batch->key_states;
        store_notifications(disk, batch);
        remove_forgotten(disk, batch);

        for (size_t i = 0; i < batch->n_rows; i++) {
                switch (batch->rows[i].type) {
                case ROW_ENTRY:
                        store_entry(disk, &batch->rows[i]);
                        break;
                case ROW_REGISTRATION:
                        store_registration(disk, &batch->rows[i]);
                        break;
                case ROW_REPLY:
                        store_reply(disk, &batch->rows[i]);
                        break;
                case ROW_REPLY_DROPPED:
                        if (batch->rows[i].reply.number < disk->n_replies)
                                disk->replies[batch->rows[i].reply.number].is_used = false;
                        break;
                }
        }
}

/* 2. Loading */

static int load_registration(const struct storage_sink *sink, const struct registration *registration) {
        CLEANUP(buf_deinit) struct buf client = { 0 }, key = { 0 };

        registration_append_names(registration, &client, &key);
        return sink->registration(sink->userdata, buf_slice(&client), registration->user, buf_slice(&key),
                                  registration->connection);
}

static int load_entry(const struct storage_sink *sink, const struct disk_entry *stored) {
        struct hlc fence;
        struct entry_fields fields = { .key = entry_key(stored->entry),
                                       .value = entry_value(stored->entry),
                                       .version = entry_version(stored->entry),
                                       .deadline_ns = stored->deadline_ns,
                                       .fence = entry_fence(stored->entry, &fence) ? &fence : NULL };

        return sink->entry(sink->userdata, &fields);
}

static int load(struct storage *storage, const struct storage_sink *sink, struct now now) {
        struct disk *disk = (struct disk *)storage;
        int r;

        r = sink->header(sink->userdata, &disk->header);
        for (size_t i = 0; i < disk->n_entries && r == 0; i++)
                r = load_entry(sink, &disk->entries[i]);
        for (size_t i = 0; i < disk->n_registrations && r == 0; i++)
                r = load_registration(sink, disk->registrations[i]);
        for (size_t i = 0; i < disk->n_replies && r == 0; i++) {
                const struct disk_reply *stored = &disk->replies[i];

                if (stored->is_used && stored->deadline_ns > now.mono_ns)
                        r = sink->reply(sink->userdata, i, &stored->digest, stored->reply,
                                        stored->deadline_ns);
        }
        for (size_t i = 0; i < disk->n_notifications && r == 0; i++)
                r = sink->notification(sink->userdata, &disk->notifications[i]);
        return r;
}

static int commit(struct storage *storage, const struct storage_batch *batch) {
        struct disk *disk = (struct disk *)storage;

        return disk->on_commit(disk->userdata, batch);
}

static bool needs_commit(const struct storage *storage, struct now now) {
        (void)storage;
        (void)now;
        return false;
}

/* The disk outlives the process. */
static struct storage *close_storage(struct storage *storage) {
        (void)storage;
        return NULL;
}

void disk_init(struct disk *disk, uint64_t seed) {
        static const struct storage_operations operations = {
                .load = load, .commit = commit, .needs_commit = needs_commit, .close = close_storage
        };

        *disk = (struct disk){
                .storage = { .operations = &operations },
                .header = { .instance_id = "instance-1" },
        };
        memcpy(&disk->header.digest_key, &seed, sizeof(seed));
}

/* 3. Comparing */

static bool is_same_fence(const struct entry *a, const struct entry *b) {
        struct hlc fence_a, fence_b;
        bool has_a = entry_fence(a, &fence_a), has_b = entry_fence(b, &fence_b);

        return has_a == has_b && (!has_a || hlc_compare(fence_a, fence_b) == 0);
}

static void compare_entries(const struct disk *disk, const struct keyspace *keyspace) {
        for (size_t i = 0; i < disk->n_entries; i++) {
                const struct disk_entry *stored = &disk->entries[i];
                struct slice key = entry_key(stored->entry);
                struct entry *entry = keyspace_find(keyspace, keyspace_hash(keyspace, key), key);

                ASSERT(entry && entry->is_persistent);
                ASSERT(slice_equal(entry_value(stored->entry), entry_value(entry)));
                ASSERT(stored->entry->version_wall_ms == entry->version_wall_ms &&
                       stored->entry->version_counter == entry->version_counter);
                ASSERT(stored->deadline_ns == keyspace_deadline(keyspace, entry));
                ASSERT(is_same_fence(stored->entry, entry));
        }
}

static void compare_registrations(const struct disk *disk, const struct registrations *table) {
        struct registration_cursor cursor = { 0 };
        struct registration *registration;
        size_t n_stored = 0;

        while ((registration = registrations_each(table, &cursor))) {
                struct registration **stored = find_registration(disk, registration);

                ASSERT(stored && (*stored)->connection == registration->connection);
                ASSERT(slice_equal((*stored)->user, registration->user));
                n_stored++;
        }
        ASSERT(n_stored == disk->n_registrations);
}

static void compare_replies(const struct disk *disk, const struct dedup *dedup, int64_t now_ns) {
        size_t n_stored = 0, n_remembered = 0;

        for (size_t i = 0; i < disk->n_replies; i++) {
                const struct disk_reply *stored = &disk->replies[i];
                const struct dedup_record *record;

                if (!stored->is_used || stored->deadline_ns <= now_ns)
                        continue;
                n_stored++;
                record = dedup_find(dedup, &stored->digest);
                ASSERT(record && !dedup_is_expired(record, now_ns));
                ASSERT(record->number == i);
                ASSERT(record->reply.outcome == stored->reply.outcome &&
                       record->reply.has_version == stored->reply.has_version &&
                       record->reply.version_wall_ms == stored->reply.version_wall_ms &&
                       record->reply.version_counter == stored->reply.version_counter);
        }
        for (size_t i = 0; i < DEDUP_N_SHARDS; i++)
                for (const struct dedup_record *record = dedup->shards[i]; record; record = record->hh.next)
                        n_remembered += !dedup_is_expired(record, now_ns);
        ASSERT(n_stored == n_remembered);
}

void disk_compare(const struct disk *disk, const struct engine *engine, size_t n_persistent,
                  struct now now) {
        ASSERT(disk->n_entries == n_persistent);
        compare_entries(disk, &engine->keyspace);
        compare_registrations(disk, &engine->registrations);
        compare_replies(disk, &engine->dedup, now.mono_ns);
}
