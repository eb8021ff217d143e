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
#include "unit/support/secrets.h"

#define ROOM_NEEDED (256 << 20)

/* Loading */

static int take_header(void *userdata, const struct storage_header *header) {
        struct disk *disk = userdata;

        disk->header = *header;
        return 0;
}

static int take_entry(void *userdata, const struct entry_fields *fields) {
        struct disk *disk = userdata;
        struct setting setting = {
                .key = fields->key,
                .value = fields->value,
                .deadline_ns = fields->deadline_ns == DEADLINE_NEVER ? 0 : fields->deadline_ns,
                .fence = fields->fence ? *fields->fence : (struct hlc){ 0 },
        };

        content_put_entry(&disk->loaded, &setting, fields->version);
        return 0;
}

static int take_registration(void *userdata, struct slice client, struct slice user, struct slice key,
                             uint64_t connection) {
        struct disk *disk = userdata;

        content_put_registration(&disk->loaded, client, key, &user, connection);
        return 0;
}

static int take_reply(void *userdata, uint64_t number, const struct digest *digest,
                      struct remembered_reply reply, int64_t deadline_ns) {
        struct disk *disk = userdata;

        content_put_reply(&disk->loaded, number, digest, reply, deadline_ns);
        return 0;
}

static int take_notification(void *userdata, const struct pending_notification *notification) {
        struct disk *disk = userdata;

        cr_assert_gt(notification->sequence, disk->n_loaded_sequence, "not in ascending order");
        disk->n_loaded_sequence = notification->sequence;
        content_put_notification(&disk->loaded, notification);
        return 0;
}

static void take_progress(void *userdata, uint64_t n_rows) {
        struct disk *disk = userdata;

        disk->n_progress = n_rows;
}

int disk_open(struct disk *disk) {
        struct storage_sink sink = {
                .header = take_header,
                .entry = take_entry,
                .registration = take_registration,
                .reply = take_reply,
                .notification = take_notification,
                .progress = take_progress,
                .userdata = disk,
        };
        int r;

        cr_assert_null(disk->storage);
        content_reset(&disk->loaded);
        disk->header = (struct storage_header){ 0 };
        disk->n_loaded_sequence = 0;
        r = disk->checkpoint_frames
                    ? storage_sqlite_open_with(&disk->storage, disk->directory, disk->checkpoint_frames)
                    : storage_sqlite_open(&disk->storage, disk->directory);
        if (r < 0) {
                disk->storage = NULL;
                return r;
        }

        r = storage_load(disk->storage, &sink, disk->now);
        if (r < 0)
                disk_close(disk);
        return r;
}

void disk_close(struct disk *disk) {
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
        registrations_init(&disk->registrations, HASH_KEY(1));
}

void disk_init_like(struct disk *disk, const struct disk *original) {
        disk_init(disk);
        disk->now = original->now;
        disk->clock = original->clock;
        disk->disconnect_epoch = original->disconnect_epoch;
        disk->notification_sequence = original->notification_sequence;
        disk->checkpoint_frames = original->checkpoint_frames;
        content_copy(&disk->committed, &original->committed);
        content_copy(&disk->expected, &original->committed);
}

static void reset_batch(struct disk *disk) {
        for (size_t i = 0; i < disk->n_rows; i++) {
                struct row *row = &disk->rows[i];

                if (row->type == ROW_ENTRY) {
                        entry_unref(row->entry.before);
                        entry_unref(row->entry.after);
                } else if (row->type == ROW_REGISTRATION) {
                        registration_unref(row->registration.registration);
                }
        }
        disk->n_rows = 0;
        for (size_t i = 0; i < disk->n_notifications; i++)
                pending_notification_deinit(&disk->notifications[i]);
        disk->n_notifications = 0;
        disk->delivered = 0;
}

void disk_deinit(struct disk *disk) {
        struct dirent *name;
        DIR *names;

        disk_close(disk);
        reset_batch(disk);
        registrations_deinit(&disk->registrations);
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
        static const char *const names[] = { "statestored.db", "statestored.db-wal", "acknowledged" };

        disk_init_like(copy, disk);
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                uint8_t *bytes;
                size_t length = disk_read(disk, names[i], &bytes);

                if (bytes)
                        disk_write(copy, names[i], bytes, length);
                free(bytes);
        }
}

/* Batches */

static struct row *add_row(struct disk *disk, enum row_type type) {
        struct row *row = &disk->rows[disk->n_rows];

        cr_assert_lt(disk->n_rows, DISK_ROWS_MAX);
        disk->n_rows++;
        *row = (struct row){ .type = type };
        return row;
}

/*
 * An entry as the engine creates it. Fields that the storage does not read have arbitrary values.
 */
static struct entry *stand_in(struct slice key) {
        struct entry *entry;

        cr_assert_eq(entry_new(&entry, key, S("before"), (struct version){ 1, 1 }, NULL), 0);
        entry->is_persistent = true;
        return entry;
}

