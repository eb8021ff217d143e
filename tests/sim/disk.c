/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/disk.h"

#include "base/assert.h"
#include "base/time_units.h"
#include "engine/internal.h"
#include "support/follow.h"

/* A restart may round the deadline of a reply up to the next second. */
#define REPLY_TOLERANCE_NS (2 * NS_PER_S)

/* 1. Commits */

void disk_commit(struct disk *disk, const struct change_set *change_set, struct now now) {
        const struct state_header *header = &disk->state->header;

        ASSERT(change_set->header.n_commits > header->n_commits);
        ASSERT(version_compare(header->clock, change_set->header.clock) <= 0);
        for (size_t i = 0; i < change_set->n_rows; i++) {
                const struct row *row = &change_set->rows[i];

                ASSERT(row->type != ROW_ENTRY || !row->is_removed ||
                       engine_find_entry(disk->state->engine, row->entry.key));
        }
        ASSERT(follow_commit(disk->state, change_set, now) == 0);
        disk->stored_at = now;
}

void disk_store_clock(struct disk *disk, struct now now) {
        struct state_header *header = &disk->state->header;

        header->reading_ms += (now.mono_ns - disk->stored_at.mono_ns) / NS_PER_MS;
        header->shift_ms = now.wall_ms - header->reading_ms;
        disk->stored_at = now;
}

/* 2. Loading */

static int load_entries(const struct disk *disk, const struct storage_sink *sink) {
        const struct keyspace *keyspace = engine_keyspace(disk->state->engine);
        struct keyspace_cursor cursor = { 0 };
        struct entry *entry;
        int r = 0;

        while (r == 0 && (entry = keyspace_each(keyspace, &cursor))) {
                struct row row =
                        entry_row_of(entry, keyspace_deadline(keyspace, entry), disk->state->timescale);

                r = sink->row(sink->userdata, &row);
        }
        return r;
}

static int load_registrations(const struct disk *disk, const struct storage_sink *sink) {
        struct registration_cursor cursor = { 0 };
        const struct registration *registration;
        int r = 0;

        while (r == 0 && (registration = registrations_each(&disk->state->engine->registrations, &cursor))) {
                struct row row = registration_row_of(registration);

                r = sink->row(sink->userdata, &row);
        }
        return r;
}

static int load_replies(const struct disk *disk, const struct storage_sink *sink) {
        const struct remembered_reply *reply = disk->state->engine->dedup.oldest;
        int r = 0;

        for (; reply && r == 0; reply = reply->next) {
                struct row row = follow_reply_row(reply, disk->state->timescale);

                r = sink->row(sink->userdata, &row);
        }
        return r;
}

static int load_executions(const struct disk *disk, const struct storage_sink *sink) {
        const struct executed_request *places = disk->state->engine->dedup.executions;
        int r = 0;

        for (size_t place = 0; place < EXECUTIONS_PLACES && r == 0; place++) {
                struct row row = { .type = ROW_EXECUTION, .execution = places[place] };

                if (row.execution.number > 0)
                        r = sink->row(sink->userdata, &row);
        }
        return r;
}

static int load_notifications(const struct disk *disk, const struct storage_sink *sink) {
        const struct pending_notification *next;
        uint64_t sequence = 0;
        int r = 0;

        while (r == 0 && (next = notification_queue_after(&disk->state->notifications, sequence))) {
                struct row row = { .type = ROW_NOTIFICATION, .notification = *next };

                sequence = next->sequence;
                r = sink->row(sink->userdata, &row);
        }
        return r;
}

static int load(struct storage *storage, const struct storage_sink *sink) {
        const struct disk *disk = (struct disk *)storage;
        int r;

        r = sink->header(sink->userdata, &disk->state->header);
        if (r == 0)
                r = load_entries(disk, sink);
        if (r == 0)
                r = load_registrations(disk, sink);
        if (r == 0)
                r = load_replies(disk, sink);
        if (r == 0)
                r = load_executions(disk, sink);
        return r == 0 ? load_notifications(disk, sink) : r;
}

static int commit(struct storage *storage, const struct change_set *change_set) {
        struct disk *disk = (struct disk *)storage;

        return disk->on_commit(disk->userdata, change_set);
}

/* The disk outlives the process. */
static struct storage *close_storage(struct storage *storage) {
        (void)storage;
        return NULL;
}

void disk_init(struct disk *disk, uint64_t seed, struct now now) {
        static const struct storage_operations operations = {
                .load = load,
                .commit = commit,
                .close = close_storage,
                .limits = STORAGE_NO_LIMITS,
        };
        const struct engine_config config = { .node_id = SLICE_LITERAL("StateStore"),
                                              .limits = { .max_remembered_bytes = 1 << 30 } };
        struct state_header header = { .instance_id = "instance-1" };

        memcpy(&header.digest_key, &seed, sizeof(seed));
        memcpy(&header.table_key, &seed, sizeof(seed));
        memcpy(&header.token_key, &seed, sizeof(seed));
        header.reading_ms = now.wall_ms;
        *disk = (struct disk){ .storage = { .operations = &operations }, .stored_at = now };
        ASSERT(state_new(&disk->state, &config, &header, now) == 0);
}

