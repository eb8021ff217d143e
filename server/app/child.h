/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

/*
 * A process of ours that does not outlive us, however we end: the kernel kills it when we are gone. It has a session of its
 * own, so that a terminal's Ctrl-C is for us alone, and none of our files but its input.
 */
struct child;

struct child_callbacks {
        /* A line that it wrote to stdout or stderr, without its end; cut to CHILD_LINE_MAX. */
        void (*line)(void *userdata, const char *line);

        /* It has ended. child_stop() is still to be called. */
        void (*ended)(void *userdata);
        void *userdata;
};

#define CHILD_LINE_MAX 1024

/*
 * Starts the program arguments[0], a path, with input_fd as its stdin; the caller keeps that. Returns 0 or -errno; what goes wrong
 * in the child itself is a line, and its end. Only the main thread may call this: the kernel takes its end for ours.
 */
int child_start(struct child **ret_child, uv_loop_t *loop, char *const *arguments, int input_fd,
                const struct child_callbacks *callbacks);

/* Kills it, if it is still there, and frees the child. No callback comes any more. Accepts NULL, returns NULL. */
struct child *child_stop(struct child *child);
