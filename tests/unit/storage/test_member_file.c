/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/etcd/member_file.h"

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

/* Runs in a new process: return whether another process, `expected`, has this number. */
static bool another_process_has(pid_t expected, uint64_t expected_member) {
        struct member_file file;
        uint64_t member;
        pid_t process;

        return member_file_take(&file) == -EBUSY && member_file_find(directory, &process, &member) == 0 &&
               process == expected && member == expected_member;
}

static void expect_in_new_process(uint64_t expected_member) {
        pid_t parent = getpid(), child = fork();
        int status;

        if (child == 0)
                _exit(!another_process_has(parent, expected_member));
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_expect_eq(status, 0);
}

Test(member_file, has_one_process_which_is_found) {
        struct member_file file;

        cr_assert_eq(member_file_take(&file), 0);
        expect_in_new_process(0);
        member_file_put(&file);
        expect_in_new_process(file.member);
        close(file.fd);
}

Test(member_file, process_that_has_ended_is_not_found) {
        uint64_t member;
        pid_t process;

        cr_expect_eq(member_file_find(directory, &process, &member), -ESRCH);
        number_of_process(true);
        cr_expect_eq(member_file_find(directory, &process, &member), -ESRCH);
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
