/* SPDX-License-Identifier: Apache-2.0 */

/* Undo of registrations after a failed commit: those of disconnected clients are not restored. */

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

static const struct {
        const char *name;
        struct event event;
        bool is_restored;
} ends[] = {
        { "STOP", { .type = EVENT_REQUEST }, true },
        { "its client disconnected", { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("c") }, false },
        { "its connection ended", { .type = EVENT_CONNECTION_CLOSED, .connection = 7 }, false },
        { "no connection was retained", { .type = EVENT_CONNECTIONS_RETAINED }, false },
        { "all disconnected", { .type = EVENT_ALL_DISCONNECTED }, false },
};

Test(undo_registrations, restores_no_registration_whose_connection_has_ended) {
        struct request stop = UNWATCH("c", "k", .connection = 7);

        for (size_t i = 0; i < N_ROWS(ends); i++) {
                struct event event = ends[i].event;

                event.request = &stop;
                ask(&world, WATCH("c", "k", .connection = 7));
                happen(&world, event);
                cr_expect_eq(engine_stats(world.engine).n_registrations, 0, ROW(ends, i));
                cr_assert_eq(engine_undo(world.engine, &world.effects), 0, ROW(ends, i));
                cr_expect_eq(engine_stats(world.engine).n_registrations, ends[i].is_restored, ROW(ends, i));
        }
}

/* STOP and the end of the connection in one batch: the client has disconnected, so nothing is restored. */
Test(undo_registrations, restores_no_registration_that_was_stopped_before_its_connection_ended) {
        for (size_t i = 1; i < N_ROWS(ends); i++) {
                ask(&world, WATCH("c", "k", .connection = 7));
                begin_batch(&world);
                ask_in_batch(&world, UNWATCH("c", "k", .connection = 7));
                happen_in_batch(&world, ends[i].event);
                cr_assert_eq(engine_undo(world.engine, &world.effects), 0, ROW(ends, i));
                cr_expect_eq(engine_stats(world.engine).n_registrations, 0, ROW(ends, i));
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

static const uint64_t others[] = { 6, 8 };

static const struct {
        const char *name;
        struct event event; /* EVENT_REQUEST: the client registers for another key over connection 8 */
        bool is_restored;
} meanwhile[] = {
        { "nothing", { .type = EVENT_TICK }, true },
        { "its client disconnected", { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("c") }, false },
        { "another client disconnected",
          { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("cc") },
          true },
        { "a client whose id is a prefix of its id",
          { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("") },
          true },
        { "its connection ended", { .type = EVENT_CONNECTION_CLOSED, .connection = 7 }, false },
        { "another connection ended", { .type = EVENT_CONNECTION_CLOSED, .connection = 8 }, true },
        { "all but others ended",
          { .type = EVENT_CONNECTIONS_RETAINED, .connections = others, .n_connections = 2 },
          false },
        { "all ended", { .type = EVENT_ALL_DISCONNECTED }, false },
        { "its client registers over another connection", { .type = EVENT_REQUEST }, false },
};

Test(undo_registrations, restores_a_stopped_registration_unless_its_client_disconnected_since) {
        for (size_t i = 0; i < N_ROWS(meanwhile); i++) {
                struct request request = WATCH("c", "other", .connection = 8, .payload = BYTES("3"));
                struct event event = meanwhile[i].event;

                teardown();
                setup();
                event.request = &request;
                ask(&world, WATCH("c", "k", .connection = 7));
                begin_batch(&world);
                ask_in_batch(&world, UNWATCH("c", "k", .connection = 7));
                happen_in_batch(&world, event);
                cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
                cr_expect_eq(engine_stats(world.engine).n_registrations, meanwhile[i].is_restored,
                             ROW(meanwhile, i));
        }
}

/* Stopped and registered again, then a notification was not delivered: neither registration is restored. */
Test(undo_registrations, restores_no_stopped_registration_after_an_undelivered_notification_of_its_key) {
        struct registration *registration;

        ask(&world, WATCH("c", "k", .connection = 7));
        ask(&world, WATCH("c", "other", .connection = 7));
        begin_batch(&world);
        ask_in_batch(&world, UNWATCH("c", "other", .connection = 7));
        ask_in_batch(&world, UNWATCH("c", "k", .connection = 7));
        ask_in_batch(&world, WATCH("c", "k", .connection = 7));
        registration = registration_ref(engine_find_registration(world.engine, S("c"), S("k")));
        happen_in_batch(&world, (struct event){ .type = EVENT_DELIVERED, .registration = registration });
        happen_in_batch(&world, (struct event){ .type = EVENT_NOT_DELIVERED, .registration = registration });
        registration_unref(registration);
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_null(engine_find_registration(world.engine, S("c"), S("k")));
        cr_expect_not_null(engine_find_registration(world.engine, S("c"), S("other")));
}
