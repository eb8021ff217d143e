/* SPDX-License-Identifier: Apache-2.0 */

/* What the broker's plugin says: common/companion.h. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "proto/broker_messages.h"
#include "unit/table.h"

#define S    SLICE_LITERAL
#define SEAL "0123456789abcdef0123456789abcdef"

static const struct {
        const char *name;
        struct slice seal, stamped_seal, client_id;
        bool is_valid;
        uint64_t connection;
} stamps[] = {
        { "a stamp", S(SEAL), S(SEAL ":1"), S("c"), true, 1 },
        { "the largest number", S(SEAL), S(SEAL ":18446744073709551615"), S("c"), true, UINT64_MAX },
        { "a client id of any text", S(SEAL), S(SEAL ":1"), S("a/+#:\xC3\xA4"), true, 1 },
        { "no plugin has proven to be there", { NULL, 0 }, S(SEAL ":1"), S("c"), false, 0 },
        { "no plugin, and an empty seal", { NULL, 0 }, S(":1"), S("c"), false, 0 },
        { "another seal", S(SEAL), S("0123456789abcdef0123456789abcdeF:1"), S("c"), false, 0 },
        { "the start of the seal", S(SEAL), S("0123456789abcdef:1"), S("c"), false, 0 },
        { "more than the seal", S(SEAL), S(SEAL "0:1"), S("c"), false, 0 },
        { "no stamp", S(SEAL), { NULL, 0 }, S("c"), false, 0 },
        { "no number", S(SEAL), S(SEAL), S("c"), false, 0 },
        { "an empty number", S(SEAL), S(SEAL ":"), S("c"), false, 0 },
        { "the number 0", S(SEAL), S(SEAL ":0"), S("c"), false, 0 },
        { "a number with more behind it", S(SEAL), S(SEAL ":1:2"), S("c"), false, 0 },
        { "a number past 64 bits", S(SEAL), S(SEAL ":18446744073709551616"), S("c"), false, 0 },
        { "a number that is none", S(SEAL), S(SEAL ":x"), S("c"), false, 0 },
        { "no client id", S(SEAL), S(SEAL ":1"), { NULL, 0 }, false, 0 },
        { "an empty client id", S(SEAL), S(SEAL ":1"), S(""), false, 0 },
};

static void add(struct message *message, struct slice name, struct slice value) {
        if (value.data)
                message->user_properties[message->n_user_properties++] =
                        (struct user_property){ name, value };
}

Test(stamp, counts_only_with_the_seal_of_the_broker) {
        for (size_t i = 0; i < N_ROWS(stamps); i++) {
                struct message message = { 0 };
                struct stamp stamp = { .connection = 99 };

                add(&message, S("statestore-seal"), stamps[i].stamped_seal);
                add(&message, S("statestore-client-id"), stamps[i].client_id);
                cr_expect_eq(stamp_read(&message, stamps[i].seal, &stamp), stamps[i].is_valid,
                             ROW(stamps, i));
                cr_expect_eq(stamp.connection, stamps[i].is_valid ? stamps[i].connection : 99,
                             ROW(stamps, i));
                if (stamps[i].is_valid)
                        cr_expect(slice_equal(stamp.client_id, stamps[i].client_id), ROW(stamps, i));
        }
}

Test(stamp, may_bear_a_user_name) {
        struct message message = { 0 };
        struct stamp stamp;

        add(&message, S("statestore-seal"), S(SEAL ":1"));
        add(&message, S("statestore-client-id"), S("c"));
        cr_assert(stamp_read(&message, S(SEAL), &stamp));
        cr_expect_null(stamp.username.data);
        add(&message, S("statestore-username"), S("user"));
        cr_assert(stamp_read(&message, S(SEAL), &stamp));
        cr_expect(slice_equal(stamp.username, S("user")));
}

static const struct {
        const char *name;
        struct slice payload;
        size_t n_connections;
        uint64_t connections[4];
} welcomes[] = {
        { "no connections", S(SEAL "\n"), 0, { 0 } },
        { "no connections, no line end", S(SEAL), 0, { 0 } },
        { "one", S(SEAL "\n7\n"), 1, { 7 } },
        { "several, in no order",
          S(SEAL "\n7\n18446744073709551615\n1\n100\n"),
          4,
          { 1, 7, 100, UINT64_MAX } },
        { "no line end behind the last", S(SEAL "\n2\n1"), 2, { 1, 2 } },
};

Test(welcome, gives_the_seal_and_the_connections_in_order) {
        for (size_t i = 0; i < N_ROWS(welcomes); i++) {
                struct slice seal;
                uint64_t *connections;
                size_t n_connections;

                cr_assert_eq(welcome_read(welcomes[i].payload, &seal, &connections, &n_connections), 0,
                             ROW(welcomes, i));
                cr_expect(slice_equal(seal, S(SEAL)), ROW(welcomes, i));
                cr_assert_eq(n_connections, welcomes[i].n_connections, ROW(welcomes, i));
                for (size_t j = 0; j < n_connections; j++)
                        cr_expect_eq(connections[j], welcomes[i].connections[j], ROW(welcomes, i));
                free(connections);
        }
}

static const struct {
        const char *name;
        struct slice payload;
} unreadable[] = {
        { "nothing", S("") },
        { "absent", { NULL, 0 } },
        { "a short seal", S("0123456789\n1\n") },
        { "a long seal", S(SEAL "0\n1\n") },
        { "no number", S(SEAL "\nx\n") },
        { "an empty line", S(SEAL "\n\n1\n") },
        { "a number past 64 bits", S(SEAL "\n18446744073709551616\n") },
        { "a number after a good one", S(SEAL "\n1\n-2\n") },
        { "CR LF", S(SEAL "\n1\r\n") },
};

Test(welcome, is_refused_whole_where_any_of_it_cannot_be_read) {
        for (size_t i = 0; i < N_ROWS(unreadable); i++) {
                struct slice seal = { 0 };
                uint64_t *connections = NULL;
                size_t n_connections = 99;

                cr_expect_eq(welcome_read(unreadable[i].payload, &seal, &connections, &n_connections),
                             -EBADMSG, ROW(unreadable, i));
                cr_expect_null(connections, ROW(unreadable, i));
                cr_expect_eq(n_connections, 99, ROW(unreadable, i));
        }
}

Test(connection_text, is_the_number_with_a_nul_behind_it) {
        cr_expect_str_eq(connection_text(1).text, "1");
        cr_expect_eq(connection_text(1).length, 1);
        cr_expect_str_eq(connection_text(UINT64_MAX).text, "18446744073709551615");
        cr_expect_eq(connection_text(UINT64_MAX).length, 20);
}
