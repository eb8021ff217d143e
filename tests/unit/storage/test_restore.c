/* SPDX-License-Identifier: Apache-2.0 */

/* An engine made of what a storage holds. */

#include <criterion/criterion.h>
#include <errno.h>

#include "engine/internal.h"
#include "storage/restore.h"

#define S SLICE_LITERAL

/* A storage of three rows, which fails after as many as it is told to. */
struct row_storage {
        struct storage storage; /* first: the operations cast */
        int fails_after;        /* below 0: never */
};

static const struct storage_header header = { .digest_key = { { 77 } },
                                              .instance_id = "0123456789abcdef0123456789abcdef",
                                              .clock = { 1000, 3 },
                                              .n_disconnects = 5 };

static int load(struct storage *storage, const struct storage_sink *sink, struct now now) {
        struct row_storage *shelf = (struct row_storage *)storage;
        struct slice part = S("request");
        struct digest digest = hash_parts(&header.digest_key, &part, 1);
        struct hlc fence = { 50, 0, S("m") };
        int r;

        r = sink->header(sink->userdata, &header);
        if (r == 0 && shelf->fails_after == 0)
                r = -EIO;
        if (r == 0)
                r = sink->entry(sink->userdata, S("k"), S("v"), (struct version){ 900, 1 }, now.mono_ns + 10,
                                &fence);
        if (r == 0 && shelf->fails_after == 1)
                r = -EBADMSG;
        if (r == 0)
                r = sink->registration(sink->userdata, S("c"), S("u"), S("k"), 7);
        if (r == 0)
                r = sink->answer(sink->userdata, 4, &digest, (struct remembered_answer){ .outcome = 1 },
                                 now.mono_ns + 20);
        if (r == 0)
                sink->progress(sink->userdata, 3);
        return r;
}

static const struct storage_operations operations = { .load = load };

static int restore(int fails_after, struct engine **ret_engine, struct storage_header *ret_header) {
        struct row_storage shelf = { { &operations }, fails_after };
        struct engine_config config = { .node_id = S("StateStore"),
                                        .max_keys = 10,
                                        .max_bytes = 1 << 20,
                                        .max_registrations = 10,
                                        .max_remembered_bytes = 1 << 20 };

        return restore_engine(ret_engine, ret_header, &shelf.storage, &config, (struct now){ 2000, 5000 });
}

Test(restore, restores_everything_stored) {
        struct slice part = S("request");
        struct digest digest = hash_parts(&header.digest_key, &part, 1);
        struct storage_header found;
        struct engine *engine;
        struct entry *entry;
        struct hlc fence;

        cr_assert_eq(restore(-1, &engine, &found), 0);
        cr_expect_str_eq(found.instance_id, header.instance_id);
        cr_expect_eq(
                memcmp(&engine_config(engine)->digest_key, &header.digest_key, sizeof(header.digest_key)),
                0);
        cr_expect_eq(engine_stats(engine).clock.wall_ms, 1000);
        cr_expect_eq(engine_stats(engine).clock.counter, 3);
        cr_expect_eq(engine_stats(engine).n_disconnects, 5);

        entry = engine_find_entry(engine, S("k"));
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

Test(restore, fails_if_loading_fails) {
        struct engine *engine = NULL;
        struct storage_header found = { .n_disconnects = 99 };

        cr_expect_eq(restore(0, &engine, &found), -EIO);
        cr_expect_eq(restore(1, &engine, &found), -EBADMSG);
        cr_expect_null(engine);
        cr_expect_eq(found.n_disconnects, 99);
}
