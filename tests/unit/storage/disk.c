/* SPDX-License-Identifier: Apache-2.0 */

#include "unit/storage/disk.h"
#include "base/time_units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "engine/outcome.h"
#include "storage/sqlite/sqlite.h"
#include "support/result.h"

#define ROOM_NEEDED (256 << 20)

/* Loading */

static int take_header(void *userdata, const struct state_header *header) {
        struct disk *disk = userdata;

        cr_assert_eq(disk->n_loaded++, 0, "the header comes once, before the rows");
        disk->header = *header;
        disk->timescale = timescale_resume(disk->header.reading_ms, disk->header.shift_ms, disk->now);
        return 0;
}

static void take_entry(struct disk *disk, const struct entry_row *row) {
        struct setting setting = { .key = row->key, .value = row->value };

        if (row->expires_at_ms != EXPIRES_NEVER)
                setting.deadline_ns = timescale_to_deadline(disk->timescale, row->expires_at_ms);
        if (row->has_fence)
                setting.fence = row->fence;
        content_put_entry(&disk->loaded, &setting, row->version);
}

static void take_registration(struct disk *disk, const struct registration_row *row) {
        content_put_registration(&disk->loaded, row->client, row->key, &row->user, row->connection);
}

static void take_reply(struct disk *disk, const struct reply_row *row) {
        cr_assert_gt(row->number, disk->last_reply, "not in ascending order");
        disk->last_reply = row->number;
        content_put_reply(&disk->loaded, row->number, &row->digest, row->result,
                          timescale_to_deadline(disk->timescale, row->forget_at_ms));
}

static void take_notification(struct disk *disk, const struct pending_notification *row) {
        cr_assert_gt(row->sequence, disk->last_notification, "not in ascending order");
        disk->last_notification = row->sequence;
        content_put_notification(&disk->loaded, row);
}

static int take_row(void *userdata, const struct row *row) {
        struct disk *disk = userdata;
        size_t n_before = disk->loaded.n_lines;

        cr_assert_gt(disk->n_loaded++, 0, "the header comes before the rows");
        cr_assert_not(row->is_removed);
        switch (row->type) {
        case ROW_ENTRY:
                take_entry(disk, &row->entry);
                break;
        case ROW_REGISTRATION:
                take_registration(disk, &row->registration);
                break;
        case ROW_REPLY:
                take_reply(disk, &row->reply);
                break;
        case ROW_EXECUTION:
                content_put_execution(&disk->loaded, &row->execution);
                break;
        case ROW_NOTIFICATION:
                take_notification(disk, &row->notification);
                break;
        case N_ROW_TYPES:
                cr_assert_fail();
        }
        cr_assert_eq(disk->loaded.n_lines, n_before + 1, "a row is stored twice");
        return 0;
}

static sqlite3 *last_connection;

static int note_connection(sqlite3 *db, const char **ret_error, const struct sqlite3_api_routines *api) {
        (void)ret_error;
        (void)api;
        last_connection = db;
        return SQLITE_OK;
}

int disk_load(struct disk *disk) {
        struct storage_sink sink = { .header = take_header, .row = take_row, .userdata = disk };
        int r;

        cr_assert_null(disk->storage);
        content_reset(&disk->loaded);
        disk->n_loaded = disk->last_reply = disk->last_notification = 0;
        sqlite3_auto_extension((void (*)(void))note_connection);
        r = storage_sqlite_open(&disk->storage, disk->directory);
        if (r < 0) {
                disk->storage = NULL;
                return r;
        }
        disk->db = last_connection;

        r = storage_load(disk->storage, &sink);
        if (r < 0) {
                disk_close(disk);
                return r;
        }
        if (disk->n_loaded == 0) {
                state_header_init(&disk->header);
                disk->timescale = timescale_resume(0, 0, disk->now);
        }
        return 0;
}

int disk_open(struct disk *disk) {
        int r;

        r = disk_load(disk);
        if (r < 0)
                return r;
        r = storage_lead(disk->storage, &disk->header);
        disk->db = last_connection;
        if (r < 0)
                disk_close(disk);
        else if (r == 0 && disk->checkpoint_frames)
                sqlite3_wal_autocheckpoint(disk->db, disk->checkpoint_frames);
        return r;
}

