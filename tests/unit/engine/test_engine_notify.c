/* SPDX-License-Identifier: Apache-2.0 */

/* KEYNOTIFY and notifications: PROTOCOL.md "Notifications". */

#include <stdio.h>

#include "unit/engine/world.h"
#include "unit/support/table.h"

static struct world world;

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(notify, .init = setup, .fini = teardown);

static const struct {
        const char *name;
        struct request request;
        const char *notified;
} changes[] = {
        /* "k" has the value "v", "none" has none; the client "c" watches both */
        { "SET", SET("k", "w"), "c:k=w " },
        { "SET of the same value", SET("k", "v"), "c:k=v " },
        { "SET of an empty value", SET("k", ""), "c:k= " },
        { "SET of a new key", SET("none", "v"), "c:none=v " },
        { "SET with NX that took effect", SET("none", "v", NX), "c:none=v " },
        { "SET with NEX that took effect", SET("k", "w", NEX("v")), "c:k=w " },
        { "SET with an expiry", SET("k", "w", PX(10)), "c:k=w " },
        { "DEL", DEL("k"), "c:k gone " },
        { "VDEL", VDEL("k", "v"), "c:k gone " },
        { "SET by the watcher itself", SET("k", "w", .client = BYTES("c")), "c:k=w " },
        { "DEL by the watcher itself", DEL("k", .client = BYTES("c")), "c:k gone " },
        { "SET with NX that did not take effect", SET("k", "w", NX), "" },
        { "SET with NEX that did not take effect", SET("k", "w", NEX("x")), "" },
        { "DEL of nothing", DEL("none"), "" },
        { "VDEL of nothing", VDEL("none", "v"), "" },
        { "VDEL of another value", VDEL("k", "w"), "" },
        { "GET", GET("k"), "" },
        { "SCAN", SCAN("*"), "" },
        { "KEYNOTIFY", WATCH("other", "k"), "" },
        { "KEYNOTIFY STOP", UNWATCH("c", "k"), "" },
        { "SET of a key without registrations", SET("other", "v"), "" },
};

Test(notify, is_sent_for_exactly_the_effective_changes) {
        for (size_t i = 0; i < N_ROWS(changes); i++) {
                world_deinit(&world);
                world_init(&world, world_config());
                ask(&world, SET("k", "v"));
                ask(&world, WATCH("c", "k"));
                ask(&world, WATCH("c", "none"));
                ask(&world, changes[i].request);
                cr_expect_str_eq(notified(&world), changes[i].notified, ROW(changes, i));
        }
}

Test(notify, is_sent_once_to_each_client_oldest_registration_first) {
        ask(&world, WATCH("c2", "k"));
        ask(&world, WATCH("c1", "k"));
        ask(&world, WATCH("c2", "k"));
        ask(&world, WATCH("c3", "other"));
        ask(&world, SET("k", "v"));
        cr_expect_str_eq(notified(&world), "c2:k=v c1:k=v ");
        cr_expect_eq(world.effects.n_watched_changes, 1);
}

Test(notify, is_sent_in_the_order_of_changes) {
        struct request requests[] = { SET("a", "1"), SET("b", "1"), SET("a", "2"), DEL("b"), SET("b", "2") };

        ask(&world, WATCH("c", "a"));
        ask(&world, WATCH("c", "b"));
        begin_batch(&world);
        for (size_t i = 0; i < N_ROWS(requests); i++)
                ask_in_batch(&world, requests[i]);
        cr_expect_str_eq(notified(&world), "c:a=1 c:b=1 c:a=2 c:b gone c:b=2 ");
        cr_expect_eq(world.n_replies, N_ROWS(requests));
}

static int64_t notified_version(void) {
        cr_assert_eq(world.effects.n_watched_changes, 1);
        return version_number(world.effects.watched_changes[0].version);
}

Test(notify, has_the_new_version_of_a_set_and_the_last_of_a_deleted_key) {
        int64_t set;

        ask(&world, WATCH("c", "k"));
        set = version_number(ask(&world, SET("k", "v"))->result.version);
        cr_expect_eq(notified_version(), set);
        pass_ms(&world, 5);
        ask(&world, DEL("k"));
        cr_expect_eq(notified_version(), set);

        set = version_number(ask(&world, SET("k", "v", PX(10)))->result.version);
        pass_ms(&world, 10);
        tick(&world);
        cr_expect_str_eq(notified(&world), "c:k gone ");
        cr_expect_eq(notified_version(), set);
}

