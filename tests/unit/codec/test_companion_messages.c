/* SPDX-License-Identifier: Apache-2.0 */

/* Parsing of welcome (common/protocol/companion.h). */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "codec/companion_messages.h"
#include "unit/support/table.h"

#define S   SLICE_LITERAL
#define KEY "0123456789abcdef0123456789abcdef"

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
        { "several, unsorted",
          S(KEY "1\nguarded\n2\n7\n18446744073709551615\n1\n100\n"),
          1,
          true,
          2,
          4,
          { 1, 7, 100, UINT64_MAX } },
};

Test(welcome, parses_with_connections_in_ascending_order) {
        for (size_t i = 0; i < N_ROWS(welcomes); i++) {
                struct welcome welcome;

                cr_assert_eq(welcome_read(welcomes[i].text, &welcome), 0, ROW(welcomes, i));
                cr_expect_eq(memcmp(welcome.key, KEY, sizeof(welcome.key)), 0, ROW(welcomes, i));
                cr_expect_eq(welcome.sequence, welcomes[i].sequence, ROW(welcomes, i));
                cr_expect_eq(welcome.is_guarded, welcomes[i].is_guarded, ROW(welcomes, i));
                cr_expect_eq(welcome.delivered, welcomes[i].delivered, ROW(welcomes, i));
                cr_assert_eq(welcome.n_connections, welcomes[i].n_connections, ROW(welcomes, i));
                for (size_t j = 0; j < welcome.n_connections; j++)
                        cr_expect_eq(welcome.connections[j], welcomes[i].connections[j], ROW(welcomes, i));
                welcome_deinit(&welcome);
        }
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
        { "another guard", S(KEY "1\nwell guarded\n") },
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
                struct welcome welcome = { .n_connections = 99 };

                cr_expect_eq(welcome_read(unreadable[i].text, &welcome), -EBADMSG, ROW(unreadable, i));
                cr_expect_null(welcome.connections, ROW(unreadable, i));
                cr_expect_eq(welcome.n_connections, 99, ROW(unreadable, i));
        }
}
