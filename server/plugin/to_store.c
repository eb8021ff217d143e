/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/to_store.h"

#include <errno.h>
#include <sodium.h>

#include "base/cleanup.h"
#include "base/system_clock.h"
#include "plugin/broker.h"
#include "plugin/connections.h"
#include "plugin/internal.h"
#include "plugin/publish.h"
#include "plugin/record.h"
#include "plugin/records.h"
#include "protocol/companion.h"
#include "protocol/companion_box.h"
#include "protocol/frame.h"
#include "protocol/handshake.h"

/* Records of the first frame, before the store has reported how long their execution takes. */
#define FIRST_RECORDS_MAX 16

int to_store_send_banner(void) {
        return broker_errno(mosquitto_broker_publish_copy(
                NULL, COMPANION_BANNER, (int)strlen(COMPANION_VERSION), COMPANION_VERSION, 1, true, NULL));
}

/* Encrypt the text, and publish it at QoS 0 to the store's client only. */
static int publish_to_store(const struct plugin *plugin, const char *topic, const struct buf *text,
                            const uint8_t *key) {
        size_t length = text->length + COMPANION_BOX_EXTRA;
        CLEANUP(cleanup_free) uint8_t *box = buf_failed(text) ? NULL : malloc(length);

        if (!box)
                return -ENOMEM;

        companion_box_seal(buf_slice(text), key, box);
        return broker_errno(mosquitto_broker_publish_copy(plugin->store_client_id, topic, (int)length, box,
                                                          0, false, NULL));
}

/* 1. WELCOME */

int to_store_send_welcome(struct plugin *plugin, const uint8_t *hello_key,
                          struct handshake_welcome *welcome) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct to_store *to_store = &plugin->to_store;
        int r;

        welcome->broker_run = plugin->broker_run;
        welcome->published = publish_last_complete(plugin);
        handshake_welcome_append(&text, welcome);
        connections_append_welcome(&plugin->connections, &text);
        r = publish_to_store(plugin, COMPANION_WELCOME, &text, hello_key);
        if (r < 0)
                return r;

        records_restart(&plugin->records);
        *to_store = (struct to_store){ .last_ended = records_next_number(&plugin->records) - 1,
                                       .last_publish_ns = plugin->publish_ns,
                                       .n_records_max = FIRST_RECORDS_MAX,
                                       .timeout_ns = INT64_MAX };
        companion_frame_key(hello_key, to_store->key);
        return 0;
}

/* 2. Frames */

static struct frame_to_store_record record_in_frame(const struct record *record) {
        const struct connection *connection = record->connection;
        struct frame_to_store_record in_frame = { .kind = FRAME_DISCONNECTED,
                                                  .connection = connection->number,
                                                  .client_id = slice_from_string(connection->client_id) };

        if (record->is_request) {
                in_frame.kind = FRAME_REQUEST;
                in_frame.request = record->request;
        } else {
                in_frame.is_slow_watcher = connection->is_slow_watcher;
        }
        return in_frame;
}

/* Number and append the next records, at least one, up to the limits. Return the last one, or NULL. */
static struct record *append_records(struct records *records, size_t n_max, struct buf *buf) {
        struct record *record, *last = NULL;
        struct frame_to_store_record in_frame;

        for (size_t n = 0; n < n_max && (record = records_next(records, last)); n++) {
                in_frame = record_in_frame(record);
                if (last && buf->length + frame_to_store_record_size(&in_frame) > COMPANION_FRAME_BYTES_MAX)
                        break;
                records_number(records, record);
                frame_to_store_append_record(buf, &in_frame);
                last = record;
        }
        return last;
}

/*
 * Send one frame, with the next records if fewer frames than this are outstanding. If memory is short,
 * the records count as not sent, and the next event tries again.
 */
static int send_frame(struct plugin *plugin, size_t n_outstanding_max) {
        CLEANUP(buf_deinit) struct buf frame = { 0 };
        struct to_store *to_store = &plugin->to_store;
        struct frame_to_store header = {
                .frame_number = to_store->n_frames + 1,
                .next_record_number = records_next_number(&plugin->records),
                .published = publish_last_complete(plugin),
                .counters = plugin->counters,
        };
        struct record *last = NULL;
        int r;

        frame_to_store_append(&frame, &header);
        if (to_store->n_outstanding < n_outstanding_max)
                last = append_records(&plugin->records, to_store->n_records_max, &frame);
        r = publish_to_store(plugin, COMPANION_FRAME_TO_STORE, &frame, to_store->key);
        if (r < 0)
                return r;

        to_store->n_frames++;
        to_store->is_frame_due = false;
        if (!last)
                return 0;
        records_sent(&plugin->records, last);
        if (to_store->n_outstanding == 0)
                to_store->timeout_ns = system_clock_mono_ns() + COMPANION_FRAME_TIMEOUT_NS;
        to_store->outstanding[to_store->n_outstanding++] = last->number;
        return 0;
}

