/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/storage.h"

int storage_load(struct storage *storage, const struct storage_sink *sink, struct now now) {
        return storage->operations->load(storage, sink, now);
}

int storage_commit(struct storage *storage, const struct storage_batch *batch) {
        return storage->operations->commit(storage, batch);
}

struct storage *storage_close(struct storage *storage) {
        return storage ? storage->operations->close(storage) : NULL;
}
