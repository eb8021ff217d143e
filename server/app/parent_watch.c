/* SPDX-License-Identifier: Apache-2.0 */

/*
 * --exit-with-parent. The kernel sends a signal when the thread that started this process ends. The parent
 * process may still run then, so check its process id at each signal.
 */

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/internal.h"
#include "base/log.h"

#define PARENT_SIGNAL SIGUSR1

static void leave(struct server *server, const char *why) {
        if (!server->is_stopping)
                log_info("%s: stopping", why);
        server_stop(server, EXIT_SUCCESS);
}

static void look_for_parent(uv_signal_t *handle, int number) {
        struct server *server = handle->data;

        (void)number;
        if (getppid() != server->parent)
                leave(server, "the parent process has ended");
}

static void provide(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer) {
        static char unread[256];

        (void)handle;
        (void)suggested;
        *ret_buffer = uv_buf_init(unread, sizeof(unread));
}

static void on_input(uv_stream_t *stream, ssize_t n_bytes, const uv_buf_t *buffer) {
        (void)buffer;
        if (n_bytes >= 0)
                return;

        uv_read_stop(stream);
        leave(stream->data, "stdin has ended");
}

/* Whether stdin is a pipe or socket: the end of /dev/null means nothing, and a terminal has Ctrl-C. */
static bool has_other_end(int fd) {
        struct stat status;

        return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

void server_watch_parent(struct server *server) {
        uv_signal_init(&server->loop, &server->parent_signal);
        uv_pipe_init(&server->loop, &server->input, 0);
        server->parent_signal.data = server;
        server->input.data = server;
        if (!server->config.exit_with_parent)
                return;

        uv_signal_start(&server->parent_signal, look_for_parent, PARENT_SIGNAL);
        prctl(PR_SET_PDEATHSIG, PARENT_SIGNAL);
        look_for_parent(&server->parent_signal, PARENT_SIGNAL); /* the parent may have ended already */
        if (has_other_end(STDIN_FILENO) && uv_pipe_open(&server->input, STDIN_FILENO) == 0)
                uv_read_start((uv_stream_t *)&server->input, provide, on_input);
}
