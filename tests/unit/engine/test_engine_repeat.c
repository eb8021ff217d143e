/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Repeated requests": which requests are the same request. */

#include "unit/engine/world.h"
#include "unit/support/table.h"

#define UUID   "0123456789ABCDEF"
#define SECOND INT64_C(1000000000)

static struct world world;

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(repeat, .init = setup, .fini = teardown);

/* The fields that identify a request, as sent. */
#define SENT                                                                                                \
        .client = BYTES("c"), .response_topic = BYTES("replies"), .correlation_data = BYTES("1234"),        \
        .payload = BYTES("payload"), .timestamp_text = BYTES("1:0:c"), .has_timestamp = true,               \
        .timestamp = { 1, 0, BYTES("c") }

static size_t n_remembered(void) {
        return engine_stats(world.engine).n_remembered;
}

static const struct {
        const char *name;
        struct request request;
        bool is_same;
} copies[] = {
        { "the same", SET("k", "v", NX, SENT), true },
        { "less is left of its expiry", SET("k", "v", NX, SENT, .expiry_s = 5), true },
        { "another client", SET("k", "v", NX, SENT, .client = BYTES("d")), false },
        { "another response topic", SET("k", "v", NX, SENT, .response_topic = BYTES("other")), false },
        { "other correlation data", SET("k", "v", NX, SENT, .correlation_data = BYTES("1235")), false },
        { "shorter correlation data", SET("k", "v", NX, SENT, .correlation_data = BYTES("123")), false },
        { "another payload", SET("k", "v", NX, SENT, .payload = BYTES("payloaD")), false },
        { "another timestamp", SET("k", "v", NX, SENT, .timestamp_text = BYTES("1:1:c")), false },
        { "a fencing token", SET("k", "v", NX, SENT, .fence_text = BYTES("1:0:c")), false },
        { "a byte moved from the response topic to the client id",
          SET("k", "v", NX, SENT, .client = BYTES("ca"), .response_topic = BYTES("nswers")), false },
        { "another connection", SET("k", "v", NX, SENT, .connection = 2), true },
};

static void check_copy(size_t i) {
        struct request first = SET("k", "v", NX, SENT), copy = copies[i].request;
        const struct reply *reply;
        int64_t version;

        world_deinit(&world);
        world_init(&world, world_config());

        version = version_number(ask(&world, first)->result.version);
        pass_ms(&world, 100);
        reply = ask(&world, copy);

        cr_expect_eq(reply->result.outcome, copies[i].is_same ? OUTCOME_DONE : OUTCOME_CONDITION_NOT_MET,
                     ROW(copies, i));
        cr_expect(reply->result.has_version, ROW(copies, i));
        cr_expect_eq(version_number(reply->result.version), version, ROW(copies, i)); /* the stored one */
}

Test(repeat, has_equal_client_topic_correlation_payload_timestamp_and_fence) {
        for (size_t i = 0; i < N_ROWS(copies); i++)
                check_copy(i);
}

Test(repeat, is_not_executed_again) {
        int64_t version;

        ask(&world, WATCH("w", "k"));
        ask(&world, SET("k", "first", SENT));
        ask(&world, SET("k", "second"));
        ask(&world, SET("k", "first", SENT));
        cr_expect_str_eq(notified(&world), "");
        cr_expect(has(&world, S("k"), S("second")));

        version = version_number(ask(&world, SET("x", "v"))->result.version);
        ask(&world, SET("k", "first", SENT));
        cr_expect_eq(version_number(ask(&world, SET("x", "v"))->result.version), version + 1);
}

