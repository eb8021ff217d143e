/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/storage.h"

#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/log.h"

/* Log the progress of loading after this number of rows. */
#define PROGRESS_ROWS 100000

bool storage_is_low(const struct storage_usage *usage) {
        return usage->n_free_bytes < STORAGE_LOW_BYTES && usage->n_free_bytes < usage->n_disk_bytes / 10;
}

static bool is_issued(const struct state_header *header, struct version version) {
        return version_compare(version, header->clock) <= 0;
}

static bool is_result_issued(const struct state_header *header, const struct result *result) {
        return !result->has_version || is_issued(header, result->version);
}

bool storage_may_have(const struct state_header *header, const struct row *row) {
        switch (row->type) {
        case ROW_ENTRY:
                return is_issued(header, row->entry.version);
        case ROW_REPLY:
                return is_result_issued(header, &row->reply.result);
        case ROW_EXECUTION:
                return is_result_issued(header, &row->execution.result);
        case ROW_NOTIFICATION:
                return is_issued(header, row->notification.version) &&
                       row->notification.sequence <= header->notification_sequence;
        default:
                return true;
        }
}

/* Loading a state */

struct state_load {
        struct engine_config config;
        struct now now;
        struct state *state;
        uint64_t n_rows;
};

static void state_load_deinit(struct state_load *load) {
        state_free(load->state);
}

static int create_state(void *userdata, const struct state_header *header) {
        struct state_load *load = userdata;
        int r;

        r = state_new(&load->state, &load->config, header, load->now);
        if (r == -EBADMSG)
                log_error("cannot start: the data was written with the node id \"%s\": use "
                          "--node-id %s",
                          LOG_STRING(header->node_id), LOG_STRING(header->node_id));
        return r;
}

static int put_row(void *userdata, const struct row *row) {
        struct state_load *load = userdata;

        load->n_rows++;
        if (load->n_rows % PROGRESS_ROWS == 0)
                log_info("loading: rows=%" PRIu64, load->n_rows);
        return state_put_row(load->state, row, load->now);
}

/* Acknowledged notifications are removed in their order, so the last one is removed last. */
static bool has_last_notification(const struct state *state) {
        const struct notification_queue *queue = &state->notifications;

        return queue->n_pending == 0 || notification_queue_after(queue, queue->last_sequence - 1);
}

int storage_load_state(struct state **ret_state, struct storage *storage, const struct engine_config *config,
                       struct now now) {
        CLEANUP(state_load_deinit) struct state_load load = { .config = *config, .now = now };
        struct storage_sink sink = { .header = create_state, .row = put_row, .userdata = &load };
        struct state_header header;
        int r;

        load.config.max_entry_bytes = storage_limits(storage).entry_bytes;
        r = storage_load(storage, &sink);
        if (r == 0 && !load.state) {
                state_header_init(&header);
                r = create_state(&load, &header);
        }
        if (r < 0)
                return r;

        if (!has_last_notification(load.state)) {
                log_error("cannot start: the last pending notification is missing in the stored data");
                return -EBADMSG;
        }
        if (load.state->header.keys_may_be_lost)
                engine_restore_lost_keys(load.state->engine);
        *ret_state = take_ptr(&load.state);
        return 0;
}