void disk_close(struct disk *disk) {
        cr_assert_not(disk->is_stale);
        disk->storage = storage_close(disk->storage);
}

static void show(const char *name, const struct content *content) {
        fprintf(stderr, "%s:\n", name);
        for (size_t i = 0; i < content->n_lines; i++)
                fprintf(stderr, "  %s = %s\n", content->lines[i].name, content->lines[i].text);
}

/* Return the expected content that equals the loaded content. */
static const struct content *identify(const struct disk *disk, const struct content *one,
                                      const struct content *other) {
        if (content_equal(&disk->loaded, one))
                return one;
        if (other && content_equal(&disk->loaded, other))
                return other;

        show("expected", one);
        if (other)
                show("or", other);
        show("found", &disk->loaded);
        return NULL;
}

void disk_check(struct disk *disk) {
        cr_assert_eq(disk_open(disk), 0);
        cr_assert_not_null(identify(disk, &disk->committed, NULL), "%s has unexpected content",
                           disk->directory);
}

void disk_check_like(struct disk *disk, const struct disk *other, bool is_uncertain) {
        const struct content *content;

        cr_assert_eq(disk_open(disk), 0);
        content = identify(disk, &other->committed, is_uncertain ? &other->uncertain : NULL);
        cr_assert_not_null(content, "%s has unexpected content", disk->directory);

        content_copy(&disk->committed, content);
        content_copy(&disk->expected, content);
        disk_put(disk, "further", "value");
        COMMIT(disk);
        disk_close(disk);
        disk_check(disk);
}

/* The directory */

/* Use a file system in memory if it has room: these tests do not depend on the disk. */
static const char *parent_directory(void) {
        struct statvfs status;

        return statvfs("/dev/shm", &status) == 0 && access("/dev/shm", W_OK) == 0 &&
                               status.f_bavail * status.f_frsize > ROOM_NEEDED
                       ? "/dev/shm"
                       : "/tmp";
}

void disk_init(struct disk *disk) {
        *disk = (struct disk){
                .now = { .wall_ms = DISK_WALL_MS, .mono_ns = NS_PER_S },
                .clock = { DISK_WALL_MS, 0 },
        };
        snprintf(disk->directory, sizeof(disk->directory), "%s/statestored-test-XXXXXX", parent_directory());
        cr_assert_not_null(mkdtemp(disk->directory));
}

void disk_init_like(struct disk *disk, const struct disk *original) {
        disk_init(disk);
        disk->now = original->now;
        disk->clock = original->clock;
        disk->checkpoint_frames = original->checkpoint_frames;
        content_copy(&disk->committed, &original->committed);
        content_copy(&disk->expected, &original->committed);
}

static void reset_changes(struct disk *disk) {
        while (disk->n_copies > 0)
                free(disk->copies[--disk->n_copies]);
        disk->n_rows = disk->n_notifications = 0;
        disk->delivered = 0;
}

void disk_deinit(struct disk *disk) {
        struct dirent *name;
        DIR *names;

        disk->storage = storage_close(disk->storage);
        reset_changes(disk);
        free(disk->copies);
        content_deinit(&disk->committed);
        content_deinit(&disk->expected);
        content_deinit(&disk->uncertain);
        content_deinit(&disk->loaded);

        names = opendir(disk->directory);
        while (names && (name = readdir(names)))
                if (name->d_name[0] != '.')
                        unlinkat(dirfd(names), name->d_name, 0);
        if (names)
                closedir(names);
        rmdir(disk->directory);
}

void disk_copy(struct disk *disk, struct disk *copy) {
        static const char *const names[] = { "statestored.db", "statestored.db-journal",
                                             "statestored.db-wal", "acknowledged" };

        disk_init_like(copy, disk);
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                uint8_t *bytes;
                size_t length = disk_read(disk, names[i], &bytes);

                if (bytes)
                        disk_write(copy, names[i], bytes, length);
                free(bytes);
        }
}