static const struct {
        const char *name;
        struct request before; /* prepares the state */
        struct request request;
        struct request between; /* executed in between; it would change the reply */
        enum outcome outcome;
} replies[] = {
        { "DEL", SET("k", "v"), DEL("k", SENT), GET("k"), OUTCOME_DELETED },
        { "DEL of nothing", GET("k"), DEL("k", SENT), SET("k", "v"), OUTCOME_NOTHING },
        { "VDEL", SET("k", "v"), VDEL("k", "v", SENT), GET("k"), OUTCOME_DELETED },
        { "VDEL of another value", SET("k", "v"), VDEL("k", "w", SENT), SET("k", "w"),
          OUTCOME_CONDITION_NOT_MET },
        { "NX not met", SET("k", "v"), SET("k", "w", NX, SENT), DEL("k"), OUTCOME_CONDITION_NOT_MET },
        { "no fencing token", SET("k", "v", FENCE(50, 0, "m")), SET("k", "w", SENT),
          DEL("k", FENCE(50, 0, "m")), OUTCOME_FENCE_REQUIRED },
        { "KEYNOTIFY", GET("k"), WATCH("c", "k", SENT), GET("k"), OUTCOME_DONE },
        { "KEYNOTIFY STOP", WATCH("c", "k"), UNWATCH("c", "k", SENT), GET("k"), OUTCOME_DONE },
        { "KEYNOTIFY STOP of nothing", GET("k"), UNWATCH("c", "k", SENT), WATCH("c", "k"), OUTCOME_NOTHING },
};

Test(repeat, gets_the_first_reply) {
        for (size_t i = 0; i < N_ROWS(replies); i++) {
                struct reply first;
                const struct reply *second;

                world_deinit(&world);
                world_init(&world, world_config());
                ask(&world, replies[i].before);
                first = *ask(&world, replies[i].request);
                cr_expect_eq(first.result.outcome, replies[i].outcome, ROW(replies, i));
                ask(&world, replies[i].between);
                pass_ms(&world, 100);
                second = ask(&world, replies[i].request);
                cr_expect_eq(second->result.outcome, first.result.outcome, ROW(replies, i));
                cr_expect_eq(second->result.has_version, first.result.has_version, ROW(replies, i));
                cr_expect_eq(version_number(second->result.version), version_number(first.result.version),
                             ROW(replies, i));
        }
}

static const struct {
        const char *name;
        struct request request;
        bool is_remembered;
} remembered[] = {
        { "a short correlation with a timestamp", SET("k", "v", SENT), true },
        { "an empty correlation with a timestamp", SET("k", "v", SENT, .correlation_data = BYTES("")),
          true },
        { "15 bytes without a timestamp", DEL("k", .correlation_data = BYTES("0123456789ABCDE")), false },
        { "16 bytes without a timestamp", DEL("k", .correlation_data = BYTES(UUID)), true },
        { "17 bytes without a timestamp", DEL("k", .correlation_data = BYTES(UUID "G")), true },
        { "nothing at all", DEL("k"), false },
        { "a short correlation, KEYNOTIFY", WATCH("c", "k", .correlation_data = BYTES("1234")), false },
        { "a GET", GET("k", SENT, .correlation_data = BYTES(UUID)), false },
        { "a SCAN", SCAN("*", SENT, .correlation_data = BYTES(UUID)), false },
};

Test(repeat, requires_a_timestamp_or_a_unique_correlation) {
        for (size_t i = 0; i < N_ROWS(remembered); i++) {
                world_deinit(&world);
                world_init(&world, world_config());
                ask(&world, remembered[i].request);
                cr_expect_eq(n_remembered(), remembered[i].is_remembered, ROW(remembered, i));
        }
}

Test(repeat, of_a_read_is_executed_again) {
        ask(&world, SET("k", "old"));
        ask(&world, GET("k", SENT));
        ask(&world, SET("k", "new"));
        cr_expect(slice_equal(entry_value(ask(&world, GET("k", SENT))->entry), S("new")));
}

static const struct {
        const char *name;
        uint32_t expiry_s;
        int64_t lifetime_s;
} lifetimes[] = {
        { "none is given: two minutes", 0, 120 },
        { "at least a minute", 1, 60 },
        { "a second less than a minute", 59, 60 },
        { "as long as the message", 61, 61 },
        { "ten minutes", 600, 600 },
        { "at most ten minutes", 601, 600 },
        { "the longest expiry there is", UINT32_MAX, 600 },
};