/* Send a frame that is due, and what waits, until so many frames are outstanding. */
static void send_frames(struct plugin *plugin, size_t n_outstanding_max) {
        const struct to_store *to_store = &plugin->to_store;

        if (!plugin->hello_client || !to_store->is_serving)
                return;
        while (to_store->is_frame_due ||
               (to_store->n_outstanding < n_outstanding_max && records_next(&plugin->records, NULL)))
                if (send_frame(plugin, n_outstanding_max) < 0)
                        return;
}

void to_store_send_if_idle(struct plugin *plugin) {
        send_frames(plugin, 1);
}

void to_store_fill_window(struct plugin *plugin) {
        send_frames(plugin, COMPANION_FRAMES_MAX);
}

void to_store_begin_serving(struct plugin *plugin) {
        plugin->to_store.is_serving = true;
}

void to_store_demand_frame(struct plugin *plugin) {
        plugin->to_store.is_frame_due = true;
}

void to_store_skip_frame(struct plugin *plugin) {
        plugin->to_store.n_frames++;
        plugin->to_store.is_frame_due = true;
}

/*
 * Size the next frame, so that its work takes about COMPANION_FRAME_WORK_NS: a request that arrives
 * meanwhile waits for the frames before it. The number of records at most doubles from frame to
 * frame, because the next records may take longer.
 */
static void size_next_frame(struct to_store *to_store, size_t n_records, uint64_t work_ns) {
        uint64_t n_max = COMPANION_FRAME_RECORDS_MAX;

        if (n_max > 2 * to_store->n_records_max)
                n_max = 2 * to_store->n_records_max;
        if (work_ns > 0 && n_max > COMPANION_FRAME_WORK_NS * n_records / work_ns)
                n_max = COMPANION_FRAME_WORK_NS * n_records / work_ns;
        to_store->n_records_max = n_max > 0 ? (size_t)n_max : 1;
}

void to_store_ended(struct plugin *plugin, uint64_t number, uint64_t work_ns) {
        struct to_store *to_store = &plugin->to_store;
        size_t n_frames = 0;

        if (number <= to_store->last_ended)
                return;
        size_next_frame(to_store, (size_t)(number - to_store->last_ended),
                        work_ns + plugin->publish_ns - to_store->last_publish_ns);
        to_store->last_ended = number;
        to_store->last_publish_ns = plugin->publish_ns;
        while (n_frames < to_store->n_outstanding && to_store->outstanding[n_frames] <= number)
                n_frames++;
        to_store->n_outstanding -= n_frames;
        for (size_t i = 0; i < to_store->n_outstanding; i++)
                to_store->outstanding[i] = to_store->outstanding[i + n_frames];
        to_store->timeout_ns = to_store->n_outstanding > 0
                                       ? system_clock_mono_ns() + COMPANION_FRAME_TIMEOUT_NS
                                       : INT64_MAX;
}

void to_store_report_disconnect(struct plugin *plugin, struct connection *connection) {
        connections_remove(&plugin->connections, connection);
        if (!connection_is_reported(connection)) {
                connection_free(plugin, connection);
                return;
        }
        records_add_disconnect(plugin, connection);
        to_store_send_if_idle(plugin);
}

/* 3. Deadlines */

int64_t to_store_deadline_ns(const struct plugin *plugin) {
        const struct record *oldest = plugin->records.by_arrival;
        int64_t timeout_ns = plugin->to_store.timeout_ns;

        return oldest && oldest->expires_ns < timeout_ns ? oldest->expires_ns : timeout_ns;
}

void to_store_check_deadlines(struct plugin *plugin) {
        struct to_store *to_store = &plugin->to_store;
        int64_t now_ns = system_clock_mono_ns();

        records_expire(plugin, now_ns);
        if (now_ns < to_store->timeout_ns)
                return;
        to_store->timeout_ns = now_ns + COMPANION_FRAME_TIMEOUT_NS;
        to_store->is_frame_due = true;
        to_store_send_if_idle(plugin);
}
