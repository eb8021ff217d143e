/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time_units.h"

/* A loaded reply is remembered for at most this time, even if the stored deadline is later. */
#define REMEMBERED_MAX_NS ((ENGINE_REMEMBERED_MAX_S + 1) * NS_PER_S)

struct restore {
        const struct engine_config *config;
        struct restored restored;
        struct engine *engine;
        struct now now;
};

void restored_deinit(struct restored *restored) {
        for (size_t i = 0; i < restored->n_notifications; i++)
                pending_notification_deinit(&restored->notifications[i]);
        free(restored->notifications);
        *restored = (struct restored){ 0 };
}

static void restore_deinit(struct restore *restore) {
        engine_free(restore->engine);
        restored_deinit(&restore->restored);
}

static int take_header(void *userdata, const struct storage_header *header) {
        struct restore *restore = userdata;
        struct engine_config config = *restore->config;
        int r;

        /* Issued versions contain the node id, so it must not change. */
        if (*header->node_id && config.node_id.data &&
            !slice_equal(config.node_id, slice_from_string(header->node_id))) {
                log_error("cannot start: the data directory was written with the node id \"%s\": use "
                          "--node-id %s",
                          LOG_STRING(header->node_id), LOG_STRING(header->node_id));
                return -EBADMSG;
        }
        if (!config.node_id.data)
                config.node_id =
                        *header->node_id ? slice_from_string(header->node_id) : SLICE_LITERAL("StateStore");
        config.digest_key = header->digest_key;
        r = engine_new(&restore->engine, &config);
        if (r < 0)
                return r;

        restore->restored.header = *header;
        engine_restore_clock(restore->engine, header->clock, header->disconnect_epoch);
        return 0;
}

static int take_entry(void *userdata, struct slice key, struct slice value, struct version version,
                      int64_t deadline_ns, const struct hlc *fence) {
        struct restore *restore = userdata;

        return engine_restore_entry(restore->engine, key, value, version, deadline_ns, fence);
}

static int take_registration(void *userdata, struct slice client, struct slice user, struct slice key,
                             uint64_t connection) {
        struct restore *restore = userdata;

        return engine_restore_registration(restore->engine, client, user, key, connection);
}

static int take_reply(void *userdata, uint32_t slot, const struct digest *digest,
                      struct remembered_reply reply, int64_t deadline_ns) {
        struct restore *restore = userdata;

        if (deadline_ns > restore->now.mono_ns + REMEMBERED_MAX_NS)
                deadline_ns = restore->now.mono_ns + REMEMBERED_MAX_NS;
        return engine_restore_reply(restore->engine, slot, digest, reply, deadline_ns);
}

static int take_notification(void *userdata, const struct pending_notification *notification) {
        struct restore *restore = userdata;
        struct restored *restored = &restore->restored;
        int r;

        r = array_reserve((void **)&restored->notifications, &restored->notifications_capacity,
                          restored->n_notifications + 1, sizeof(*restored->notifications));
        if (r == 0)
                r = pending_notification_copy(&restored->notifications[restored->n_notifications],
                                              notification);
        if (r == 0)
                restored->n_notifications++;
        return r;
}

static void log_progress(void *userdata, uint64_t n_rows) {
        (void)userdata;
        log_info("loading the data directory: rows=%" PRIu64, n_rows);
}

int restore_engine(struct engine **ret_engine, struct restored *ret_restored, struct storage *storage,
                   const struct engine_config *config, struct now now) {
        CLEANUP(restore_deinit) struct restore restore = { .config = config, .now = now };
        struct storage_sink sink = {
                .header = take_header,
                .entry = take_entry,
                .registration = take_registration,
                .reply = take_reply,
                .notification = take_notification,
                .progress = log_progress,
                .userdata = &restore,
        };
        int r;

        r = storage_load(storage, &sink, now);
        if (r < 0)
                return r;

        *ret_restored = restore.restored;
        restore.restored = (struct restored){ 0 };
        *ret_engine = take_ptr(&restore.engine);
        return 0;
}