/* A reply may be remembered for up to a second longer. */
Test(repeat, is_remembered_for_the_message_expiry_within_bounds) {
        for (size_t i = 0; i < N_ROWS(lifetimes); i++) {
                struct request request = SET("k", "v", NX, SENT, .expiry_s = lifetimes[i].expiry_s);

                world_deinit(&world);
                world_init(&world, world_config());
                world.now.mono_ns = 7 * SECOND + SECOND / 2;
                ask(&world, request);
                pass_ns(&world, lifetimes[i].lifetime_s * SECOND - 1);
                tick(&world);
                cr_expect(asked(&world, request, OUTCOME_DONE), ROW(lifetimes, i));
                cr_expect_eq(n_remembered(), 1, ROW(lifetimes, i));

                pass_ns(&world, 2 * SECOND);
                cr_expect(asked(&world, request, OUTCOME_CONDITION_NOT_MET), ROW(lifetimes, i));
        }
}

Test(repeat, is_dropped_by_a_tick_after_its_deadline) {
        ask(&world, SET("k", "v", SENT));
        cr_assert_lt(engine_next_deadline(world.engine), world.now.mono_ns + 122 * SECOND);
        world.now.mono_ns = engine_next_deadline(world.engine);
        tick(&world);
        cr_expect_eq(n_remembered(), 0);
        cr_expect_eq(engine_next_deadline(world.engine), INT64_MAX);
        cr_expect_eq(engine_stats(world.engine).n_dropped_early, 0);
}

/* The registration of the first one may have ended with its connection. */
static const struct {
        const char *name;
        uint64_t connection; /* of the repeated KEYNOTIFY */
        struct event event;
} disconnects[] = {
        { "its connection ended", 2, { .type = EVENT_CONNECTION_CLOSED, .connection = 1 } },
        { "its connection is not listed", 1, { .type = EVENT_CONNECTIONS_RETAINED } },
        { "its client disconnected", 0, { .type = EVENT_CLIENT_DISCONNECTED, .client = BYTES("c") } },
        { "nothing", 1, { .type = EVENT_TICK } },
};

Test(repeat, of_keynotify_registers_again_with_the_first_reply) {
        for (size_t i = 0; i < N_ROWS(disconnects); i++) {
                uint64_t connection = disconnects[i].connection;
                struct request request = WATCH("c", "k", SENT, .connection = connection ? 1 : 0);
                const struct reply *reply;
                int64_t version;

                teardown();
                setup();
                version = version_number(ask(&world, request)->result.version);
                happen(&world, disconnects[i].event);
                pass_ms(&world, 100);
                request.connection = connection;
                reply = ask(&world, request);
                cr_expect_eq(reply->result.outcome, OUTCOME_DONE, ROW(disconnects, i));
                cr_expect_eq(reply->execution, EXECUTION_REPEATED, ROW(disconnects, i));
                cr_expect_eq(version_number(reply->result.version), version, ROW(disconnects, i));
                cr_expect_eq(engine_stats(world.engine).n_registrations, 1, ROW(disconnects, i));
                ask(&world, SET("k", "v"));
                cr_expect_str_eq(notified(&world), "c:k=v ", ROW(disconnects, i));
        }
}

/* Requests are repeated in their order, here by a client after its connection was lost. */
Test(repeat, of_keynotify_and_its_stop_ends_without_registration) {
        const struct request requests[] = {
                WATCH("c", "k", SENT),
                SET("k", "v", SENT, .client = BYTES("d")),
                UNWATCH("c", "k", SENT, .payload = BYTES("stop")),
        };
        int64_t versions[N_ROWS(requests)];

        for (size_t i = 0; i < N_ROWS(requests); i++)
                versions[i] = version_number(ask(&world, requests[i])->result.version);
        pass_ms(&world, 100);
        for (size_t i = 0; i < N_ROWS(requests); i++) {
                const struct reply *reply = ask(&world, requests[i]);

                cr_expect_eq(reply->result.outcome, OUTCOME_DONE, "request %zu", i);
                cr_expect_eq(reply->execution, EXECUTION_REPEATED, "request %zu", i);
                cr_expect_eq(version_number(reply->result.version), versions[i], "request %zu", i);
                cr_expect_str_eq(notified(&world), "", "request %zu", i);
        }
        cr_expect_eq(engine_stats(world.engine).n_registrations, 0);
}

