/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/storage.h"

int storage_load(struct storage *storage, const struct storage_sink *sink, struct now now) {
        return storage->operations->load(storage, sink, now);
}

int storage_commit(struct storage *storage, const struct storage_batch *batch) {
        return storage->operations->commit(storage, batch);
}

bool storage_needs_commit(const struct storage *storage, struct now now) {
        return storage->operations->needs_commit(storage, now);
}

struct storage *storage_close(struct storage *storage) {
        return storage ? storage->operations->close(storage) : NULL;
}
