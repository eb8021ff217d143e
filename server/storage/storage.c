/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/storage.h"

#include "base/random.h"

int storage_load(struct storage *storage, const struct storage_sink *sink, struct now now) {
        return storage->operations->load(storage, sink, now);
}

int storage_commit(struct storage *storage, const struct storage_batch *batch) {
        return storage->operations->commit(storage, batch);
}

bool storage_needs_commit(const struct storage *storage, struct now now) {
        return storage->operations->needs_commit(storage, now);
}

bool storage_is_volatile(const struct storage *storage) {
        return storage->operations->is_volatile;
}

struct storage_batch storage_batch_from(const struct engine *engine, const struct effects *effects,
                                        struct now now) {
        struct engine_stats stats = engine_stats(engine);

        return (struct storage_batch){
                .node_id = engine_config(engine)->node_id,
                .rows = effects->rows,
                .n_rows = effects->n_rows,
                .clock = stats.clock,
                .disconnect_epoch = stats.disconnect_epoch,
                .keys_may_be_lost = engine_may_lose_keys(engine),
                .forgotten_reply = stats.forgotten_reply,
                .now = now,
        };
}

struct storage *storage_close(struct storage *storage) {
        return storage ? storage->operations->close(storage) : NULL;
}

void storage_header_renew_instance(struct storage_header *header) {
        random_hex(header->instance_id, sizeof(header->instance_id));
}

void storage_header_init(struct storage_header *ret_header) {
        *ret_header = (struct storage_header){ 0 };
        random_fill(&ret_header->digest_key, sizeof(ret_header->digest_key));
        storage_header_renew_instance(ret_header);
}
