/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/regular_file.h"

#define S SLICE_LITERAL

static char name[64];
static struct buf content;

static void name_fd(int fd) {
        cr_assert(fd >= 0);
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
}

/* Read the file and check it; both must have the same result. */
static int read_file(const char *file, size_t length_max) {
        int r;

        buf_reset(&content);
        r = regular_file_read(file, length_max, &content);
        cr_expect_eq(regular_file_check(file, length_max), r);
        return r;
}

static bool is_fault(int r, const char *expected) {
        return strcmp(regular_file_fault(r, 3).text, expected) == 0;
}

Test(regular_file, is_read_up_to_its_limit) {
        int fd = memfd_create("file", 0);

        name_fd(fd);
        cr_assert_eq(write(fd, "abcd", 4), 4);
        cr_expect_eq(read_file(name, 4), 0);
        cr_expect(slice_equal(buf_slice(&content), S("abcd")));
        cr_expect_eq(read_file(name, 3), REGULAR_FILE_TOO_LONG);
        cr_expect(is_fault(REGULAR_FILE_TOO_LONG, "longer than 3 bytes"));
        close(fd);
        buf_deinit(&content);
}

/* The length of a file in /proc is not known before it is read. */
Test(regular_file, file_in_proc_has_the_same_limit) {
        cr_expect_eq(regular_file_read("/proc/self/status", 3, &content), REGULAR_FILE_TOO_LONG);
        buf_deinit(&content);
}

/* The write end of the pipe stays open, so reading from the pipe would never end. */
Test(regular_file, other_kinds_are_not_read) {
        int ends[2];

        cr_assert_eq(pipe(ends), 0);
        name_fd(ends[0]);
        cr_expect_eq(read_file(name, 3), REGULAR_FILE_NOT_REGULAR);
        cr_expect_eq(read_file("/dev/zero", 3), REGULAR_FILE_NOT_REGULAR);
        cr_expect_eq(read_file("/tmp", 3), REGULAR_FILE_NOT_REGULAR);
        cr_expect(is_fault(REGULAR_FILE_NOT_REGULAR, "not a regular file"));
        buf_deinit(&content);
}

Test(regular_file, missing_file_is_an_error) {
        cr_expect_eq(read_file("/no/such/file", 3), -ENOENT);
        cr_expect(is_fault(-ENOENT, "No such file or directory"));
        buf_deinit(&content);
}