void disk_set_as(struct disk *disk, struct setting setting) {
        struct row *row = add_row(disk, ROW_ENTRY);
        struct entry *entry;

        disk->clock.counter++;
        cr_assert_eq(entry_new(&entry, setting.key, setting.value, disk->clock,
                               setting.fence.node.data ? &setting.fence : NULL),
                     0);
        entry->is_persistent = !setting.is_transient;
        row->entry.before = content_has_entry(&disk->expected, setting.key) ? stand_in(setting.key) : NULL;
        row->entry.before_deadline_ns = DEADLINE_NEVER;
        row->entry.after = entry;
        row->entry.after_deadline_ns = setting.deadline_ns ? setting.deadline_ns : DEADLINE_NEVER;

        if (!setting.fence.node.data)
                setting.fence = (struct hlc){ 0 };
        if (setting.is_transient)
                content_remove_entry(&disk->expected, setting.key);
        else
                content_put_entry(&disk->expected, &setting, disk->clock);
}

void disk_set(struct disk *disk, struct slice key, struct slice value) {
        disk_set_as(disk, (struct setting){ .key = key, .value = value });
}

void disk_put(struct disk *disk, const char *key, const char *value) {
        disk_set(disk, slice_from_string(key), slice_from_string(value));
}

void disk_remove(struct disk *disk, struct slice key) {
        struct row *row = add_row(disk, ROW_ENTRY);

        row->entry.before = stand_in(key);
        content_remove_entry(&disk->expected, key);
}

void disk_watch(struct disk *disk, struct slice client, struct slice key, uint64_t connection) {
        struct row *row = add_row(disk, ROW_REGISTRATION);
        struct slice user = connection ? client : (struct slice){ 0 };

        if (!registrations_find(&disk->registrations,
                                registrations_names(&disk->registrations, client, key)))
                cr_assert(registrations_add(&disk->registrations,
                                            registrations_names(&disk->registrations, client, key), user,
                                            connection));
        row->registration.registration = registration_ref(registrations_find(
                &disk->registrations, registrations_names(&disk->registrations, client, key)));
        row->registration.is_added = true;
        content_put_registration(&disk->expected, client, key, &user, connection);
}

void disk_unwatch(struct disk *disk, struct slice client, struct slice key) {
        struct row *row = add_row(disk, ROW_REGISTRATION);

        row->registration.registration = registration_ref(registrations_find(
                &disk->registrations, registrations_names(&disk->registrations, client, key)));
        registrations_remove(&disk->registrations, row->registration.registration);
        content_put_registration(&disk->expected, client, key, NULL, 0);
}

void disk_reply(struct disk *disk, uint64_t number, enum outcome outcome, struct version version,
                int64_t deadline_ns) {
        struct row *row = add_row(disk, ROW_REPLY);

        row->reply.number = number;
        row->reply.reply = (struct remembered_reply){
                .version_wall_ms = version.wall_ms,
                .version_counter = version.counter,
                .outcome = (uint16_t)outcome,
                .has_version = version.wall_ms != 0,
        };
        row->reply.deadline_ns = deadline_ns;
        memcpy(row->reply.digest.bytes, &number, sizeof(number));
        memcpy(row->reply.digest.bytes + 8, &version, 8);
        content_put_reply(&disk->expected, number, &row->reply.digest, row->reply.reply, deadline_ns);
}

void disk_drop_reply(struct disk *disk, uint64_t number) {
        add_row(disk, ROW_REPLY_DROPPED)->reply.number = number;
        content_remove_replies(&disk->expected, number, number);
}

void disk_forget_replies(struct disk *disk, uint64_t number) {
        disk->forgotten_reply = number;
        content_remove_replies(&disk->expected, 0, number);
}

void disk_notify(struct disk *disk, struct slice key, struct slice recipients) {
        struct entry *entry = disk->rows[disk->n_rows - 1].entry.after;
        struct pending_notification notification = {
                .sequence = disk->notification_sequence + disk->n_notifications + 1,
                .version = entry ? entry_version(entry) : disk->clock,
                .key = key,
                .entry = entry,
                .recipients = recipients,
        };

        cr_assert_lt(disk->n_notifications, DISK_NOTIFICATIONS_MAX);
        cr_assert_eq(pending_notification_copy(&disk->notifications[disk->n_notifications++], &notification),
                     0);
        content_put_notification(&disk->expected, &notification);
}

void disk_deliver(struct disk *disk, uint64_t delivered) {
        disk->delivered = delivered;
        content_remove_notifications(&disk->expected, delivered);
}

int disk_commit(struct disk *disk) {
        struct storage_batch batch = {
                .rows = disk->rows,
                .n_rows = disk->n_rows,
                .clock = disk->clock,
                .disconnect_epoch = disk->disconnect_epoch,
                .notifications = disk->notifications,
                .n_notifications = disk->n_notifications,
                .delivered = disk->delivered,
                .forgotten_reply = disk->forgotten_reply,
                .now = disk->now,
        };
        int r = storage_commit(disk->storage, &batch);

        if (r == 0)
                disk->notification_sequence += disk->n_notifications;
        reset_batch(disk);
        if (r == -ESTALE)
                content_copy(&disk->uncertain, &disk->expected);
        if (r == 0)
                content_copy(&disk->committed, &disk->expected);
        else
                content_copy(&disk->expected, &disk->committed);
        return r;
}
