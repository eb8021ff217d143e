/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A VFS of SQLite that fails on request. It wraps the real VFS and becomes the default. Syncs are
 * reported to the observer, not executed.
 */

enum fault_call {
        FAULT_OPEN,
        FAULT_READ,
        FAULT_WRITE,
        FAULT_TRUNCATE,
        FAULT_SYNC,
        FAULT_SIZE,
        FAULT_DELETE,
        FAULT_INDEX, /* xShmMap(): the WAL index in shared memory grows */
        N_FAULT_CALLS,
};

struct fault {
        const char *name;
        enum fault_call call;
        int code;  /* SQLite error code that the call returns */
        int error; /* errno that the call sets; 0: EIO */
        enum {
                FAULT_DOES_NOTHING,
                FAULT_DOES_HALF, /* writes half of the bytes */
                FAULT_DOES_ALL,
        } does; /* before it fails */
};

/*
 * A read, write, truncation, sync or removal, reported before it is executed. bytes: the data of a
 * write.
 */
struct fault_event {
        const char *path;
        enum fault_call call;
        const uint8_t *bytes;
        uint64_t offset; /* of a read or write; for a truncation, the new length */
        uint64_t length;
};

/* Register the VFS. Call once per process. */
void fault_vfs_register(void);

/*
 * Let the nth call of this kind fail, counted from 1 and from now on. lasts: all later calls fail
 * too.
 */
void fault_vfs_fail(const struct fault *fault, unsigned nth, bool lasts);

/* Remove the fault. Returns whether any call has failed. */
bool fault_vfs_clear(void);

/* Set the observer; NULL: none. If it returns false, the call fails and nothing is done. */
void fault_vfs_observe(bool (*observe)(void *userdata, const struct fault_event *event), void *userdata);
