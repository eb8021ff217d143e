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

/* Whether read() of up to size bytes gives this text; NULL: EAGAIN. */
static bool reads(int fd, size_t size, const char *text) {
        char bytes[64] = "";
        ssize_t n;

        errno = 0;
        n = read(fd, bytes, size);
        return text ? n == (ssize_t)strlen(text) && strcmp(bytes, text) == 0 : n == -1 && errno == EAGAIN;
}

static ssize_t n_in_socket(void) {
        static char bytes[1 << 20];

        return recv(ours, bytes, sizeof(bytes), MSG_PEEK);
}

Test(read_ahead, receives_all_bytes_with_the_first_read) {
        send_text("packet");
        cr_expect(reads(ours, 1, "p"));
        cr_expect_eq(n_in_socket(), -1);
        cr_expect(read_ahead_has_bytes());
        cr_expect(reads(ours, 2, "ac"));
        cr_expect(reads(ours, 10, "ket"));
        cr_expect_not(read_ahead_has_bytes());
        cr_expect(read_ahead_is_drained(&ahead));
}

Test(read_ahead, receives_from_the_socket_once_per_begin) {
        send_text("one");
        cr_expect(reads(ours, 10, "one"));
        send_text("two");
        cr_expect(reads(ours, 10, NULL));
        cr_expect_eq(n_in_socket(), 3);

        read_ahead_begin(&ahead, ours);
        cr_expect(reads(ours, 10, "two"));
}

Test(read_ahead, fails_without_bytes) {
        cr_expect(reads(ours, 1, NULL));
        cr_expect_not(read_ahead_has_bytes());
        cr_expect(read_ahead_is_drained(&ahead));
}

Test(read_ahead, leaves_in_the_socket_what_exceeds_the_buffer) {
        static char many[2 * sizeof(ahead.buffer)], bytes[sizeof(many)];

        cr_assert_eq(send(theirs, many, sizeof(many), 0), (ssize_t)sizeof(many));
        cr_expect_eq(read(ours, bytes, 1), 1);
        cr_expect_eq(read(ours, bytes, sizeof(bytes)), (ssize_t)sizeof(ahead.buffer) - 1);
        cr_expect_eq(n_in_socket(), (ssize_t)(sizeof(many) - sizeof(ahead.buffer)));
        cr_expect_not(read_ahead_has_bytes());
        cr_expect_not(read_ahead_is_drained(&ahead));
}

Test(read_ahead, receives_large_packets_without_the_buffer) {
        static char many[2 * sizeof(ahead.buffer)], bytes[sizeof(many)];

        memset(many, 'x', sizeof(many));
        cr_assert_eq(send(theirs, many, sizeof(many), 0), (ssize_t)sizeof(many));
        cr_expect_eq(read(ours, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
        cr_expect_arr_eq(bytes, many, sizeof(many));
        cr_expect(reads(ours, 1, NULL));
}

Test(read_ahead, returns_end_of_stream_after_the_last_bytes) {
        char byte;

        send_text("end");
        shutdown(theirs, SHUT_WR);
        cr_expect(reads(ours, 10, "end"));
        read_ahead_begin(&ahead, ours);
        cr_expect_eq(read(ours, &byte, 1), 0);
}

Test(read_ahead, returns_errors_of_the_socket) {
        char byte;

        read_ahead_begin(&ahead, STDIN_FILENO + 1000);
        cr_expect_eq(read(STDIN_FILENO + 1000, &byte, 1), -1);
        cr_expect_eq(errno, EBADF);
}

Test(read_ahead, end_discards_the_buffer) {
        send_text("packet");
        cr_expect(reads(ours, 1, "p"));
        read_ahead_end();
        cr_expect_not(read_ahead_has_bytes());
        send_text("new");
        cr_expect(reads(ours, 1, "n"));
        cr_expect_eq(n_in_socket(), 2);

        read_ahead_begin(&ahead, ours);
        cr_expect_not(read_ahead_has_bytes());
        cr_expect(reads(ours, 10, "ew"));
}

Test(read_ahead, does_not_affect_other_descriptors) {
        int pipe_fds[2];

        cr_assert_eq(pipe(pipe_fds), 0);
        cr_assert_eq(write(pipe_fds[1], "pipe", 4), 4);
        cr_expect(reads(pipe_fds[0], 1, "p"));
        cr_expect_not(read_ahead_has_bytes());
        cr_expect(reads(pipe_fds[0], 10, "ipe"));
        close(pipe_fds[0]);
        close(pipe_fds[1]);
}

static void *read_in_thread(void *userdata) {
        *(bool *)userdata = reads(ours, 1, "p") && n_in_socket() == 5;
        return NULL;
}

Test(read_ahead, does_not_affect_other_threads) {
        bool is_right = false;
        pthread_t thread;

        send_text("packet");
        cr_assert_eq(pthread_create(&thread, NULL, read_in_thread, &is_right), 0);
        pthread_join(thread, NULL);
        cr_expect(is_right);
}
