/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/commit_verification.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "storage/sqlite/database.h"
#include "storage/sqlite/wal_check.h"

#define INDEX_BLOCK_LENGTH  32768
#define INDEX_HEADER_LENGTH 48
#define INDEX_N_FRAMES      16 /* offset of the number of frames, in native byte order */
#define INDEX_SALTS         32

/* Read the index through SQLite: opening and closing the file here would drop the POSIX locks of SQLite. */
static bool read_index(sqlite3 *db, uint8_t *header) {
        volatile void *block = NULL;
        sqlite3_file *file = NULL;

        if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
            !file->pMethods || file->pMethods->iVersion < 2 ||
            file->pMethods->xShmMap(file, 0, INDEX_BLOCK_LENGTH, false, &block) != SQLITE_OK || !block)
                return false;

        memcpy(header, (const void *)block, INDEX_HEADER_LENGTH);
        return true;
}

static bool read_log(const struct directory *directory, struct wal_summary *ret_log) {
        int fd = openat(directory->fd, DIRECTORY_DATABASE "-wal", O_RDONLY | O_CLOEXEC);
        int r;

        if (fd < 0)
                return false;

        r = wal_check(fd, DATABASE_PAGE_SIZE, ret_log);
        close(fd);
        return r == WAL_SOUND;
}

bool commit_verification_run(sqlite3 *db, const struct directory *directory) {
        static const uint8_t no_salts[8];
        uint8_t index[INDEX_HEADER_LENGTH];
        struct wal_summary log;
        uint32_t n_frames;

        if (!read_index(db, index) || !read_log(directory, &log))
                return true;

        memcpy(&n_frames, index + INDEX_N_FRAMES, sizeof(n_frames));
        if (memcmp(index + INDEX_SALTS, log.salts, sizeof(log.salts)) == 0)
                return log.n_committed > n_frames;

        /*
         * If the index has no salts, nothing was committed since it was created. If the salts differ, SQLite
         * will restart the log, and all its frames are in the database already.
         */
        return memcmp(index + INDEX_SALTS, no_salts, sizeof(no_salts)) == 0 && log.n_committed > 0;
}
