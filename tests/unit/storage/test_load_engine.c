/* SPDX-License-Identifier: Apache-2.0 */

/* storage_load_engine(): an engine is created from the content of a storage. */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/cleanup.h"
#include "engine/internal.h"
#include "storage/load_engine.h"
#include "unit/support/entries.h"

#define S SLICE_LITERAL

/* A storage of five rows. Loading fails after fails_after rows. */
struct row_storage {
        struct storage storage; /* must be the first member: the operations cast it */
        int fails_after;        /* negative: never */
};

static const struct storage_header header = { .digest_key = { { 77 } },
                                              .instance_id = "0123456789abcdef0123456789abcdef",
                                              .clock = { 1000, 3 },
                                              .disconnect_epoch = 5 };

static int load_notifications(const struct storage_sink *sink) {
        struct pending_notification notification = {
                .sequence = 6, .version = { 950, 2 }, .key = S("k"), .recipients = S("one, two")
        };
        int r;

        cr_assert_eq(entry_new(&notification.entry, S("k"), S("v"), notification.version, NULL), 0);
        r = sink->notification(sink->userdata, &notification);
        notification.entry = entry_unref(notification.entry);
        notification.sequence = 8;
        return r == 0 ? sink->notification(sink->userdata, &notification) : r;
}

static struct digest request_digest(void) {
        struct slice part = S("request");
        struct digest digest_of_part;

        return hash_parts(&header.digest_key, &part, 1, &digest_of_part);
}

static int load(struct storage *storage, const struct storage_sink *sink, struct now now) {
        struct row_storage *row_storage = (struct row_storage *)storage;
        struct digest digest = request_digest();
        struct hlc fence = { 50, 0, S("m") };
        struct entry_fields entry = { S("k"), S("v"), { 900, 1 }, now.mono_ns + 10, &fence };
        int r;

        r = sink->header(sink->userdata, &header);
        if (r == 0 && row_storage->fails_after == 0)
                r = -EIO;
        if (r == 0)
                r = sink->entry(sink->userdata, &entry);
        if (r == 0 && row_storage->fails_after == 1)
                r = -EBADMSG;
        if (r == 0)
                r = sink->registration(sink->userdata, S("c"), S("u"), S("k"), 7);
        if (r == 0)
                r = sink->reply(sink->userdata, 4, &digest, (struct remembered_reply){ .outcome = 1 },
                                now.mono_ns + 20);
        if (r == 0)
                r = load_notifications(sink);
        if (r == 0)
                sink->progress(sink->userdata, 5);
        return r;
}

static const struct storage_operations operations = { .load = load };

static int restore(int fails_after, struct engine **ret_engine, struct restored *ret_restored) {
        struct row_storage row_storage = { { &operations }, fails_after };
        struct engine_config config = { .node_id = S("StateStore"),
                                        .max_keys = 10,
                                        .max_bytes = 1 << 20,
                                        .max_registrations = 10,
                                        .max_remembered_bytes = 1 << 20 };

        return storage_load_engine(ret_engine, ret_restored, &row_storage.storage, &config,
                                   (struct now){ 2000, 5000 });
}

Test(restore, restores_everything_stored) {
        struct digest digest = request_digest();
        CLEANUP(restored_deinit) struct restored found = { 0 };
        struct engine *engine;
        struct entry *entry;
        struct hlc fence;

        cr_assert_eq(restore(-1, &engine, &found), 0);
        cr_expect_str_eq(found.header.instance_id, header.instance_id);
        cr_expect_eq(
                memcmp(&engine_config(engine)->digest_key, &header.digest_key, sizeof(header.digest_key)),
                0);
        cr_expect_eq(engine_stats(engine).clock.wall_ms, 1000);
        cr_expect_eq(engine_stats(engine).clock.counter, 3);
        cr_expect_eq(engine_stats(engine).disconnect_epoch, 5);

        entry = find_entry(engine, S("k"));
        cr_assert_not_null(entry);
        cr_expect(slice_equal(entry_value(entry), S("v")));
        cr_expect_eq(entry_version(entry).wall_ms, 900);
        cr_expect_eq(engine_deadline(engine, entry), 5010);
        cr_expect(entry_fence(entry, &fence) && fence.wall_ms == 50);
        cr_expect(entry->is_persistent);
        cr_assert_not_null(engine_find_registration(engine, S("c"), S("k")));
        cr_expect(slice_equal(engine_find_registration(engine, S("c"), S("k"))->user, S("u")));
        cr_expect(engine_has_registrations(engine, 7));
        cr_expect_not_null(dedup_find(&engine->dedup, &digest));
        cr_expect_eq(engine_next_deadline(engine), 5010);
        engine_free(engine);
}

Test(restore, keeps_pending_notifications_in_order) {
        CLEANUP(restored_deinit) struct restored found = { 0 };
        struct engine *engine;

        cr_assert_eq(restore(-1, &engine, &found), 0);
        engine_free(engine);
        cr_assert_eq(found.n_notifications, 2);
        cr_expect_eq(found.notifications[0].sequence, 6);
        cr_expect_eq(found.notifications[0].version.wall_ms, 950);
        cr_expect(slice_equal(found.notifications[0].key, S("k")));
        cr_expect(slice_equal(entry_value(found.notifications[0].entry), S("v")));
        cr_expect(slice_equal(found.notifications[0].recipients, S("one, two")));
        cr_expect_eq(found.notifications[1].sequence, 8);
        cr_expect_null(found.notifications[1].entry);
}

Test(restore, fails_if_loading_fails) {
        struct engine *engine = NULL;
        struct restored found = { .n_notifications = 99 };

        cr_expect_eq(restore(0, &engine, &found), -EIO);
        cr_expect_eq(restore(1, &engine, &found), -EBADMSG);
        cr_expect_null(engine);
        cr_expect_eq(found.n_notifications, 99);
}