/* The change set */

static struct slice copy(struct disk *disk, struct slice bytes) {
        uint8_t *copied;

        if (!bytes.data)
                return bytes;
        cr_assert_eq(array_reserve((void **)&disk->copies, &disk->copies_capacity, disk->n_copies + 1,
                                   sizeof(*disk->copies)),
                     0);
        copied = malloc(bytes.length + 1);
        cr_assert_not_null(copied);
        memcpy(copied, bytes.data, bytes.length);
        disk->copies[disk->n_copies++] = copied;
        return (struct slice){ copied, bytes.length };
}

/* Return the last row of this type, or NULL. */
static const struct row *last_change(const struct disk *disk, enum row_type type) {
        size_t n = disk->n_rows;

        while (n > 0)
                if (disk->rows[--n].type == type)
                        return &disk->rows[n];
        return NULL;
}

static bool have_same_names(const struct row *a, const struct row *b) {
        return a->type == ROW_ENTRY ? slice_equal(a->entry.key, b->entry.key)
                                    : slice_equal(a->registration.client, b->registration.client) &&
                                              slice_equal(a->registration.key, b->registration.key);
}

/* Return the row as it was added. */
static struct row *add_row(struct disk *disk, struct row row) {
        cr_assert_lt(disk->n_rows, DISK_ROWS_MAX);
        disk->rows[disk->n_rows] = row;
        return &disk->rows[disk->n_rows++];
}

/* Of an entry or a registration. */
static void add_named(struct disk *disk, struct row row) {
        for (size_t i = 0; i < disk->n_rows; i++)
                cr_assert_not(disk->rows[i].type == row.type && have_same_names(&disk->rows[i], &row),
                              "two rows of a key or a registration");
        if (row.type == ROW_ENTRY) {
                row.entry.key = copy(disk, row.entry.key);
                row.entry.value = copy(disk, row.entry.value);
                row.entry.fence.node = copy(disk, row.entry.fence.node);
        } else {
                row.registration.client = copy(disk, row.registration.client);
                row.registration.key = copy(disk, row.registration.key);
                row.registration.user = copy(disk, row.registration.user);
        }
        add_row(disk, row);
}

void disk_set_as(struct disk *disk, struct setting setting) {
        struct row row = { .type = ROW_ENTRY,
                           .entry = { .key = setting.key,
                                      .value = setting.value,
                                      .expires_at_ms = EXPIRES_NEVER,
                                      .has_fence = setting.fence.node.data,
                                      .fence = setting.fence } };

        disk->clock.counter++;
        row.entry.version = disk->clock;
        if (setting.deadline_ns)
                row.entry.expires_at_ms = timescale_from_deadline(disk->timescale, setting.deadline_ns);
        add_named(disk, row);

        if (!setting.fence.node.data)
                setting.fence = (struct hlc){ 0 };
        content_put_entry(&disk->expected, &setting, disk->clock);
}

void disk_set(struct disk *disk, struct slice key, struct slice value) {
        disk_set_as(disk, (struct setting){ .key = key, .value = value });
}

void disk_put(struct disk *disk, const char *key, const char *value) {
        disk_set(disk, slice_from_string(key), slice_from_string(value));
}

void disk_remove(struct disk *disk, struct slice key) {
        add_named(disk, (struct row){ .type = ROW_ENTRY, .is_removed = true, .entry = { .key = key } });
        content_remove_entry(&disk->expected, key);
}

void disk_watch(struct disk *disk, struct slice client, struct slice key, uint64_t connection) {
        struct slice user = connection ? client : (struct slice){ 0 };

        add_named(disk, (struct row){ .type = ROW_REGISTRATION,
                                      .registration = { .client = client,
                                                        .key = key,
                                                        .connection = connection,
                                                        .user = user } });
        content_put_registration(&disk->expected, client, key, &user, connection);
}

void disk_unwatch(struct disk *disk, struct slice client, struct slice key) {
        add_named(disk, (struct row){ .type = ROW_REGISTRATION,
                                      .is_removed = true,
                                      .registration = { .client = client, .key = key } });
        content_put_registration(&disk->expected, client, key, NULL, 0);
}

