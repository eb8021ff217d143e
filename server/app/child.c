/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Only the child has the other end of its output pipe, so end of file on the pipe means that the
 * child has ended. Neither SIGCHLD nor a waiting thread is needed.
 */

#include "app/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define EXIT_NOT_STARTED 127

struct child {
        struct child_callbacks callbacks;
        uv_pipe_t output;
        pid_t pid; /* 0: it has ended */
        char line[CHILD_LINE_MAX];
        size_t length; /* of the part of the line read so far */
        char chunk[4096];
};

/* Runs in the new process, between fork and exec. */
static _Noreturn void exec_child(char *const *arguments, pid_t parent, int input_fd, int output_fd) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /*
         * Otherwise exec of a program with file capabilities or a set-id bit clears
         * PR_SET_PDEATHSIG.
         */
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (getppid() != parent)
                _exit(EXIT_NOT_STARTED);

        setsid();
        signal(SIGPIPE, SIG_DFL);
        if (dup2(input_fd, STDIN_FILENO) < 0 || dup2(output_fd, STDOUT_FILENO) < 0 ||
            dup2(output_fd, STDERR_FILENO) < 0)
                _exit(EXIT_NOT_STARTED);

        close_range(STDERR_FILENO + 1, ~0U, 0);
        execv(arguments[0], arguments);
        dprintf(STDERR_FILENO, "cannot be run: %s\n", strerror(errno));
        _exit(EXIT_NOT_STARTED);
}

static void reap_child(struct child *child) {
        if (child->pid == 0)
                return;

        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        child->pid = 0;
}

static void collect_lines(struct child *child, const char *bytes, size_t n_bytes) {
        for (size_t i = 0; i < n_bytes; i++) {
                if (bytes[i] != '\n') {
                        if (child->length < sizeof(child->line) - 1)
                                child->line[child->length++] = bytes[i];
                        continue;
                }
                child->line[child->length] = '\0';
                child->length = 0;
                child->callbacks.line(child->callbacks.userdata, child->line);
        }
}

static void provide_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer) {
        struct child *child = handle->data;

        (void)suggested;
        *ret_buffer = uv_buf_init(child->chunk, sizeof(child->chunk));
}

static void child_on_read(uv_stream_t *stream, ssize_t n_bytes, const uv_buf_t *buffer) {
        struct child *child = stream->data;

        if (n_bytes >= 0) {
                collect_lines(child, buffer->base, (size_t)n_bytes);
                return;
        }
        uv_read_stop(stream);
        reap_child(child);
        child->callbacks.ended(child->callbacks.userdata);
}

/* Returns the read end of the output pipe, or -errno. */
static int fork_child(struct child *child, char *const *arguments, int input_fd) {
        pid_t parent = getpid();
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;

        child->pid = fork();
        if (child->pid == 0)
                exec_child(arguments, parent, input_fd, ends[1]);
        if (child->pid < 0) {
                int r = -errno;

                close(ends[0]);
                close(ends[1]);
                return r;
        }

        close(ends[1]);
        return ends[0];
}

int child_start(struct child **ret_child, uv_loop_t *loop, char *const *arguments, int input_fd,
                const struct child_callbacks *callbacks) {
        CLEANUP(cleanup_free) struct child *child = calloc(1, sizeof(*child));
        int output_fd;

        if (!child)
                return -ENOMEM;

        output_fd = fork_child(child, arguments, input_fd);
        if (output_fd < 0)
                return output_fd;

        child->callbacks = *callbacks;
        uv_pipe_init(loop, &child->output, 0);
        child->output.data = child;
        uv_pipe_open(&child->output, output_fd);
        uv_read_start((uv_stream_t *)&child->output, provide_buffer, child_on_read);
        *ret_child = take_ptr(&child);
        return 0;
}

static void free_closed(uv_handle_t *handle) {
        free(handle->data);
}

struct child *child_stop(struct child *child) {
        if (!child)
                return NULL;

        reap_child(child);
        uv_close((uv_handle_t *)&child->output, free_closed);
        return NULL;
}
