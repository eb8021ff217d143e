/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/load_engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time_units.h"

/*
 * A restored reply is remembered for at most this time after the start, even if its stored deadline
 * is later.
 */
#define REMEMBERED_MAX_NS ((ENGINE_REMEMBERED_MAX_S + 1) * NS_PER_S)

struct engine_load {
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

static void engine_load_deinit(struct engine_load *load) {
        engine_free(load->engine);
        restored_deinit(&load->restored);
}

static int restore_header(void *userdata, const struct storage_header *header) {
        struct engine_load *load = userdata;
        struct engine_config config = *load->config;
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
                config.node_id = *header->node_id ? slice_from_string(header->node_id)
                                                  : SLICE_LITERAL(NODE_ID_DEFAULT);
        config.digest_key = header->digest_key;
        r = engine_new(&load->engine, &config);
        if (r < 0)
                return r;

        load->restored.header = *header;
        engine_restore_clock(load->engine, header->clock, header->disconnect_epoch);
        if (header->keys_may_be_lost)
                engine_restore_lost_keys(load->engine);
        return 0;
}

static int restore_entry(void *userdata, const struct entry_fields *fields) {
        struct engine_load *load = userdata;

        return engine_restore_entry(load->engine, fields);
}

static int restore_registration(void *userdata, struct slice client, struct slice user, struct slice key,
                                uint64_t connection) {
        struct engine_load *load = userdata;

        return engine_restore_registration(load->engine, client, user, key, connection);
}

static int restore_reply(void *userdata, uint64_t number, const struct digest *digest,
                         struct remembered_reply reply, int64_t deadline_ns) {
        struct engine_load *load = userdata;
        struct reply_row row = {
                .digest = *digest, .reply = reply, .deadline_ns = deadline_ns, .number = number
        };

        if (row.deadline_ns > load->now.mono_ns + REMEMBERED_MAX_NS)
                row.deadline_ns = load->now.mono_ns + REMEMBERED_MAX_NS;
        return engine_restore_reply(load->engine, &row);
}

static int restore_notification(void *userdata, const struct pending_notification *notification) {
        struct engine_load *load = userdata;
        struct restored *restored = &load->restored;
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

int storage_load_engine(struct engine **ret_engine, struct restored *ret_restored, struct storage *storage,
                        const struct engine_config *config, struct now now) {
        CLEANUP(engine_load_deinit) struct engine_load load = { .config = config, .now = now };
        struct storage_sink sink = {
                .header = restore_header,
                .entry = restore_entry,
                .registration = restore_registration,
                .reply = restore_reply,
                .notification = restore_notification,
                .progress = log_progress,
                .userdata = &load,
        };
        int r;

        r = storage_load(storage, &sink, now);
        if (r < 0)
                return r;

        *ret_restored = load.restored;
        load.restored = (struct restored){ 0 };
        *ret_engine = take_ptr(&load.engine);
        return 0;
}