/* version.wall_ms 0: no version. */
static struct result make_result(enum outcome outcome, struct version version) {
        struct result result = result_extreme(outcome);

        result.version = version;
        result.has_version = version.wall_ms != 0;
        return result;
}

void disk_reply(struct disk *disk, uint64_t number, enum outcome outcome, struct version version,
                int64_t deadline_ns) {
        const struct row *last = last_change(disk, ROW_REPLY);
        struct reply_row *reply = &add_row(disk, (struct row){ .type = ROW_REPLY })->reply;

        cr_assert(!last || last->is_removed || last->reply.number < number, "not in ascending order");
        *reply = (struct reply_row){
                .number = number,
                .result = make_result(outcome, version),
                .forget_at_ms = timescale_from_deadline(disk->timescale, deadline_ns),
        };
        memcpy(reply->digest.bytes, &number, sizeof(number));
        memcpy(reply->digest.bytes + 8, &version, 8);
        content_put_reply(&disk->expected, number, &reply->digest, reply->result, deadline_ns);
}

void disk_execute(struct disk *disk, uint64_t number, struct version version) {
        const struct row row = { .type = ROW_EXECUTION,
                                 .execution = { .number = number,
                                                .result = make_result(OUTCOME_DELETED, version) } };

        content_put_execution(&disk->expected, &add_row(disk, row)->execution);
}

void disk_forget_reply(struct disk *disk, uint64_t number) {
        add_row(disk, (struct row){ .type = ROW_REPLY, .is_removed = true, .reply = { .number = number } });
        content_remove_replies(&disk->expected, number, number);
}

void disk_forget_replies(struct disk *disk, uint64_t number) {
        disk->forgotten_up_to = number;
        content_remove_replies(&disk->expected, 0, number);
}

void disk_notify_as(struct disk *disk, struct pending_notification notification) {
        notification.sequence = disk->header.notification_sequence + ++disk->n_notifications;
        notification.key = copy(disk, notification.key);
        notification.value = copy(disk, notification.value);
        notification.recipients = copy(disk, notification.recipients);
        add_row(disk, (struct row){ .type = ROW_NOTIFICATION, .notification = notification });
        content_put_notification(&disk->expected, &notification);
}

void disk_notify(struct disk *disk, struct slice recipients) {
        const struct row *row = last_change(disk, ROW_ENTRY);

        cr_assert_not_null(row);
        disk_notify_as(disk, (struct pending_notification){
                                     .version = row->is_removed ? disk->clock : row->entry.version,
                                     .key = row->entry.key,
                                     .value = row->entry.value,
                                     .recipients = recipients,
                             });
}

void disk_deliver(struct disk *disk, uint64_t delivered) {
        disk->delivered = delivered;
        content_remove_notifications(&disk->expected, delivered);
}

static struct state_header next_header(const struct disk *disk) {
        struct state_header header = disk->header;

        header.n_commits++;
        header.clock = disk->clock;
        header.notification_sequence += disk->n_notifications;
        header.reading_ms = timescale_read(disk->timescale, disk->now);
        header.shift_ms = timescale_shift(disk->timescale, disk->now);
        return header;
}

int disk_commit(struct disk *disk) {
        struct change_set change_set = {
                .header = next_header(disk),
                .rows = disk->rows,
                .n_rows = disk->n_rows,
                .forgotten_up_to = disk->forgotten_up_to,
                .acknowledged = disk->delivered,
        };
        int r;

        cr_assert_not(disk->is_stale);
        r = storage_commit(disk->storage, &change_set);
        reset_changes(disk);
        disk->is_stale = r == -ESTALE;
        if (r >= 0)
                disk->header = change_set.header;
        if (r == -ESTALE)
                content_copy(&disk->uncertain, &disk->expected);
        if (r >= 0)
                content_copy(&disk->committed, &disk->expected);
        else
                content_copy(&disk->expected, &disk->committed);
        return r;
}
