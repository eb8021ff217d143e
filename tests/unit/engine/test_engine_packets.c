/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Values and replies that exceed the broker's maximum packet size: PROTOCOL.md "Errors", rows 15
 * and 16.
 */

#include <stdio.h>

#include "protocol/resp3.h"
#include "unit/engine/world.h"

static struct world world;

static void teardown(void) {
        world_deinit(&world);
}

static void setup(void) {
        world_init(&world, world_config());
        engine_set_packet_limits(
                world.engine,
                (struct packet_limits){ .max_bytes = 99, .notification_bytes = 60, .reply_bytes = 40 });
}

TestSuite(packets, .init = setup, .fini = teardown);

/*
 * With a key of 1 byte, a notification of this value has exactly 99 bytes: 60 (notification_bytes),
 * twice the key, and "$30\r\n", the value, "\r\n".
 */
#define FITS     "012345678901234567890123456789"
#define TOO_LONG FITS "0"

Test(packets, limit_the_value_of_a_set_also_without_watchers) {
        cr_expect(asked(&world, SET("k", FITS), OUTCOME_DONE));
        cr_expect(asked(&world, SET("k", TOO_LONG), OUTCOME_VALUE_TOO_LARGE));
        cr_expect_eq(world.effects.n_notifications, 0);
        cr_expect(has(&world, S("k"), S(FITS)));
        cr_expect(asked(&world, SET("new", TOO_LONG), OUTCOME_VALUE_TOO_LARGE));
        cr_expect(has_none(&world, S("new")));

        cr_expect(asked(&world, WATCH("c", "k"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("k", TOO_LONG), OUTCOME_VALUE_TOO_LARGE));
        cr_expect_str_eq(notified(&world), "");
        cr_expect(asked(&world, SET("kk", FITS), OUTCOME_VALUE_TOO_LARGE)); /* the key counts twice */
}

/* A storage may limit an entry: storage_limits(). */
Test(entries, are_limited_by_the_size_of_key_and_value, .fini = teardown) {
        struct engine_config config = world_config();

        config.max_entry_bytes = 5;
        world_init(&world, config);
        cr_expect(asked(&world, SET("key", "12"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("key", "123"), OUTCOME_VALUE_TOO_LARGE));
        cr_expect(has(&world, S("key"), S("12")));
}

Test(packets, are_not_checked_if_the_condition_is_not_met) {
        cr_expect(asked(&world, SET("k", "v"), OUTCOME_DONE));
        cr_expect(asked(&world, SET("k", TOO_LONG, NX), OUTCOME_CONDITION_NOT_MET));
}

Test(packets, are_checked_after_the_quota) {
        struct engine_limits limits = engine_config(world.engine)->limits;

        limits.max_keys = 0;
        engine_set_limits(world.engine, limits);
        cr_expect(asked(&world, SET("k", TOO_LONG), OUTCOME_QUOTA_EXCEEDED));
}

Test(packets, limit_the_reply_to_a_get_with_topic_and_correlation) {
        ask(&world, SET("k", FITS));
        cr_expect(asked(&world,
                        GET("k", .response_topic = S("0123456789"), .correlation_data = S("012345678901")),
                        OUTCOME_VALUE));
        cr_expect(asked(&world,
                        GET("k", .response_topic = S("0123456789"), .correlation_data = S("0123456789012")),
                        OUTCOME_REPLY_TOO_LARGE));
        cr_expect_not(ask(&world, GET("k", .response_topic = S(FITS FITS FITS)))->result.has_version);
        cr_expect(asked(&world, GET("k", .response_topic = S(FITS FITS FITS)), OUTCOME_REPLY_TOO_LARGE));
        cr_expect(
                asked(&world, GET("k", .response_topic = S(FITS FITS FITS), .is_own = true), OUTCOME_VALUE));
}

Test(packets, limit_the_details_of_a_get_with_the_token) {
        struct packet_limits limits = { .max_bytes = 99, .reply_bytes = 40, .details_bytes = 12 };

        engine_set_packet_limits(world.engine, limits);
        ask(&world, SET("k", FITS, FENCE(1, 0, "0123456789")));
        cr_expect(asked(&world, GET("k", .wants_details = true), OUTCOME_VALUE));
        cr_expect(asked(&world, GET("k", .wants_details = true, .response_topic = S("t")),
                        OUTCOME_REPLY_TOO_LARGE));
        cr_expect(asked(&world, GET("k", .response_topic = S("t")), OUTCOME_VALUE));
}

/* Padded, or imported, a token may be longer than a user property. */
Test(packets, limit_the_token_in_the_details_of_a_get) {
        static uint8_t node[UINT16_MAX];
        struct request set = SET("k", "v", .has_fence = true);

        engine_set_packet_limits(world.engine, (struct packet_limits){ 0 });
        set.fence = (struct hlc){ 1, 0, { node, UINT16_MAX - HLC_NUMBERS_MAX } };
        ask(&world, set);
        cr_expect(asked(&world, GET("k", .wants_details = true), OUTCOME_VALUE));
        set.fence = (struct hlc){ 2, 0, { node, UINT16_MAX - HLC_NUMBERS_MAX + 1 } };
        ask(&world, set);
        cr_expect(asked(&world, GET("k", .wants_details = true), OUTCOME_REPLY_TOO_LARGE));
        cr_expect(asked(&world, GET("k"), OUTCOME_VALUE));
}

Test(packets, are_unlimited_by_default) {
        engine_set_packet_limits(world.engine, (struct packet_limits){ 0 });
        cr_expect(asked(&world, SET("k", TOO_LONG), OUTCOME_DONE));
        cr_expect(asked(&world, GET("k"), OUTCOME_VALUE));
        cr_expect(asked(&world, SCAN("*"), OUTCOME_PAGE));
}

Test(packets, end_a_page_early_and_list_every_key_over_several) {
        const struct packet_limits limits = { .max_bytes = 200, .reply_bytes = 20 };
        struct slice token = { 0 };
        size_t n_listed = 0, n_pages = 0;
        char text[SCAN_TOKEN_LENGTH], key[8];

        for (int i = 0; i < 50; i++) {
                snprintf(key, sizeof(key), "key-%02d", i);
                ask(&world,
                    (struct request){ .verb = VERB_SET, .key = slice_from_string(key), .value = S("v") });
        }
        engine_set_packet_limits(world.engine, limits);
        for (bool has_next = true; has_next; n_pages++) {
                const struct scan_page *page = ask(&world, SCAN("*", .value = token))->page;

                cr_assert_not_null(page);
                cr_expect_gt(page->n_entries, 0);
                cr_expect_leq(page->n_entries * resp3_blob_length(6), limits.max_bytes - limits.reply_bytes);
                n_listed += page->n_entries;
                has_next = page->has_next;
                memcpy(text, page->token, sizeof(text));
                token = (struct slice){ (const uint8_t *)text, sizeof(text) };
        }
        cr_expect_eq(n_listed, 50);
        cr_expect_gt(n_pages, 4);
}

Test(packets, refuse_a_page_whose_first_key_does_not_fit) {
        engine_set_packet_limits(world.engine, (struct packet_limits){ 0 });
        ask(&world, SET(FITS FITS FITS, "v"));
        engine_set_packet_limits(world.engine,
                                 (struct packet_limits){ .max_bytes = 150, .reply_bytes = 20 });
        cr_expect(asked(&world, SCAN("*"), OUTCOME_REPLY_TOO_LARGE));
        cr_expect(asked(&world, SCAN("x*"), OUTCOME_PAGE)); /* it does not match */
}
