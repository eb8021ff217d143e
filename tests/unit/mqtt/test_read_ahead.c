/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mqtt/read_ahead.h"

static struct read_ahead ahead;
static int ours, theirs;

static void setup(void) {
        int fds[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        ours = fds[0];
        theirs = fds[1];
        read_ahead_begin(&ahead, ours);
}

static void teardown(void) {
        read_ahead_end();
        close(ours);
        close(theirs);
}

TestSuite(read_ahead, .init = setup, .fini = teardown);

static void send_text(const char *text) {
        cr_assert_eq(send(theirs, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* Reads up to size bytes. They are this text; NULL: there are none yet. */
static bool reads(int fd, size_t size, const char *text) {
        char bytes[64] = "";
        ssize_t n;

        errno = 0;
        n = read(fd, bytes, size);
        return text ? n == (ssize_t)strlen(text) && strcmp(bytes, text) == 0 : n == -1 && errno == EAGAIN;
}

/* How many bytes are still in the socket. */
static ssize_t n_in_socket(void) {
        static char bytes[1 << 20];

        return recv(ours, bytes, sizeof(bytes), MSG_PEEK);
}

Test(read_ahead, takes_at_once_what_has_come) {
        send_text("packet");
        cr_expect(reads(ours, 1, "p"));
        cr_expect_eq(n_in_socket(), -1);
        cr_expect(read_ahead_has_bytes(&ahead));
        cr_expect(reads(ours, 2, "ac"));
        cr_expect(reads(ours, 10, "ket"));
        cr_expect_not(read_ahead_has_bytes(&ahead));
}

Test(read_ahead, asks_the_socket_once) {
        send_text("one");
        cr_expect(reads(ours, 10, "one"));
        send_text("two");
        cr_expect(reads(ours, 10, NULL));
        cr_expect_eq(n_in_socket(), 3);

        read_ahead_begin(&ahead, ours);
        cr_expect(reads(ours, 10, "two"));
}

Test(read_ahead, has_nothing_where_nothing_has_come) {
        cr_expect(reads(ours, 1, NULL));
        cr_expect_not(read_ahead_has_bytes(&ahead));
}

Test(read_ahead, keeps_what_was_not_read) {
        send_text("packet");
        cr_expect(reads(ours, 1, "p"));
        read_ahead_end();
        read_ahead_begin(&ahead, ours);
        cr_expect(reads(ours, 10, "acket"));
}

Test(read_ahead, keeps_no_more_than_it_has_room_for) {
        static char many[2 * sizeof(ahead.bytes)], bytes[sizeof(many)];
        ssize_t n;

        cr_assert_eq(send(theirs, many, sizeof(many), 0), (ssize_t)sizeof(many));
        cr_expect_eq(read(ours, bytes, 1), 1);
        n = read(ours, bytes, sizeof(bytes));
        cr_expect_eq(n, (ssize_t)sizeof(ahead.bytes) - 1);
        cr_expect_eq(n_in_socket(), (ssize_t)(sizeof(many) - sizeof(ahead.bytes)));
}

Test(read_ahead, takes_what_is_large_where_it_is_wanted) {
        static char many[2 * sizeof(ahead.bytes)], bytes[sizeof(many)];

        memset(many, 'x', sizeof(many));
        cr_assert_eq(send(theirs, many, sizeof(many), 0), (ssize_t)sizeof(many));
        cr_expect_eq(read(ours, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
        cr_expect_arr_eq(bytes, many, sizeof(many));
        cr_expect_eq(read(ours, bytes, sizeof(bytes)), -1);
        cr_expect_eq(errno, EAGAIN);
}

Test(read_ahead, tells_that_the_other_end_has_closed_after_what_it_sent) {
        char byte;

        send_text("end");
        shutdown(theirs, SHUT_WR);
        cr_expect(reads(ours, 10, "end"));
        read_ahead_begin(&ahead, ours);
        cr_expect_eq(read(ours, &byte, 1), 0);
}

Test(read_ahead, tells_of_errors) {
        char byte;

        read_ahead_begin(&ahead, STDIN_FILENO + 1000);
        cr_expect_eq(read(STDIN_FILENO + 1000, &byte, 1), -1);
        cr_expect_eq(errno, EBADF);
}

Test(read_ahead, has_nothing_more_where_it_is_not_wanted) {
        send_text("packet");
        cr_expect(reads(ours, 1, "p"));
        read_ahead_drop(&ahead);
        send_text("next");
        cr_expect_not(read_ahead_has_bytes(&ahead));
        cr_expect(reads(ours, 10, NULL));

        read_ahead_begin(&ahead, ours);
        cr_expect(reads(ours, 10, "next"));
}

Test(read_ahead, gives_nobody_the_bytes_of_a_closed_socket) {
        send_text("packet");
        cr_expect(reads(ours, 1, "p"));
        read_ahead_forget(&ahead);
        cr_expect_not(read_ahead_has_bytes(&ahead));
        send_text("new");
        cr_expect(reads(ours, 1, "n"));
        cr_expect_eq(n_in_socket(), 2); /* the system's read */
}

Test(read_ahead, leaves_other_reads_to_the_system) {
        int pipe_fds[2];

        cr_assert_eq(pipe(pipe_fds), 0);
        cr_assert_eq(write(pipe_fds[1], "pipe", 4), 4);
        cr_expect(reads(pipe_fds[0], 1, "p"));
        cr_expect(reads(pipe_fds[0], 10, "ipe"));
        close(pipe_fds[0]);
        close(pipe_fds[1]);

        read_ahead_end();
        send_text("packet");
        cr_expect(reads(ours, 1, "p"));
        cr_expect_eq(n_in_socket(), 5);
}

static void *read_beside(void *userdata) {
        *(bool *)userdata = reads(ours, 1, "p") && n_in_socket() == 5;
        return NULL;
}

Test(read_ahead, leaves_other_threads_reads_to_the_system) {
        bool is_right = false;
        pthread_t thread;

        send_text("packet");
        cr_assert_eq(pthread_create(&thread, NULL, read_beside, &is_right), 0);
        pthread_join(thread, NULL);
        cr_expect(is_right);
}
