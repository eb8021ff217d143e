/* SPDX-License-Identifier: Apache-2.0 */

/* Undo of registrations after a failed commit: only KEYNOTIFY STOP is reverted. */

#include "unit/engine/world.h"
#include "unit/support/table.h"

static struct world world;

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(undo_registrations, .init = setup, .fini = teardown);

static bool is_registered(const char *client, const char *key) {
        return engine_find_registration(world.engine, slice_from_string(client), slice_from_string(key));
}

/* Whether the effects remove the registration of c for this key from the storage. */
static bool removes(const char *key) {
        bool is_removed = false;

        for (size_t i = 0; i < world.effects.n_changes; i++) {
                const struct change *change = &world.effects.changes[i];

                is_removed |= change->type == CHANGE_REGISTRATION && !change->registration.is_added &&
                              slice_equal_string(change->registration.registration->key_name, key);
        }
        return is_removed;
}

static const struct {
        const char *name;
        struct event event;
        bool registers; /* instead of the event, the client registers for another key over connection 8 */
} ends[] = {
        { "nothing", { .type = EVENT_TICK }, false },
        { "its client disconnected", { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("c") }, false },
        { "its connection ended", { .type = EVENT_CONNECTION_CLOSED, .connection = 7 }, false },
        { "no connection was retained", { .type = EVENT_CONNECTIONS_RETAINED }, false },
        { "its client registers over another connection", { .type = EVENT_TICK }, true },
};

/*
 * Before the event, the client stops one of its two registrations: this is reverted. What the event has
 * ended stays ended, and the next tick removes it from the storage.
 */
Test(undo_registrations, restores_what_a_stop_has_ended) {
        for (size_t i = 0; i < N_ROWS(ends); i++) {
                bool is_ended = ends[i].registers || ends[i].event.type != EVENT_TICK;

                teardown();
                setup();
                ask(&world, WATCH("c", "k", .connection = 7));
                ask(&world, WATCH("c", "stopped", .connection = 7, .user = BYTES("u")));
                begin_batch(&world);
                ask_in_batch(&world, UNWATCH("c", "stopped", .connection = 7));
                if (ends[i].registers)
                        ask_in_batch(&world, WATCH("c", "other", .connection = 8));
                else
                        happen_in_batch(&world, ends[i].event);
                cr_assert_eq(engine_undo(world.engine, &world.effects), 0);

                cr_expect_eq(engine_stats(world.engine).n_registrations, 2, ROW(ends, i));
                cr_assert(is_registered("c", "stopped"), ROW(ends, i));
                cr_expect(slice_equal(engine_find_registration(world.engine, S("c"), S("stopped"))->user,
                                      S("u")),
                          ROW(ends, i));
                cr_expect_eq(is_registered("c", "k"), !is_ended, ROW(ends, i));
                ask(&world, SET("k", "v"));
                cr_expect_str_eq(notified(&world), is_ended ? "" : "c:k=v ", ROW(ends, i));
                tick(&world);
                cr_expect_eq(world.effects.n_changes, is_ended, ROW(ends, i));

                /* the end of the connection is reported again */
                happen(&world, (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 7 });
                cr_expect_eq(engine_stats(world.engine).n_registrations, 0, ROW(ends, i));
        }
}

/* The client registers again before the tick: the storage keeps this registration. */
Test(undo_registrations, of_an_ended_one_that_is_made_again_removes_no_row) {
        ask(&world, WATCH("c", "k", .connection = 7));
        happen(&world, (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 7 });
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        ask(&world, WATCH("c", "k", .connection = 8));
        tick(&world);
        cr_expect_eq(world.effects.n_changes, 0);
        cr_expect(is_registered("c", "k"));
        cr_expect_eq(engine_stats(world.engine).n_registrations, 1);

        /* the storage has refused this one, too, so it has the former one */
        begin_batch(&world);
        ask_in_batch(&world, WATCH("c", "k2", .connection = 8));
        happen_in_batch(&world, (struct event){ .type = EVENT_CLIENT_DISCONNECTED, .client = S("c") });
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        begin_batch(&world);
        ask_in_batch(&world, WATCH("c", "k", .connection = 9));
        happen_in_batch(&world, (struct event){ .type = EVENT_TICK });
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_not(is_registered("c", "k"));
        tick(&world);
        cr_expect(removes("k"));
        cr_expect_eq(engine_stats(world.engine).n_registrations, 0);
}

Test(undo_registrations, removes_all_registrations_of_the_batch_over_both_connections) {
        struct event disconnected = { .type = EVENT_CONNECTION_CLOSED, .connection = 7 };

        ask_in_batch(&world, WATCH("c", "k", .connection = 7));
        happen_in_batch(&world, disconnected);
        ask_in_batch(&world, WATCH("c", "k", .connection = 8));
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_not(is_registered("c", "k"));
        tick(&world);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 0);
}

/*
 * The connection of a client that has stopped a registration may have ended in the same batch. After an
 * undo the store must ask for another list, because nothing reports the end of this connection again.
 */
Test(undo_registrations, of_a_stop_counts_as_restored_until_the_next_list) {
        static const uint64_t retained[] = { 7 };

        ask(&world, WATCH("c", "k", .connection = 7));
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        ask(&world, WATCH("c", "k", .connection = 7));
        happen(&world, (struct event){ .type = EVENT_CONNECTIONS_RETAINED });
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_not(engine_has_restored_registrations(world.engine), "none was restored");
        tick(&world);

        ask(&world, WATCH("c", "k", .connection = 7));
        ask(&world, UNWATCH("c", "k", .connection = 7));
        cr_expect_not(engine_has_restored_registrations(world.engine));
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect(is_registered("c", "k"));
        cr_expect(engine_has_restored_registrations(world.engine));
        happen(&world, (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 8 });
        ask(&world, WATCH("c", "k2", .connection = 7));
        cr_expect(engine_has_restored_registrations(world.engine));
        happen(&world, (struct event){ .type = EVENT_CONNECTIONS_RETAINED,
                                       .connections = retained,
                                       .n_connections = 1 });
        cr_expect_not(engine_has_restored_registrations(world.engine));
        cr_expect_eq(engine_stats(world.engine).n_registrations, 2);
}