void disk_deinit(struct disk *disk) {
        disk->state = state_free(disk->state);
}

/* 3. Comparing */

static bool is_same_fence(const struct entry *a, const struct entry *b) {
        struct hlc fence_a, fence_b;
        bool has_a = entry_fence(a, &fence_a), has_b = entry_fence(b, &fence_b);

        return has_a == has_b && (!has_a || hlc_compare(fence_a, fence_b) == 0);
}

/* In milliseconds by the timescale of the state. */
static int64_t expires_at_ms(const struct state *state, struct entry *entry) {
        int64_t deadline_ns = keyspace_deadline(engine_keyspace(state->engine), entry);

        return deadline_ns == DEADLINE_NEVER ? EXPIRES_NEVER
                                             : timescale_from_deadline(state->timescale, deadline_ns);
}

static void compare_entries(const struct state *stored, const struct state *state) {
        struct keyspace_cursor cursor = { 0 };
        struct entry *copy;

        while ((copy = keyspace_each(engine_keyspace(stored->engine), &cursor))) {
                struct entry *entry = engine_find_entry(state->engine, entry_key(copy));

                ASSERT(entry && entry->is_persistent);
                ASSERT(slice_equal(entry_value(copy), entry_value(entry)));
                ASSERT(version_compare(entry_version(copy), entry_version(entry)) == 0);
                ASSERT(expires_at_ms(stored, copy) == expires_at_ms(state, entry));
                ASSERT(is_same_fence(copy, entry));
        }
}

static void compare_registrations(const struct registrations *stored, const struct registrations *present) {
        struct registration_cursor cursor = { 0 };
        const struct registration *registration;
        size_t n = 0;

        while ((registration = registrations_each(present, &cursor))) {
                const struct registration *copy =
                        registrations_find(stored, registrations_names(stored, registration->client_id,
                                                                       registration->key_name));

                ASSERT(copy && copy->connection == registration->connection);
                ASSERT(slice_equal(copy->user, registration->user));
                n++;
        }
        /* Those whose client has ended may still be stored: ticks remove them. */
        ASSERT(n <= stored->n_registrations && stored->n_registrations <= present->n_registrations);
}

static bool is_equal_reply(const struct remembered_reply *a, const struct remembered_reply *b) {
        return a->number == b->number && a->result.outcome == b->result.outcome &&
               a->result.has_version == b->result.has_version &&
               version_compare(a->result.version, b->result.version) == 0;
}

/* Each reply of `some` that does not expire soon must be one of `all`. */
static void compare_replies(const struct dedup *some, const struct dedup *all, int64_t now_ns) {
        for (const struct remembered_reply *reply = some->oldest; reply; reply = reply->next) {
                const struct remembered_reply *other = dedup_find(all, &reply->digest);

                ASSERT(dedup_is_expired(reply, now_ns + REPLY_TOLERANCE_NS) ||
                       (other && is_equal_reply(reply, other)));
        }
}

static void compare_executions(const struct dedup *a, const struct dedup *b) {
        for (size_t place = 0; place < EXECUTIONS_PLACES; place++)
                ASSERT(a->executions[place].number == b->executions[place].number);
}

static void compare_notifications(const struct state *stored, const struct state *state) {
        const struct pending_notification *a, *b;
        uint64_t sequence = state->acknowledged;

        while ((a = notification_queue_after(&state->notifications, sequence))) {
                b = notification_queue_after(&stored->notifications, sequence);
                ASSERT(b && a->sequence == b->sequence && version_compare(a->version, b->version) == 0);
                ASSERT(slice_equal(a->key, b->key) && slice_equal(a->recipients, b->recipients));
                ASSERT(!a->value.data == !b->value.data && slice_equal(a->value, b->value));
                sequence = a->sequence;
        }
        ASSERT(!notification_queue_after(&stored->notifications, sequence));
}

void disk_compare(const struct disk *disk, const struct state *state, size_t n_persistent, struct now now) {
        const struct state *stored = disk->state;

        ASSERT(stored->engine->keyspace.n_keys == n_persistent);
        compare_entries(stored, state);
        compare_registrations(&stored->engine->registrations, &state->engine->registrations);
        compare_replies(&stored->engine->dedup, &state->engine->dedup, now.mono_ns);
        compare_replies(&state->engine->dedup, &stored->engine->dedup, now.mono_ns);
        if (stored->served_broker_run == state->served_broker_run)
                compare_executions(&stored->engine->dedup, &state->engine->dedup);
        compare_notifications(stored, state);
}
