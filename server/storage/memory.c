/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "storage/storage.h"

static int memory_load(struct storage *storage, const struct storage_sink *sink, struct now now) {
        struct storage_header header = { 0 };
        uint64_t instance[2];

        (void)storage;
        (void)now;
        if (getrandom(&header.seed, sizeof(header.seed), 0) < 0 || getrandom(instance, sizeof(instance), 0) < 0)
                return -errno;

        snprintf(header.instance_id, sizeof(header.instance_id), "%016" PRIx64 "%016" PRIx64, instance[0],
                 instance[1]);
        return sink->header(sink->userdata, &header);
}

static int memory_commit(struct storage *storage, const struct storage_batch *batch) {
        (void)storage;
        (void)batch;
        return 0;
}

static struct storage *memory_close(struct storage *storage) {
        free(storage);
        return NULL;
}

static const struct storage_operations operations = {
        .load = memory_load,
        .commit = memory_commit,
        .close = memory_close,
        .is_immediate = true,
};

int storage_memory_new(struct storage **ret_storage) {
        struct storage *storage = malloc(sizeof(*storage));

        if (!storage)
                return -ENOMEM;

        storage->operations = &operations;
        *ret_storage = storage;
        return 0;
}
