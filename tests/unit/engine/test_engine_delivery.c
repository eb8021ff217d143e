/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Registrations without the plugin: the broker's acknowledgement tells whether a notification had a
 * subscriber. PROTOCOL.md "Broker abilities".
 */

#include <stdio.h>

#include "support/limits.h"
#include "unit/engine/world.h"

static struct world world;

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(delivery, .init = setup, .fini = teardown);

/* The broker's reply to a notification of the registration: it had a subscriber, or had none. */
static void acknowledge(struct registration *registration, enum event_type type) {
        happen(&world, (struct event){ .type = type, .registration = registration });
}

/* As acknowledge(), of a registration that has not ended. */
static void acknowledge_of(struct slice client, struct slice key, enum event_type type) {
        struct registration *registration = engine_find_registration(world.engine, client, key);

        cr_assert_not_null(registration);
        acknowledge(registration, type);
}

static uint64_t n_registrations(void) {
        return engine_stats(world.engine).n_registrations;
}

static void pass_and_tick(int64_t ms) {
        pass_ms(&world, ms);
        tick(&world);
}

Test(delivery, notification_without_subscriber_ends_that_registration_of_a_subscribed_client) {
        struct registration *registration;

        ask(&world, WATCH("a", "k"));
        ask(&world, WATCH("a", "other"));
        registration = registration_ref(engine_find_registration(world.engine, S("a"), S("k")));
        acknowledge(registration, EVENT_REACHED);
        acknowledge(registration, EVENT_NOT_REACHED);
        cr_expect_eq(world.effects.n_changes, 1);
        acknowledge(registration, EVENT_NOT_REACHED);
        acknowledge(registration, EVENT_REACHED);
        cr_expect_eq(world.effects.n_changes, 0);
        registration_unref(registration);
        cr_expect_eq(n_registrations(), 1);
        ask(&world, SET("other", "v"));
        cr_expect_str_eq(notified(&world), "a:other=v ");
}

Test(delivery, notification_without_subscriber_ends_no_registration_of_a_never_subscribed_client) {
        ask(&world, WATCH("a", "k"));
        ask(&world, WATCH("b", "k"));
        acknowledge_of(S("b"), S("k"), EVENT_REACHED);
        for (int i = 0; i < 3; i++)
                acknowledge_of(S("a"), S("k"), EVENT_NOT_REACHED);
        cr_expect_eq(world.effects.n_changes, 0);
        ask(&world, SET("k", "v"));
        cr_expect_str_eq(notified(&world), "a:k=v b:k=v ");
}

Test(delivery, idle_timeout_after_a_notification_without_subscriber_ends_all_registrations) {
        ask(&world, WATCH("a", "k"));
        ask(&world, WATCH("a", "other"));
        ask(&world, WATCH("b", "k"));
        acknowledge_of(S("a"), S("k"), EVENT_NOT_REACHED);
        cr_expect_eq(engine_next_deadline(world.engine),
                     world.now.mono_ns + TEST_REGISTRATION_TIMEOUT_MS * INT64_C(1000000));

        pass_ns(&world, TEST_REGISTRATION_TIMEOUT_MS * INT64_C(1000000) - 1);
        tick(&world);
        cr_expect_eq(n_registrations(), 3);
        pass_ns(&world, 1);
        tick(&world);
        cr_expect_eq(world.effects.n_changes, 2);
        cr_expect_eq(engine_next_deadline(world.engine), INT64_MAX);
        ask(&world, SET("k", "v"));
        cr_expect_str_eq(notified(&world), "b:k=v ");
}

Test(delivery, next_notification_without_subscriber_does_not_extend_the_idle_timeout) {
        ask(&world, WATCH("a", "k"));
        acknowledge_of(S("a"), S("k"), EVENT_NOT_REACHED);
        pass_and_tick(TEST_REGISTRATION_TIMEOUT_MS - 1);
        acknowledge_of(S("a"), S("k"), EVENT_NOT_REACHED);
        pass_and_tick(1);
        cr_expect_eq(n_registrations(), 0);
}

Test(delivery, any_request_of_the_client_restarts_the_idle_timeout) {
        ask(&world, WATCH("a", "k"));
        ask(&world, WATCH("b", "k"));
        acknowledge_of(S("a"), S("k"), EVENT_NOT_REACHED);
        acknowledge_of(S("b"), S("k"), EVENT_NOT_REACHED);
        pass_and_tick(TEST_REGISTRATION_TIMEOUT_MS - 1);
        ask(&world, (struct request){ .verb = VERB_GET, .key = S("x"), .client = S("a") });
        ask(&world, (struct request){ .verb = VERB_GET, .key = S("x"), .client = S("stranger") });
        pass_and_tick(1);
        cr_expect_null(engine_find_registration(world.engine, S("b"), S("k")));
        pass_and_tick(TEST_REGISTRATION_TIMEOUT_MS - 2);
        cr_expect_eq(n_registrations(), 1);
        pass_and_tick(1);
        cr_expect_eq(n_registrations(), 0);
}

Test(delivery, notification_with_subscriber_stops_the_idle_timeout) {
        ask(&world, WATCH("a", "k"));
        acknowledge_of(S("a"), S("k"), EVENT_NOT_REACHED);
        acknowledge_of(S("a"), S("k"), EVENT_REACHED);
        cr_expect_eq(engine_next_deadline(world.engine), INT64_MAX);
        pass_and_tick(TEST_REGISTRATION_TIMEOUT_MS);
        cr_expect_eq(n_registrations(), 1);
}

Test(delivery, state_of_a_client_ends_with_its_last_registration) {
        ask(&world, WATCH("a", "k"));
        acknowledge_of(S("a"), S("k"), EVENT_NOT_REACHED);
        ask(&world, UNWATCH("a", "k"));
        cr_expect_eq(engine_next_deadline(world.engine), INT64_MAX);

        ask(&world, WATCH("a", "k"));
        acknowledge_of(S("a"), S("k"), EVENT_REACHED);
        ask(&world, UNWATCH("a", "k"));
        ask(&world, WATCH("a", "k"));
        acknowledge_of(S("a"), S("k"), EVENT_NOT_REACHED);
        cr_expect_eq(n_registrations(), 1);
}

/* The reply to the first KEYNOTIFY is remembered, but its registration has ended. */
Test(delivery, repeated_keynotify_registers_again_after_the_idle_timeout) {
        struct request request =
                WATCH("a", "k", .payload = BYTES("p"), .correlation_data = BYTES("0123456789abcdef"));

        ask(&world, request);
        acknowledge_of(S("a"), S("k"), EVENT_NOT_REACHED);
        pass_and_tick(TEST_REGISTRATION_TIMEOUT_MS);
        cr_expect_eq(n_registrations(), 0);
        ask(&world, request);
        cr_expect_eq(n_registrations(), 1);
}

Test(delivery, many_registrations_of_an_idle_client_end_in_several_ticks) {
        char key[16];

        for (int i = 0; i < 2500; i++) {
                snprintf(key, sizeof(key), "k%d", i);
                ask(&world, (struct request){ .verb = VERB_KEYNOTIFY,
                                              .client = S("a"),
                                              .key = slice_from_string(key) });
        }
        acknowledge_of(S("a"), S("k0"), EVENT_NOT_REACHED);
        pass_and_tick(TEST_REGISTRATION_TIMEOUT_MS);
        cr_expect_gt(n_registrations(), 0);
        for (int i = 0; i < 2500 && engine_next_deadline(world.engine) <= world.now.mono_ns; i++)
                tick(&world);
        cr_expect_eq(n_registrations(), 0);
}
