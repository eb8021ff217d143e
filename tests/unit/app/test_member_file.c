/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/member_file.h"

static char directory[] = "/tmp/statestore-member-XXXXXX";
static char name[sizeof(directory) + sizeof("/member")];

static void setup(void) {
        cr_assert_not_null(mkdtemp(directory));
        snprintf(name, sizeof(name), "%s/member", directory);
        setenv("RUNTIME_DIRECTORY", directory, 1);
}

static void teardown(void) {
        unlink(name);
        rmdir(directory);
}

TestSuite(member_file, .init = setup, .fini = teardown);

/* Return the number that a process takes, which ends afterwards, and serves before or not. */
static uint64_t number_of_process(bool serves) {
        struct member_file file;

        cr_assert_eq(member_file_take(&file), 0);
        cr_assert_neq(file.member, 0);
        if (serves)
                member_file_put(&file);
        close(file.fd);
        return file.member;
}

Test(member_file, process_that_served_leaves_its_number) {
        uint64_t member = number_of_process(true);

        cr_expect_eq(number_of_process(true), member);
        cr_expect_eq(number_of_process(false), member);
}

Test(member_file, process_that_did_not_serve_leaves_no_number) {
        uint64_t member = number_of_process(true);

        number_of_process(false);
        cr_expect_neq(number_of_process(false), member);
}

Test(member_file, zeros_are_no_number) {
        int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        cr_assert_eq(ftruncate(fd, 8), 0);
        close(fd);
        number_of_process(true);
}

Test(member_file, has_one_process) {
        struct member_file file, other;

        cr_assert_eq(member_file_take(&file), 0);
        cr_expect_eq(member_file_take(&other), -EBUSY);
        close(file.fd);
}

Test(member_file, symbolic_link_is_not_followed) {
        struct member_file file;

        cr_assert_eq(symlink("/dev/null", name), 0);
        cr_expect_eq(member_file_take(&file), -ELOOP);
}

Test(member_file, directory_that_does_not_exist_is_an_error) {
        struct member_file file;

        setenv("RUNTIME_DIRECTORY", "/no/such/directory", 1);
        cr_expect_eq(member_file_take(&file), -ENOENT);
}

Test(member_file, without_a_directory_each_process_has_another_number) {
        struct member_file file, other;

        unsetenv("RUNTIME_DIRECTORY");
        cr_assert_eq(member_file_take(&file), 0);
        cr_assert_eq(member_file_take(&other), 0);
        cr_expect_neq(file.member, other.member);
        member_file_put(&file);
}
