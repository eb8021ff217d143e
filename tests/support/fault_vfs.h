/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A VFS of SQLite that fails on request. It wraps the real VFS and becomes the default. Syncs are counted, not executed.
 */

enum fault_call {
        FAULT_OPEN,
        FAULT_READ,
        FAULT_WRITE,
        FAULT_TRUNCATE,
        FAULT_SYNC,
        FAULT_SIZE,
        FAULT_DELETE,
        FAULT_INDEX, /* the log's index in shared memory grows */
        N_FAULT_CALLS,
};

struct fault {
        const char *name;
        enum fault_call call;
        int code; /* SQLite's, what the call returns */
        enum {
                FAULT_DOES_NOTHING,
                FAULT_DOES_HALF, /* of a write's bytes */
                FAULT_DOES_ALL,
        } does;
};

/* What happens to a file, told before it does. bytes: of a write. */
struct fault_event {
        const char *path;
        enum fault_call call;
        const uint8_t *bytes;
        uint64_t offset; /* of a write; the length that a truncation leaves */
        uint64_t length;
};

/* Once a process. */
void fault_vfs_register(void);

/* The nth call of its kind from now on fails, counted from 1; all later ones too where it lasts. */
void fault_vfs_fail(const struct fault *fault, unsigned nth, bool lasts);

/* All is well again. Returns whether any call has failed. */
bool fault_vfs_heal(void);

/* observe may be NULL. False from it: the call fails, and nothing is done. */
void fault_vfs_observe(bool (*observe)(void *userdata, const struct fault_event *event), void *userdata);