Test(notify, does_not_require_the_key_to_exist) {
        cr_expect(asked(&world, WATCH("c", "k"), OUTCOME_DONE));
        ask(&world, SET("k", "v"));
        ask(&world, DEL("k"));
        ask(&world, SET("k", "w", PX(10)));
        pass_ms(&world, 10);
        tick(&world);
        ask(&world, SET("k", "x"));
        cr_expect_str_eq(notified(&world), "c:k=x ");
}

Test(notify, replies_with_the_present_clock) {
        int64_t set = version_number(ask(&world, SET("k", "v"))->result.version);
        const struct reply *reply = ask(&world, WATCH("c", "k"));

        cr_assert(reply->result.has_version);
        cr_expect_gt(version_number(reply->result.version), set);
        pass_ms(&world, 5);
        reply = ask(&world, UNWATCH("c", "k"));
        cr_assert(reply->result.has_version);
        cr_expect_eq(reply->result.version.wall_ms, world.now.wall_ms);
}

Test(notify, replies_done_for_a_repeated_registration) {
        cr_expect(asked(&world, WATCH("c", "k"), OUTCOME_DONE));
        cr_expect(asked(&world, WATCH("c", "k"), OUTCOME_DONE));
        cr_expect(world.replies[0].result.has_version);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 1);
}

Test(notify, stop_ends_exactly_one_registration) {
        ask(&world, WATCH("c", "k"));
        ask(&world, WATCH("c2", "k"));
        cr_expect(asked(&world, UNWATCH("c", "other"), OUTCOME_NOTHING));
        cr_expect_not(world.replies[0].result.has_version);
        cr_expect(asked(&world, UNWATCH("c", "k"), OUTCOME_DONE));
        cr_expect(asked(&world, UNWATCH("c", "k"), OUTCOME_NOTHING));
        ask(&world, SET("k", "v"));
        cr_expect_str_eq(notified(&world), "c2:k=v ");
}

Test(notify, requires_a_client_id) {
        cr_expect(asked(&world, WATCH("", "k"), OUTCOME_CLIENT_UNKNOWN));
        cr_expect(asked(&world, UNWATCH("", "k"), OUTCOME_CLIENT_UNKNOWN));
        cr_expect_eq(engine_stats(world.engine).n_registrations, 0);
}

/* "clients/statestore/v1/<36>/" HEX(client) "/command/notify/" HEX(key) */
#define TOPIC_FIXED (21 + 1 + 36 + 1 + 16)

Test(notify, rejects_a_key_too_long_for_a_topic) {
        static uint8_t key[65535];
        struct request request = WATCH("c", "k");

        memset(key, 'k', sizeof(key));
        request.key = (struct slice){ key, (65535 - TOPIC_FIXED - 2) / 2 };
        cr_expect(asked(&world, request, OUTCOME_DONE));
        request.key.length++;
        cr_expect(asked(&world, request, OUTCOME_KEY_TOO_LONG_TO_NOTIFY));
        cr_expect_not(world.replies[0].result.has_version);
        cr_expect_eq(engine_stats(world.engine).n_registrations, 1);
}

Test(notify, keeps_the_value_until_it_is_published) {
        struct request requests[] = { SET("k", "first"), SET("k", "second"), UNWATCH("c", "k"), DEL("k") };

        ask(&world, WATCH("c", "k"));
        begin_batch(&world);
        for (size_t i = 0; i < N_ROWS(requests); i++)
                ask_in_batch(&world, requests[i]);
        cr_expect_str_eq(notified(&world), "c:k=first c:k=second ");
}

static const struct {
        const char *name;
        struct event event;
        const char *notified; /* notifications after a SET of the key that the three clients watch */
} disconnects[] = {
        /* "a" and "b" registered over the connections 1 and 2, "c" over one without a number */
        { "a client", { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("b") }, "a:k=v c:k=v " },
        { "a client without a number",
          { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("c") },
          "a:k=v b:k=v " },
        { "an unknown client",
          { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("x") },
          "a:k=v b:k=v c:k=v " },
        { "a connection", { .type = EVENT_CONNECTION_CLOSED, .connection = 1 }, "b:k=v c:k=v " },
        { "an unknown connection",
          { .type = EVENT_CONNECTION_CLOSED, .connection = 3 },
          "a:k=v b:k=v c:k=v " },
        { "all, because no connection is retained", { .type = EVENT_CONNECTIONS_RETAINED }, "" },
};

