/* SPDX-License-Identifier: Apache-2.0 */

/* A socket that is kept open until the broker closes the connection. */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mqtt/internal.h"

#define LINGER_MS 2000

struct socket_linger {
        int fd;
        uv_poll_t poll;
        uv_timer_t timer;
        int n_open_handles;
        void (*done)(void *userdata);
        void *userdata;
};

static void linger_on_handle_closed(uv_handle_t *handle) {
        struct socket_linger *linger = handle->data;
        void (*done)(void *userdata) = linger->done;
        void *userdata = linger->userdata;

        if (--linger->n_open_handles > 0)
                return;
        close(linger->fd);
        free(linger);
        done(userdata);
}

static void end_linger(struct socket_linger *linger) {
        if (uv_is_closing((uv_handle_t *)&linger->timer))
                return;
        uv_close((uv_handle_t *)&linger->poll, linger_on_handle_closed);
        uv_close((uv_handle_t *)&linger->timer, linger_on_handle_closed);
}

static void linger_on_timeout(uv_timer_t *timer) {
        end_linger(timer->data);
}

/* Drop what the broker sends until it closes the connection. */
static void linger_on_readable(uv_poll_t *poll, int status, int events) {
        struct socket_linger *linger = poll->data;
        char rest[4096];
        ssize_t n;

        (void)events;
        do {
                n = recv(linger->fd, rest, sizeof(rest), MSG_DONTWAIT);
        } while (n > 0);
        if (status < 0 || n == 0 || errno != EAGAIN)
                end_linger(linger);
}

int client_linger(uv_loop_t *loop, int fd, void (*done)(void *userdata), void *userdata) {
        struct socket_linger *linger = malloc(sizeof(*linger));

        if (!linger)
                return -ENOMEM;
        *linger =
                (struct socket_linger){ .fd = fd, .n_open_handles = 2, .done = done, .userdata = userdata };
        if (uv_poll_init(loop, &linger->poll, fd) < 0) {
                free(linger);
                return -ENOMEM;
        }
        uv_timer_init(loop, &linger->timer);
        linger->poll.data = linger->timer.data = linger;
        uv_poll_start(&linger->poll, UV_READABLE, linger_on_readable);
        uv_timer_start(&linger->timer, linger_on_timeout, LINGER_MS, 0);
        return 0;
}
