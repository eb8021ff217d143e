/* SPDX-License-Identifier: Apache-2.0 */

#include "support/fault_vfs.h"

#include <errno.h>
#include <stddef.h>

struct fault_file {
        sqlite3_file base;
        const char *path;
        sqlite3_int64 real[]; /* the real VFS's file */
};

static sqlite3_vfs *real_vfs;
static const struct fault *active;
static unsigned n_remaining;
static bool is_lasting, has_failed;
static bool (*observer)(void *userdata, const struct fault_event *event);
static void *observer_userdata;

void fault_vfs_fail(const struct fault *fault, unsigned nth, bool lasts) {
        active = fault;
        n_remaining = nth;
        is_lasting = lasts;
        has_failed = false;
}

bool fault_vfs_clear(void) {
        active = NULL;
        return has_failed;
}

void fault_vfs_observe(bool (*observe)(void *userdata, const struct fault_event *event), void *userdata) {
        observer = observe;
        observer_userdata = userdata;
}

static bool is_allowed(struct fault_event event) {
        return !observer || observer(observer_userdata, &event);
}

/* Count a call. Return the fault if this call must fail, else NULL. */
static const struct fault *take_fault(enum fault_call call) {
        if (!active || active->call != call || n_remaining == 0 || --n_remaining > 0)
                return NULL;

        n_remaining = is_lasting;
        has_failed = true;
        errno = active->error ? active->error : EIO;
        return active;
}

static sqlite3_file *real_of(sqlite3_file *file) {
        return (sqlite3_file *)((struct fault_file *)file)->real;
}

#define REAL(file, method, ...) real_of(file)->pMethods->method(real_of(file), ##__VA_ARGS__)

static int fault_close(sqlite3_file *file) {
        return REAL(file, xClose);
}

static int fault_read(sqlite3_file *file, void *bytes, int length, sqlite3_int64 offset) {
        const struct fault *fault = take_fault(FAULT_READ);

        if (fault)
                return fault->code;
        if (!is_allowed((struct fault_event){ .path = ((struct fault_file *)file)->path,
                                              .call = FAULT_READ,
                                              .offset = (uint64_t)offset,
                                              .length = (uint64_t)length }))
                return SQLITE_IOERR_READ;
        return REAL(file, xRead, bytes, length, offset);
}

static int fault_write(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 offset) {
        const struct fault *fault = take_fault(FAULT_WRITE);
        int code;

        if (fault && fault->does == FAULT_DOES_NOTHING)
                return fault->code;
        if (fault && fault->does == FAULT_DOES_HALF)
                length = (length + 1) / 2;
        if (!is_allowed((struct fault_event){ .path = ((struct fault_file *)file)->path,
                                              .call = FAULT_WRITE,
                                              .bytes = bytes,
                                              .offset = (uint64_t)offset,
                                              .length = (uint64_t)length }))
                return SQLITE_IOERR_WRITE;

        code = REAL(file, xWrite, bytes, length, offset);
        if (!fault)
                return code;
        errno = fault->error ? fault->error : EIO;
        return fault->code;
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 length) {
        const struct fault *fault = take_fault(FAULT_TRUNCATE);

        if (fault)
                return fault->code;
        if (!is_allowed((struct fault_event){ .path = ((struct fault_file *)file)->path,
                                              .call = FAULT_TRUNCATE,
                                              .offset = (uint64_t)length }))
                return SQLITE_IOERR_TRUNCATE;
        return REAL(file, xTruncate, length);
}

static int fault_sync(sqlite3_file *file, int flags) {
        const struct fault *fault = take_fault(FAULT_SYNC);

        (void)flags;
        if (fault)
                return fault->code;
        return is_allowed(
                       (struct fault_event){ .path = ((struct fault_file *)file)->path, .call = FAULT_SYNC })
                       ? SQLITE_OK
                       : SQLITE_IOERR_FSYNC;
}

static int fault_file_size(sqlite3_file *file, sqlite3_int64 *ret_length) {
        const struct fault *fault = take_fault(FAULT_SIZE);

        return fault ? fault->code : REAL(file, xFileSize, ret_length);
}