Test(disconnect, ends_registrations) {
        for (size_t i = 0; i < N_ROWS(disconnects); i++) {
                world_init(&world, world_config());
                ask(&world, WATCH("a", "k", .connection = 1));
                ask(&world, WATCH("b", "k", .connection = 2));
                ask(&world, WATCH("c", "k"));
                happen(&world, disconnects[i].event);
                cr_expect_str_eq(notified(&world), "", ROW(disconnects, i));
                ask(&world, SET("k", "v"));
                cr_expect_str_eq(notified(&world), disconnects[i].notified, ROW(disconnects, i));
                world_deinit(&world);
        }
}

Test(disconnect, keeps_the_retained_connections, .init = setup, .fini = teardown) {
        static const uint64_t retained[] = { 2, 7 };

        ask(&world, WATCH("a", "k", .connection = 1));
        ask(&world, WATCH("b", "k", .connection = 2));
        ask(&world, WATCH("c", "k", .connection = 7));
        happen(&world, (struct event){ .type = EVENT_CONNECTIONS_RETAINED,
                                       .connections = retained,
                                       .n_connections = 2 });
        ask(&world, SET("k", "v"));
        cr_expect_str_eq(notified(&world), "b:k=v c:k=v ");
}

Test(disconnect, registration_over_the_next_connection_ends_those_of_the_former, .init = setup,
     .fini = teardown) {
        ask(&world, WATCH("a", "k", .connection = 1));
        ask(&world, WATCH("a", "k2", .connection = 1));
        ask(&world, WATCH("a", "other", .connection = 2));
        cr_expect_eq(engine_stats(world.engine).n_registrations, 1);
        happen(&world,
               (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 1 }); /* reported late */
        ask(&world, SET("other", "v"));
        cr_expect_str_eq(notified(&world), "a:other=v ");
}

Test(disconnect, stop_over_the_next_connection_finds_no_registration_of_the_former, .init = setup,
     .fini = teardown) {
        ask(&world, WATCH("a", "k", .connection = 1));
        cr_expect(asked(&world, UNWATCH("a", "k", .connection = 2), OUTCOME_NOTHING));
        cr_expect_eq(engine_stats(world.engine).n_registrations, 0);
}

/*
 * More registrations than one step removes, so that some remain after the disconnect and after one
 * tick.
 */
#define N_MANY (2 * ENGINE_STEP_CHANGES_MAX + 2)

static struct request watch_nth(uint64_t connection, size_t n) {
        static char key[32];

        snprintf(key, sizeof(key), "key-%zu", n);
        return (struct request){ .verb = VERB_KEYNOTIFY,
                                 .client = S("a"),
                                 .key = slice_from_string(key),
                                 .connection = connection };
}

static void watch_many(uint64_t connection) {
        for (size_t i = 0; i < N_MANY; i++)
                ask(&world, watch_nth(connection, i));
}

static bool removes_stored(struct slice key) {
        bool removes = false;

        for (size_t i = 0; i < world.effects.n_changes; i++) {
                const struct change *change = &world.effects.changes[i];

                removes = removes || (!change->registration.is_added &&
                                      slice_equal(change->registration.registration->key_name, key));
        }
        return removes;
}

Test(disconnect, with_many_registrations_removes_them_in_bounded_steps, .init = setup, .fini = teardown) {
        watch_many(1);
        happen(&world, (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 1 });
        cr_expect_eq(world.effects.n_changes, ENGINE_STEP_CHANGES_MAX);
        cr_expect(!registrations_of_connection(engine_registrations(world.engine), 1));
        cr_expect_leq(engine_next_deadline(world.engine), world.now.mono_ns);

        for (size_t n_remaining = N_MANY - ENGINE_STEP_CHANGES_MAX; n_remaining > 0;) {
                size_t n_removed =
                        n_remaining < ENGINE_STEP_CHANGES_MAX ? n_remaining : ENGINE_STEP_CHANGES_MAX;

                tick(&world);
                n_remaining -= n_removed;
                cr_expect_eq(world.effects.n_changes, n_removed);
                cr_expect_eq(engine_stats(world.engine).n_registrations, n_remaining);
        }
        cr_expect_eq(engine_stats(world.engine).n_bytes, 0);
        cr_expect_gt(engine_next_deadline(world.engine), world.now.mono_ns);
}

