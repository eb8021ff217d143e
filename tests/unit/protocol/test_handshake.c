/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "protocol/handshake.h"
#include "unit/support/table.h"

#define S   SLICE_LITERAL
#define KEY "0123456789abcdef0123456789abcdef"

#define RUN    "\x01\x02\x03\x04\x05\x06\x07\x08"
#define NUMBER "\0\0\0\0\0\0\0\x09"
#define SERVED "\0\0\0\0\0\0\0\x07"
#define HELLO  "\x0A" RUN NUMBER SERVED

/* The longest instance id. */
#define INSTANCE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
        const char *name;
        struct slice instance_id, payload;
} hellos[] = {
        { "shortest instance id", S("i"), S(HELLO KEY "i") },
        { "longest instance id", S(INSTANCE), S(HELLO KEY INSTANCE) },
};

Test(handshake, reads_the_hello_that_it_writes) {
        for (size_t i = 0; i < N_ROWS(hellos); i++) {
                struct handshake_hello hello = { .run = 0x0102030405060708,
                                                 .number = 9,
                                                 .served_broker_run = 7,
                                                 .instance_id = hellos[i].instance_id };
                struct handshake_hello parsed;
                struct buf payload = { 0 };

                memcpy(hello.key, KEY, sizeof(hello.key));
                handshake_hello_append(&payload, &hello);
                cr_expect(slice_equal(buf_slice(&payload), hellos[i].payload), ROW(hellos, i));
                cr_assert_eq(handshake_hello_read(buf_slice(&payload), &parsed), 0, ROW(hellos, i));
                cr_expect_eq(parsed.run, hello.run, ROW(hellos, i));
                cr_expect_eq(parsed.number, 9, ROW(hellos, i));
                cr_expect_eq(parsed.served_broker_run, 7, ROW(hellos, i));
                cr_expect_eq(memcmp(parsed.key, KEY, sizeof(parsed.key)), 0, ROW(hellos, i));
                cr_expect(slice_equal(parsed.instance_id, hellos[i].instance_id), ROW(hellos, i));
                buf_deinit(&payload);
        }
}

Test(handshake, rejects_a_malformed_hello) {
        static const struct slice payloads[] = { { 0 },
                                                 S(""),
                                                 S("\x0A"),
                                                 S(HELLO KEY),
                                                 S("\x09" RUN NUMBER SERVED KEY "i"),
                                                 S(RUN NUMBER SERVED KEY "i"),
                                                 S(HELLO KEY INSTANCE "x") };
        struct handshake_hello hello;

        for (size_t i = 0; i < N_ROWS(payloads); i++)
                cr_expect_eq(handshake_hello_read(payloads[i], &hello), -EBADMSG, "row %zu", i);
}

#define PUBLISHED "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
#define N7        "\0\0\0\0\0\0\0\x07"
#define HEAD      "\x0A\0" RUN PUBLISHED

Test(handshake, reads_the_welcome_that_it_writes) {
        static const struct handshake_connection connections[] = {
                { .number = 7, .is_tracked = true },
                { .number = UINT64_MAX, .is_pending = true },
        };
        struct handshake_welcome welcome = { .is_takeover = true,
                                             .broker_run = 0x0102030405060708,
                                             .published = UINT64_MAX };
        struct buf numbers = { 0 }, text = { 0 };
        struct handshake_connection connection;
        struct handshake_welcome parsed;

        for (size_t i = 0; i < N_ROWS(connections); i++)
                handshake_connection_append(&numbers, &connections[i]);
        welcome.connections = buf_slice(&numbers);
        handshake_welcome_append(&text, &welcome);
        cr_expect(slice_equal(buf_slice(&text), S("\x0A\x01" RUN PUBLISHED "\x01" N7 "\x02" PUBLISHED)));

        cr_assert_eq(handshake_welcome_read(buf_slice(&text), &parsed), 0);
        cr_expect(parsed.is_takeover);
        cr_expect_eq(parsed.broker_run, welcome.broker_run);
        cr_expect_eq(parsed.published, welcome.published);
        for (size_t i = 0; i < N_ROWS(connections); i++) {
                cr_assert(handshake_next_connection(&parsed.connections, &connection), "row %zu", i);
                cr_expect_eq(connection.number, connections[i].number, "row %zu", i);
                cr_expect_eq(connection.is_tracked, connections[i].is_tracked, "row %zu", i);
                cr_expect_eq(connection.is_pending, connections[i].is_pending, "row %zu", i);
        }
        cr_expect_not(handshake_next_connection(&parsed.connections, &connection));
        buf_deinit(&numbers);
        buf_deinit(&text);
}

Test(handshake, reads_a_welcome_without_connections) {
        struct handshake_welcome welcome;

        cr_assert_eq(handshake_welcome_read(S(HEAD), &welcome), 0);
        cr_expect_not(welcome.is_takeover);
        cr_expect_eq(welcome.connections.length, 0);
}

static const struct {
        const char *name;
        struct slice text;
} malformed[] = {
        { "empty", S("") },
        { "another version", S("\x09\0" RUN PUBLISHED) },
        { "an unknown flag", S("\x0A\x02" RUN PUBLISHED) },
        { "a cut in the head", S("\x0A\0" RUN "\0\0\0\0\0\0\0") },
        { "a cut in a connection", S(HEAD "\x01" N7 "\x01\0\0\0\0\0\0\0") },
        { "connection 0", S(HEAD "\x01\0\0\0\0\0\0\0\0") },
        { "a connection with an unknown flag", S(HEAD "\x04" N7) },
};

Test(handshake, rejects_a_malformed_welcome) {
        struct handshake_welcome welcome;

        for (size_t i = 0; i < N_ROWS(malformed); i++)
                cr_expect_eq(handshake_welcome_read(malformed[i].text, &welcome), -EBADMSG,
                             ROW(malformed, i));
}
