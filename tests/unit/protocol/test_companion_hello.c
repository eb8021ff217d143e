/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "protocol/companion_hello.h"
#include "unit/support/table.h"

#define S   SLICE_LITERAL
#define KEY "0123456789abcdef0123456789abcdef"

/* The longest instance id. */
#define INSTANCE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
        const char *name;
        struct slice instance_id, payload;
} hellos[] = {
        { "shortest instance id", S("i"), S(KEY "i") },
        { "longest instance id", S(INSTANCE), S(KEY INSTANCE) },
};

Test(hello, parses_what_it_writes) {
        for (size_t i = 0; i < N_ROWS(hellos); i++) {
                struct companion_hello hello = { .instance_id = hellos[i].instance_id }, parsed;
                uint8_t bytes[COMPANION_HELLO_MAX];
                struct slice payload = { bytes, 0 };

                memcpy(hello.key, KEY, sizeof(hello.key));
                payload.length = companion_hello_write(&hello, bytes);
                cr_expect(slice_equal(payload, hellos[i].payload), ROW(hellos, i));
                cr_assert_eq(companion_hello_read(payload, &parsed), 0, ROW(hellos, i));
                cr_expect_eq(memcmp(parsed.key, KEY, sizeof(parsed.key)), 0, ROW(hellos, i));
                cr_expect(slice_equal(parsed.instance_id, hellos[i].instance_id), ROW(hellos, i));
        }
}

Test(hello, is_rejected_if_its_length_is_not_valid) {
        static const struct slice payloads[] = { { 0 }, S(""), S("0123"), S(KEY), S(KEY INSTANCE "x") };
        struct companion_hello hello;

        for (size_t i = 0; i < N_ROWS(payloads); i++)
                cr_expect_eq(companion_hello_read(payloads[i], &hello), -EBADMSG, "row %zu", i);
}

static const struct {
        const char *name;
        struct slice text;
        uint64_t sequence;
        bool is_guarded;
        uint64_t delivered;
        size_t n_connections;
        uint64_t connections[4];
} welcomes[] = {
        { "no connections", S(KEY "0\nguarded\n0\n"), 0, true, 0, 0, { 0 } },
        { "unguarded", S(KEY "7\nunguarded\n9\n"), 7, false, 9, 0, { 0 } },
        { "one",
          S(KEY "18446744073709551615\nguarded\n18446744073709551615\n7\n"),
          UINT64_MAX,
          true,
          UINT64_MAX,
          1,
          { 7 } },
        { "several",
          S(KEY "1\nguarded\n2\n1\n7\n100\n18446744073709551615\n"),
          1,
          true,
          2,
          4,
          { 1, 7, 100, UINT64_MAX } },
};

Test(welcome, parses_what_it_writes) {
        for (size_t i = 0; i < N_ROWS(welcomes); i++) {
                uint64_t connections[4];
                struct companion_welcome welcome = { .sequence = welcomes[i].sequence,
                                                     .is_guarded = welcomes[i].is_guarded,
                                                     .delivered = welcomes[i].delivered,
                                                     .connections = connections,
                                                     .n_connections = welcomes[i].n_connections },
                                         parsed;
                struct buf text = { 0 };

                memcpy(welcome.mac_key, KEY, sizeof(welcome.mac_key));
                memcpy(connections, welcomes[i].connections, sizeof(connections));
                companion_welcome_append(&text, &welcome);
                cr_expect(slice_equal(buf_slice(&text), welcomes[i].text), ROW(welcomes, i));
                cr_assert_eq(companion_welcome_read(buf_slice(&text), &parsed), 0, ROW(welcomes, i));
                cr_expect_eq(memcmp(parsed.mac_key, KEY, sizeof(parsed.mac_key)), 0, ROW(welcomes, i));
                cr_expect_eq(parsed.sequence, welcomes[i].sequence, ROW(welcomes, i));
                cr_expect_eq(parsed.is_guarded, welcomes[i].is_guarded, ROW(welcomes, i));
                cr_expect_eq(parsed.delivered, welcomes[i].delivered, ROW(welcomes, i));
                cr_assert_eq(parsed.n_connections, welcomes[i].n_connections, ROW(welcomes, i));
                for (size_t j = 0; j < parsed.n_connections; j++)
                        cr_expect_eq(parsed.connections[j], welcomes[i].connections[j], ROW(welcomes, i));
                companion_welcome_deinit(&parsed);
                buf_deinit(&text);
        }
}

Test(welcome, parses_to_connections_in_ascending_order) {
        static const uint64_t ascending[] = { 1, 7, 100, UINT64_MAX };
        struct companion_welcome welcome;

        cr_assert_eq(
                companion_welcome_read(S(KEY "1\nguarded\n2\n7\n18446744073709551615\n1\n100\n"), &welcome),
                0);
        cr_assert_eq(welcome.n_connections, N_ROWS(ascending));
        for (size_t i = 0; i < N_ROWS(ascending); i++)
                cr_expect_eq(welcome.connections[i], ascending[i]);
        companion_welcome_deinit(&welcome);
}

static const struct {
        const char *name;
        struct slice text;
} unreadable[] = {
        { "nothing", S("") },
        { "absent", { NULL, 0 } },
        { "a short key", S("0123456789\n1\n") },
        { "no sequence", S(KEY) },
        { "no guard", S(KEY "1\n") },
        { "another guard", S(KEY "1\nfixed\n0\n") },
        { "no line end after the guard word", S(KEY "1\nguarded") },
        { "no delivered sequence", S(KEY "1\nguarded\n") },
        { "a delivered sequence that is not a number", S(KEY "1\nguarded\nx\n1\n") },
        { "no line end after the delivered sequence", S(KEY "1\nguarded\n2") },
        { "no line end after the last number", S(KEY "1\nguarded\n0\n2\n1") },
        { "no number", S(KEY "1\nguarded\n0\nx\n") },
        { "an empty line", S(KEY "1\nguarded\n0\n\n1\n") },
        { "a number past 64 bits", S(KEY "1\nguarded\n0\n18446744073709551616\n") },
        { "an invalid number after a valid one", S(KEY "1\nguarded\n0\n1\n-2\n") },
        { "CR LF", S(KEY "1\nguarded\n0\n1\r\n") },
};

Test(welcome, is_rejected_if_any_part_is_malformed) {
        for (size_t i = 0; i < N_ROWS(unreadable); i++) {
                struct companion_welcome welcome = { .n_connections = 99 };

                cr_expect_eq(companion_welcome_read(unreadable[i].text, &welcome), -EBADMSG,
                             ROW(unreadable, i));
                cr_expect_null(welcome.connections, ROW(unreadable, i));
                cr_expect_eq(welcome.n_connections, 99, ROW(unreadable, i));
        }
}