Test(disconnect, ends_notifications_before_registrations_are_removed, .init = setup, .fini = teardown) {
        struct request last = watch_nth(1, N_MANY - 1);

        watch_many(1);
        ask(&world, WATCH("b", "key-129", .connection = 2));
        happen(&world, (struct event){ .type = EVENT_CLIENT_DISCONNECTED, .client = S("a") });
        cr_assert(slice_equal(last.key, S("key-129")));
        ask(&world, SET("key-129", "v"));
        cr_expect_str_eq(notified(&world), "b:key-129=v ");
}

Test(disconnect, keeps_registrations_that_the_client_makes_again, .init = setup, .fini = teardown) {
        struct registration *former;

        watch_many(1);
        former = registration_ref(engine_find_registration(world.engine, S("a"), S("key-129")));
        ask(&world, watch_nth(2, N_MANY - 1)); /* the end of connection 1 is reported later */
        cr_expect(!removes_stored(S("key-129")));
        happen(&world, (struct event){ .type = EVENT_NOT_REACHED, .registration = former });
        cr_expect(!removes_stored(S("key-129")));
        registration_unref(former);
        for (int i = 0; i < 3; i++) {
                tick(&world);
                cr_expect(!removes_stored(S("key-129")));
        }
        cr_expect_eq(engine_stats(world.engine).n_registrations, 1);
        ask(&world, SET("key-129", "v"));
        cr_expect_str_eq(notified(&world), "a:key-129=v ");
}

Test(disconnect, frees_the_quota_of_registrations_at_once) {
        struct engine_config config = world_config();

        config.limits.max_registrations = ENGINE_CLIENT_REGISTRATIONS_MIN; /* one client may hold as many */
        world_init(&world, config);
        for (size_t i = 0; i < ENGINE_CLIENT_REGISTRATIONS_MIN; i++)
                ask(&world, watch_nth(1, i));
        happen(&world, (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 1 });
        for (size_t i = 0; i < ENGINE_CLIENT_REGISTRATIONS_MIN; i++)
                cr_assert(asked(&world, watch_nth(2, i), OUTCOME_DONE));
        cr_expect_eq(engine_stats(world.engine).n_registrations, ENGINE_CLIENT_REGISTRATIONS_MIN);
        world_deinit(&world);
}

/*
 * The connection of each of a client's registrations after a restart. Connection 1 has ended
 * meanwhile, and WELCOME lists connection 2 only.
 */
static const struct {
        const char *name;
        uint64_t connections[3];
} restored[] = {
        { "none of the former connection", { 2, 2, 2 } },
        { "all of the former connection", { 1, 1, 1 } },
        { "the first ones of the former connection", { 1, 1, 2 } },
        { "the last one of the former connection", { 2, 2, 1 } },
        { "the middle one of the former connection", { 2, 1, 2 } },
        { "the outer ones of the former connection", { 1, 2, 1 } },
};

Test(disconnect, of_a_former_connection_ends_its_restored_registrations) {
        const struct slice keys[] = { S("k1"), S("k2"), S("k3") };

        for (size_t i = 0; i < N_ROWS(restored); i++) {
                size_t n_former = 0;

                world_init(&world, world_config());
                for (size_t j = 0; j < 3; j++)
                        cr_assert_eq(engine_put_registration(world.engine, S("a"), S(""), keys[j],
                                                             restored[i].connections[j]),
                                     0);
                happen(&world, (struct event){ .type = EVENT_CONNECTIONS_RETAINED,
                                               .connections = (const uint64_t[]){ 2 },
                                               .n_connections = 1 });
                for (size_t j = 0; j < 3; j++) {
                        bool is_former = restored[i].connections[j] == 1;

                        cr_expect_eq(!engine_find_registration(world.engine, S("a"), keys[j]), is_former,
                                     ROW(restored, i));
                        n_former += is_former;
                }
                cr_expect_eq(world.effects.n_changes, n_former, ROW(restored, i));
                ask(&world, WATCH("a", "new", .connection = 2));
                cr_expect_eq(engine_stats(world.engine).n_registrations, 4 - n_former, ROW(restored, i));

                happen(&world, (struct event){ .type = EVENT_CONNECTION_CLOSED, .connection = 2 });
                cr_expect_eq(engine_stats(world.engine).n_registrations, 0, ROW(restored, i));
                world_deinit(&world);
        }
}