static int fault_lock(sqlite3_file *file, int level) {
        return REAL(file, xLock, level);
}

static int fault_unlock(sqlite3_file *file, int level) {
        return REAL(file, xUnlock, level);
}

static int fault_check_reserved_lock(sqlite3_file *file, int *ret_is_reserved) {
        return REAL(file, xCheckReservedLock, ret_is_reserved);
}

static int fault_file_control(sqlite3_file *file, int operation, void *argument) {
        return REAL(file, xFileControl, operation, argument);
}

static int fault_sector_size(sqlite3_file *file) {
        return REAL(file, xSectorSize);
}

static int fault_device_characteristics(sqlite3_file *file) {
        return REAL(file, xDeviceCharacteristics);
}

static int fault_shm_map(sqlite3_file *file, int region, int length, int extend,
                         void volatile **ret_memory) {
        const struct fault *fault = take_fault(FAULT_INDEX);

        return fault ? fault->code : REAL(file, xShmMap, region, length, extend, ret_memory);
}

static int fault_shm_lock(sqlite3_file *file, int offset, int n, int flags) {
        return REAL(file, xShmLock, offset, n, flags);
}

static void fault_shm_barrier(sqlite3_file *file) {
        REAL(file, xShmBarrier);
}

static int fault_shm_unmap(sqlite3_file *file, int delete) {
        return REAL(file, xShmUnmap, delete);
}

static int fault_fetch(sqlite3_file *file, sqlite3_int64 offset, int length, void **ret_memory) {
        return REAL(file, xFetch, offset, length, ret_memory);
}

static int fault_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *memory) {
        return REAL(file, xUnfetch, offset, memory);
}

static int fault_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *file, int flags,
                      int *ret_flags) {
        static const sqlite3_io_methods methods = {
                .iVersion = 3,
                .xClose = fault_close,
                .xRead = fault_read,
                .xWrite = fault_write,
                .xTruncate = fault_truncate,
                .xSync = fault_sync,
                .xFileSize = fault_file_size,
                .xLock = fault_lock,
                .xUnlock = fault_unlock,
                .xCheckReservedLock = fault_check_reserved_lock,
                .xFileControl = fault_file_control,
                .xSectorSize = fault_sector_size,
                .xDeviceCharacteristics = fault_device_characteristics,
                .xShmMap = fault_shm_map,
                .xShmLock = fault_shm_lock,
                .xShmBarrier = fault_shm_barrier,
                .xShmUnmap = fault_shm_unmap,
                .xFetch = fault_fetch,
                .xUnfetch = fault_unfetch,
        };
        const struct fault *fault = take_fault(FAULT_OPEN);
        int code;

        (void)vfs;
        file->pMethods = NULL;
        if (fault)
                return fault->code;

        code = real_vfs->xOpen(real_vfs, path, real_of(file), flags, ret_flags);
        if (code == SQLITE_OK) {
                file->pMethods = &methods;
                ((struct fault_file *)file)->path = path;
        }
        return code;
}

static int fault_delete(sqlite3_vfs *vfs, const char *path, int sync_directory) {
        const struct fault *fault = take_fault(FAULT_DELETE);

        (void)vfs;
        if (fault)
                return fault->code;
        if (!is_allowed((struct fault_event){ .path = path, .call = FAULT_DELETE }))
                return SQLITE_IOERR_DELETE;
        return real_vfs->xDelete(real_vfs, path, sync_directory);
}

void fault_vfs_register(void) {
        static sqlite3_vfs vfs;

        real_vfs = sqlite3_vfs_find(NULL);
        vfs = *real_vfs; /* the other methods do not use their vfs argument, so they work in a copy */
        vfs.zName = "fault";
        vfs.pNext = NULL;
        vfs.szOsFile = (int)sizeof(struct fault_file) + real_vfs->szOsFile;
        vfs.xOpen = fault_open;
        vfs.xDelete = fault_delete;
        sqlite3_vfs_register(&vfs, true);
}
