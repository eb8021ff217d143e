/* SPDX-License-Identifier: Apache-2.0 */

/* Undo of registrations after a failed commit: whatever ended them, they are restored. */

#include "support/limits.h"
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

static const struct {
        const char *name;
        struct event event; /* EVENT_REQUEST: the client registers for another key over connection 8 */
} ends[] = {
        { "nothing", { .type = EVENT_TICK } },
        { "its client disconnected", { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("c") } },
        { "its connection ended", { .type = EVENT_CONNECTION_CLOSED, .connection = 7 } },
        { "no connection was retained", { .type = EVENT_CONNECTIONS_RETAINED } },
        { "its client registers over another connection", { .type = EVENT_REQUEST } },
};

/* Before the event, the client stops one of its two registrations. */
Test(undo_registrations, restores_every_registration) {
        for (size_t i = 0; i < N_ROWS(ends); i++) {
                struct request other = WATCH("c", "other", .connection = 8, .payload = BYTES("3"));
                struct event event = ends[i].event;

                teardown();
                setup();
                event.request = &other;
                ask(&world, WATCH("c", "k", .connection = 7, .user = BYTES("u")));
                ask(&world, WATCH("c", "stopped", .connection = 7));
                begin_batch(&world);
                ask_in_batch(&world, UNWATCH("c", "stopped", .connection = 7));
                happen_in_batch(&world, event);
                cr_assert_eq(engine_undo(world.engine, &world.effects), 0);

                cr_expect_eq(engine_stats(world.engine).n_registrations, 2, ROW(ends, i));
                cr_expect(is_registered("c", "stopped"), ROW(ends, i));
                cr_assert(is_registered("c", "k"), ROW(ends, i));
                cr_expect(slice_equal(engine_find_registration(world.engine, S("c"), S("k"))->user, S("u")),
                          ROW(ends, i));

                /* the event is reported again */
                happen(&world, (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 7 });
                cr_expect_eq(engine_stats(world.engine).n_registrations, 0, ROW(ends, i));
                cr_expect_eq(world.effects.n_rows, 2, ROW(ends, i));
        }
}

Test(undo_registrations, removes_all_registrations_of_the_batch_over_both_connections) {
        struct event disconnected = { .type = EVENT_CONNECTION_CLOSED, .connection = 7 };

        ask_in_batch(&world, WATCH("c", "k", .connection = 7));
        happen_in_batch(&world, disconnected);
        ask_in_batch(&world, WATCH("c", "k", .connection = 8));
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 0);
}

/* Without the plugin, a notification did not reach its client. */
Test(undo_registrations, restores_a_registration_that_ended_by_a_notification_without_subscriber) {
        struct registration *registration;

        ask(&world, WATCH("c", "k"));
        registration = registration_ref(engine_find_registration(world.engine, S("c"), S("k")));
        happen(&world, (struct event){ .type = EVENT_REACHED, .registration = registration });
        happen(&world, (struct event){ .type = EVENT_NOT_REACHED, .registration = registration });
        cr_expect_not(is_registered("c", "k"));
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect(is_registered("c", "k"));
        registration_unref(registration);

        /*
         * The next one did not reach it either. Whether the client has ever subscribed is
         * forgotten: the timeout begins.
         */
        registration = engine_find_registration(world.engine, S("c"), S("k"));
        happen(&world, (struct event){ .type = EVENT_NOT_REACHED, .registration = registration });
        cr_expect(is_registered("c", "k"));
        pass_ms(&world, TEST_REGISTRATION_TIMEOUT_MS);
        tick(&world);
        cr_expect_not(is_registered("c", "k"));
}

/*
 * A restart has restored registrations of one client over two connections. The end of the former
 * one is undone. Then a registration over the present one does not end the client's other
 * registrations over it.
 */
Test(undo_registrations, restores_registrations_of_a_former_connection) {
        static const uint64_t retained[] = { 8 };

        cr_assert_eq(engine_put_registration(world.engine, S("c"), S(""), S("former"), 7), 0);
        cr_assert_eq(engine_put_registration(world.engine, S("c"), S(""), S("k"), 8), 0);
        happen(&world, (struct event){ .type = EVENT_CONNECTIONS_RETAINED,
                                       .connections = retained,
                                       .n_connections = 1 });
        cr_expect_eq(engine_stats(world.engine).n_registrations, 1);
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect(is_registered("c", "former"));

        ask(&world, UNWATCH("c", "k", .connection = 8));
        cr_expect_not(is_registered("c", "former"));
        ask(&world, WATCH("c", "k", .connection = 8));
        ask(&world, WATCH("c", "k2", .connection = 8));
        cr_expect(is_registered("c", "k"));
        cr_expect_eq(engine_stats(world.engine).n_registrations, 2);
}

/*
 * WELCOME has ended a registration because the plugin does not track its connection. After an undo
 * the store must ask for another list, because nothing reports the end of this connection again.
 */
Test(undo_registrations, of_an_ended_one_counts_as_restored_until_the_next_list) {
        static const uint64_t retained[] = { 7 };

        ask(&world, WATCH("c", "k", .connection = 7));
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_not(engine_has_restored_registrations(world.engine), "it had not ended");

        ask(&world, WATCH("c", "k", .connection = 7));
        happen(&world, (struct event){ .type = EVENT_CONNECTIONS_RETAINED });
        cr_expect_not(is_registered("c", "k"));
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
