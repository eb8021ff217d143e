/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The MACs and boxes of common/protocol/companion_mac.h. The known answers are those of
 * tests/support/companion.py.
 */

#include <criterion/criterion.h>
#include <errno.h>

#include "protocol/companion_mac.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static uint8_t key[COMPANION_KEY_SIZE];

static void setup(void) {
        cr_assert_eq(companion_box_init(), 0);
        for (size_t i = 0; i < sizeof(key); i++)
                key[i] = (uint8_t)i;
}

TestSuite(mac, .init = setup);
TestSuite(box, .init = setup);

static uint8_t digest_of_some[COMPANION_DIGEST_SIZE], no_digest[COMPANION_DIGEST_SIZE];

static struct companion_request full_request(void) {
        struct companion_digest digest;

        companion_digest_init(&digest);
        companion_digest_add(&digest, S("__ts"), S("1"));
        companion_digest_add(&digest, S(""), S(""));
        companion_digest_add(&digest, S("statestore-mac"), S("x")); /* skipped: an identity property */
        companion_digest_finish(&digest, digest_of_some);
        return (struct companion_request){
                .client_id = S("client"),
                .username = S("user"),
                .response_topic = S("answers"),
                .correlation_data = { (const uint8_t *)"\0\1", 2 },
                .payload = S("payload"),
                .properties = digest_of_some,
                .connection = 7,
                .sequence = 42,
        };
}

Test(mac, equals_that_of_the_python_implementation) {
        struct companion_request full = full_request();
        struct companion_request bare = {
                .client_id = S("c"), .properties = no_digest, .connection = 1, .sequence = 1
        };

        cr_expect_str_eq(companion_mac_compute(&full, key).text, "7:42:72a02cad7874b8cf1d4b543a2c1e6719");
        cr_expect_str_eq(companion_mac_compute(&bare, key).text, "1:1:63d67bf2e00aaeea4ed2cbdcaf042656");
}

static void expect_other(struct companion_request changed, const char *what) {
        struct companion_request full = full_request();
        struct companion_mac mac = companion_mac_compute(&full, key);

        cr_expect(companion_mac_is_valid((struct slice){ (uint8_t *)mac.text, mac.length }, &full, key));
        cr_expect_not(
                companion_mac_is_valid((struct slice){ (uint8_t *)mac.text, mac.length }, &changed, key),
                "%s", what);
}

#define EXPECT_OTHER(member, ...)                                                                           \
        do {                                                                                                \
                struct companion_request changed = full_request();                                          \
                changed.member = __VA_ARGS__;                                                               \
                expect_other(changed, #member);                                                             \
        } while (0)

Test(mac, changes_with_each_part_and_with_absence) {
        EXPECT_OTHER(client_id, S("clienu"));
        EXPECT_OTHER(username, (struct slice){ 0 });
        EXPECT_OTHER(username, S(""));
        EXPECT_OTHER(response_topic, S("answer"));
        EXPECT_OTHER(response_topic, (struct slice){ 0 });
        EXPECT_OTHER(correlation_data, S(""));
        EXPECT_OTHER(correlation_data, (struct slice){ 0 });
        EXPECT_OTHER(payload, S("payloae"));
        EXPECT_OTHER(properties, no_digest);
        EXPECT_OTHER(connection, 8);
        EXPECT_OTHER(sequence, 43);
}

Test(mac, changes_with_each_byte_of_a_long_payload) {
        struct companion_request request = full_request();
        uint8_t payload[1000] = { 0 };
        struct companion_mac mac;

        request.payload = (struct slice){ payload, sizeof(payload) };
        mac = companion_mac_compute(&request, key);
        for (size_t i = 0; i < sizeof(payload); i++) {
                payload[i] = 1;
                cr_expect_str_neq(companion_mac_compute(&request, key).text, mac.text, "byte %zu", i);
                payload[i] = 0;
        }
}

Test(mac, changes_with_the_boundary_between_parts) {
        struct companion_request a = full_request(), b = full_request();

        a.client_id = S("ab");
        a.username = S("c");
        b.client_id = S("a");
        b.username = S("bc");
        cr_expect_str_neq(companion_mac_compute(&a, key).text, companion_mac_compute(&b, key).text);
}

Test(mac, changes_with_the_key) {
        struct companion_request request = full_request();
        uint8_t other[COMPANION_KEY_SIZE] = { 0 };

        cr_expect_str_neq(companion_mac_compute(&request, key).text,
                          companion_mac_compute(&request, other).text);
}

static const char *const unreadable[] = {
        "",
        ":",
        "1:2",
        "1:2:",
        "1:2:00000000000000000000000000000000 ",
        "1:00000000000000000000000000000000",
        "x:2:00000000000000000000000000000000",
        "1:x:00000000000000000000000000000000",
        "1:18446744073709551616:00000000000000000000000000000000",
        ":00000000000000000000000000000000",
};

Test(mac, rejects_malformed_text) {
        struct companion_request request = { 0 };

        for (size_t i = 0; i < N_ROWS(unreadable); i++)
                cr_expect_eq(companion_mac_read(slice_from_string(unreadable[i]), &request), -EINVAL, "%s",
                             unreadable[i]);
        cr_expect_eq(companion_mac_read(S("1:2:00000000000000000000000000000000"), &request), 0);
        cr_expect_eq(request.connection, 1);
        cr_expect_eq(request.sequence, 2);
}
