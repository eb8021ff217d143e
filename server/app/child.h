/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

/*
 * A child process that ends with this process: the kernel kills it when this process is gone. It
 * runs in a session of its own, so that Ctrl-C in a terminal does not reach it. It inherits no file
 * descriptors except its stdin. The set-user-id bit, the set-group-id bit and the capabilities of
 * its program have no effect.
 */
struct child;

struct child_callbacks {
        /*
         * A line that the child wrote to stdout or stderr, without the newline; truncated to
         * CHILD_LINE_MAX.
         */
        void (*line)(void *userdata, const char *line);

        /* The child has ended. The caller must still call child_stop(). */
        void (*ended)(void *userdata);
        void *userdata;
};

#define CHILD_LINE_MAX 1024

/*
 * Start the program arguments[0], a path, with input_fd as its stdin. The caller keeps input_fd.
 * Returns 0 or -errno. If exec fails in the child, line() is called with the error, and then
 * ended(). Only the main thread may call this function: the kernel kills the child when the calling
 * thread ends.
 */
int child_start(struct child **ret_child, uv_loop_t *loop, char *const *arguments, int input_fd,
                const struct child_callbacks *callbacks);

/*
 * Kill the child if it is running, and free it. No callback is called afterwards. Accepts NULL;
 * always returns NULL.
 */
struct child *child_stop(struct child *child);
