/* SPDX-License-Identifier: Apache-2.0 */

/*
 * --exit-with-parent. The kernel sends a signal when the thread that started this process ends. The
 * parent process may still run then: it has ended only if getppid() returns another process id than
 * at the start.
 */

#include "app/parent_watch.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/internal.h"
#include "app/stop.h"
#include "base/log.h"

#define PARENT_SIGNAL SIGUSR1

static void stop_because(struct server *server, const char *reason) {
        if (!server->is_stopping)
                log_info("%s: stopping", reason);
        server_stop(server, EXIT_SUCCESS);
}

static void check_parent(uv_signal_t *handle, int number) {
        struct server *server = handle->data;

        (void)number;
        if (getppid() != server->parent.pid)
                stop_because(server, "the parent process has ended");
}

static void discard_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer) {
        static char discarded[256];

        (void)handle;
        (void)suggested;
        *ret_buffer = uv_buf_init(discarded, sizeof(discarded));
}

static void parent_watch_on_input_end(uv_stream_t *stream, ssize_t n_bytes, const uv_buf_t *buffer) {
        (void)buffer;
        if (n_bytes >= 0)
                return;

        uv_read_stop(stream);
        stop_because(stream->data, "stdin has ended");
}

/*
 * Only the end of a pipe or socket stops the store. /dev/null ends at once, and a terminal has
 * Ctrl-C.
 */
static bool is_pipe_or_socket(int fd) {
        struct stat status;

        return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

void server_watch_parent(struct server *server) {
        uv_signal_init(&server->loop, &server->parent.signal);
        uv_pipe_init(&server->loop, &server->parent.stdin_pipe, 0);
        server->parent.signal.data = server;
        server->parent.stdin_pipe.data = server;
        if (!server->config.exit_with_parent)
                return;

        uv_signal_start(&server->parent.signal, check_parent, PARENT_SIGNAL);
        prctl(PR_SET_PDEATHSIG, PARENT_SIGNAL);
        check_parent(&server->parent.signal, PARENT_SIGNAL); /* the parent may have ended already */
        if (is_pipe_or_socket(STDIN_FILENO) && uv_pipe_open(&server->parent.stdin_pipe, STDIN_FILENO) == 0)
                uv_read_start((uv_stream_t *)&server->parent.stdin_pipe, discard_buffer,
                              parent_watch_on_input_end);
}
