/* SPDX-License-Identifier: Apache-2.0 */

/* The storage that stores nothing. */

#include <errno.h>
#include <stdlib.h>

#include "storage/storage.h"

static int memory_load(struct storage *storage, const struct storage_sink *sink, struct now now) {
        struct storage_header header;

        (void)storage;
        (void)now;
        storage_header_init(&header);
        return sink->header(sink->userdata, &header);
}

static int memory_commit(struct storage *storage, const struct storage_batch *batch) {
        (void)storage;
        (void)batch;
        return 0;
}

static bool memory_needs_commit(const struct storage *storage, struct now now) {
        (void)storage;
        (void)now;
        return false;
}

static struct storage *memory_close(struct storage *storage) {
        free(storage);
        return NULL;
}

int storage_memory_new(struct storage **ret_storage) {
        static const struct storage_operations operations = {
                .load = memory_load,
                .commit = memory_commit,
                .needs_commit = memory_needs_commit,
                .close = memory_close,
                .is_volatile = true,
        };
        struct storage *storage = malloc(sizeof(*storage));

        if (!storage)
                return -ENOMEM;

        storage->operations = &operations;
        *ret_storage = storage;
        return 0;
}
