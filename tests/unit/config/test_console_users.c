/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "config/console_users.h"
#include "unit/support/table.h"

/* SHA-256 of "alice's token" and "bob's token". */
#define ALICE "4d63559a10572d247b6d2d666f8f776c2610b47d33255a6d136746d76f8d970d"
#define BOB   "E1FC7832D069D75663FFB753CFA7192B8938879EFC81576042BBEBDB8D73FFE6"

static char faults[1000];

static void take_fault(void *userdata, const char *where, const char *what) {
        size_t length = strlen(faults);

        (void)userdata;
        snprintf(faults + length, sizeof(faults) - length, "%s: %s\n", strrchr(where, ':') ?: where, what);
}

/* Read a file with this text. */
static struct console_users *read_users(const char *text) {
        char name[] = "/tmp/console-users-XXXXXX";
        struct console_users *users;
        int fd = mkstemp(name);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
        faults[0] = '\0';
        users = console_users_read(name, take_fault, NULL);
        unlink(name);
        return users;
}

Test(console_users, are_found_by_their_token) {
        struct console_users *users = read_users("# who\nalice = " ALICE "\n\nbob x = " BOB "  operator\n");
        const struct console_user *alice, *bob;

        cr_assert_not_null(users, "%s", faults);
        alice = console_users_find(users, SLICE_LITERAL("alice's token"));
        bob = console_users_find(users, SLICE_LITERAL("bob's token"));
        cr_expect_str_eq(alice->name, "alice");
        cr_expect_not(alice->is_operator);
        cr_expect_str_eq(bob->name, "bob x");
        cr_expect(bob->is_operator);
        cr_expect_null(console_users_find(users, SLICE_LITERAL("alice's toke")));
        cr_expect_null(console_users_find(users, SLICE_LITERAL("")));
        cr_expect_null(console_users_find(users, SLICE_LITERAL(ALICE)), "the hash is no token");
        console_users_free(users);
}

static const struct {
        const char *name, *text, *fault;
} wrong[] = {
        { "no hash", "alice = secret\n", ":1: a hash was expected" },
        { "long hash", "alice = " ALICE "0\n", ":1: a hash was expected" },
        { "short hash", "alice = abcd\n", ":1: a hash was expected" },
        { "no digit", "alice = x" BOB "\n", ":1: a hash was expected" },
        { "another word", "alice = " ALICE " admin\n", ":1: nothing or the word operator" },
        { "twice", "alice = " ALICE "\nalice = " BOB "\n", ":2: the name is given twice" },
        { "no name", "= " ALICE "\n", ":1: a name of at most 100 bytes" },
        { "a section", "[users]\nalice = " ALICE "\n", ":1: NAME = HASH or" },
        { "no line", "alice\n", ":1: " },
};

Test(console_users, faults_name_the_line) {
        for (size_t i = 0; i < N_ROWS(wrong); i++) {
                cr_expect_null(read_users(wrong[i].text), ROW(wrong, i));
                cr_expect_eq(strncmp(faults, wrong[i].fault, strlen(wrong[i].fault)), 0, "%s: %s",
                             wrong[i].name, faults);
        }
        cr_expect_null(console_users_read("/nonexistent/users", take_fault, NULL));
}

Test(console_users, empty_file_has_no_user) {
        struct console_users *users = read_users("");

        cr_assert_not_null(users);
        cr_expect_null(console_users_find(users, SLICE_LITERAL("")));
        console_users_free(users);
}

Test(console_users, made_token_is_found_by_its_hash) {
        struct console_token first = console_token_make(), second = console_token_make();
        struct console_users *users;
        char line[200];

        cr_expect_str_neq(first.token, second.token);
        cr_expect_eq(strlen(first.token), 43);
        snprintf(line, sizeof(line), "alice = %s\n", first.hash);
        users = read_users(line);
        cr_assert_not_null(users, "%s", faults);
        cr_expect_not_null(console_users_find(users, slice_from_string(first.token)));
        cr_expect_null(console_users_find(users, slice_from_string(second.token)));
        console_users_free(users);
}