/* The client has had no reply, or an error. It must not get an error for a registration that exists. */
Test(repeat, of_keynotify_gets_the_new_reply_if_the_first_or_the_new_one_is_an_error) {
        struct engine_config config = world_config();
        const struct reply *reply;

        config.limits.max_registrations = 1;
        engine_set_limits(world.engine, config.limits);
        ask(&world, WATCH("d", "k"));
        cr_expect(asked(&world, WATCH("c", "k", SENT), OUTCOME_QUOTA_EXCEEDED));
        ask(&world, UNWATCH("d", "k"));
        for (int i = 0; i < 2; i++) {
                reply = ask(&world, WATCH("c", "k", SENT));
                cr_expect_eq(reply->result.outcome, OUTCOME_DONE);
                cr_expect(reply->result.has_version);
                cr_expect_neq(reply->execution, EXECUTION_REPEATED);
                cr_expect_eq(engine_stats(world.engine).n_registrations, 1);
        }

        ask(&world, UNWATCH("c", "k", SENT, .payload = BYTES("stop")));
        ask(&world, WATCH("c", "k", SENT, .payload = BYTES("another")));
        ask(&world, UNWATCH("c", "k"));
        ask(&world, WATCH("d", "k"));
        reply = ask(&world, WATCH("c", "k", SENT, .payload = BYTES("another")));
        cr_expect_eq(reply->result.outcome, OUTCOME_QUOTA_EXCEEDED);
        cr_expect_neq(reply->execution, EXECUTION_REPEATED);
}

Test(repeat, of_other_writes_is_recognized_after_a_disconnect) {
        ask(&world, SET("k", "v", NX, SENT));
        happen(&world, (struct event){ .type = EVENT_CONNECTIONS_RETAINED });
        cr_expect(asked(&world, SET("k", "v", NX, SENT), OUTCOME_DONE));
}

Test(repeat, is_dropped_early_and_counted_if_memory_is_used_up) {
        struct engine_config config = world_config();
        struct request request = SET("k", "v", NX, SENT);

        config.limits.max_remembered_bytes = 10000;
        world_deinit(&world);
        world_init(&world, config);
        ask(&world, request);
        for (uint64_t i = 0; i < 1000; i++)
                ask(&world, SET("x", "v", SENT, .payload = { (uint8_t *)&i, sizeof(i) }));
        cr_expect_lt(n_remembered(), 200);
        cr_expect_eq(engine_stats(world.engine).n_dropped_early + n_remembered(), 1001);
        cr_expect(asked(&world, request, OUTCOME_CONDITION_NOT_MET));
}

/* The effects have each dropped reply, so that the storage drops it, too. */
Test(repeat, is_dropped_in_the_storage_and_in_steps_after_the_limit_was_lowered) {
        struct engine_config config = world_config();
        size_t n_dropped, n_dropped_in_all = 0;

        for (uint64_t i = 0; i < 500; i++) {
                ask(&world, SET("x", "v", SENT, .payload = { (uint8_t *)&i, sizeof(i) }));
                cr_assert_eq(world.effects.n_forgotten, 0);
        }
        config.limits.max_remembered_bytes = 10000;
        engine_set_limits(world.engine, config.limits);
        cr_expect_eq(n_remembered(), 500);

        for (uint64_t i = 500; n_remembered() > 100; i++) {
                ask(&world, SET("x", "v", SENT, .payload = { (uint8_t *)&i, sizeof(i) }));
                n_dropped = world.effects.n_forgotten;
                cr_assert(n_dropped > 1 && n_dropped < 50, "%zu", n_dropped);
                cr_assert_eq(world.effects.forgotten[0], n_dropped_in_all + 1, "the oldest");
                n_dropped_in_all += n_dropped;
        }
        cr_expect_eq(engine_stats(world.engine).n_dropped_early, n_dropped_in_all);
}
