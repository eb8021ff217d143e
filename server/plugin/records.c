/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/records.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "plugin/broker.h"
#include "plugin/connections.h"
#include "plugin/internal.h"
#include "plugin/record.h"
#include "plugin/replies.h"
#include "protocol/companion.h"

/* Remove a record from the queue of its client. */
static void dequeue_record(struct records *records, struct record *record) {
        fair_queues_remove(&records->queues, &record->waiting);
        if (record->is_request)
                DL_DELETE(records->by_arrival, record);
}

/* Free a request, and the connection if its end waits only for this request. */
static void request_drop(struct plugin *plugin, struct record *request) {
        struct connection *connection = request->connection;

        free(request);
        connection->n_kept--;
        if (!connection->is_closed || connection_is_reported(connection) || connection->end.number > 0)
                return;
        dequeue_record(&plugin->records, &connection->end);
        connection_free(plugin, connection);
}

size_t records_request_bytes(const struct connection *connection, const struct frame_request *request) {
        size_t n_bytes = record_size(request);

        return connection->n_kept == 0 ? n_bytes + connection_size(strlen(connection->client_id)) : n_bytes;
}

bool records_have_room(const struct plugin *plugin, const struct connection *connection, size_t n_bytes) {
        return fair_queues_has_room(&plugin->records.queues, connection->queue, n_bytes,
                                    (size_t)plugin->queue_bytes_max);
}

void records_add_request(struct plugin *plugin, struct record *record) {
        struct records *records = &plugin->records;
        struct connection *connection = record->connection;

        record->expires_ns =
                plugin->wait_s > 0 ? system_clock_mono_ns() + (int64_t)plugin->wait_s * NS_PER_S : INT64_MAX;
        fair_queues_add(&records->queues, connection->queue, &record->waiting, record->n_bytes);
        DL_APPEND(records->by_arrival, record);
        connection->n_kept++;
}

void records_add_end(struct plugin *plugin, struct connection *connection) {
        connection->is_closed = true;
        connection->end = (struct record){ .connection = connection };
        fair_queues_add(&plugin->records.queues, connection->queue, &connection->end.waiting, 0);
}

struct record *records_next(const struct records *records) {
        return (struct record *)fair_queues_first(&records->queues);
}

void records_number(struct records *records) {
        struct record *record = records_next(records);

        fair_queues_take(&records->queues);
        if (record->is_request)
                DL_DELETE(records->by_arrival, record);
        record->number = ++records->last_number;
        DL_APPEND(records->numbered, record);
}

void records_restart(struct records *records) {
        records->unsent = records->numbered;
        records->n_ended = 0;
}

struct record *records_find(const struct records *records, uint64_t number) {
        struct record *record = records->numbered;

        while (record && record->number < number)
                record = record->next;
        return record && record->number == number && record->is_request ? record : NULL;
}

int records_end(struct plugin *plugin, uint64_t number) {
        struct records *records = &plugin->records;
        struct record *record;

        if (number > records->last_number)
                return -EBADMSG;
        while ((record = records->numbered) && record->number <= number) {
                if (record == records->unsent)
                        records->unsent = record->next;
                DL_DELETE(records->numbered, record);
                records->n_ended++;
                if (record->is_request)
                        request_drop(plugin, record);
                else
                        connection_free(plugin, record->connection);
        }
        return 0;
}

void records_expire(struct plugin *plugin, int64_t now_ns) {
        struct record *record;

        while ((record = plugin->records.by_arrival) && now_ns >= record->expires_ns) {
                plugin->to_store.counters.n_unavailable++;
                broker_log_client(&plugin->unavailable_limit,
                                  "request refused: the state store is not available",
                                  record->connection->client_id);
                reply_publish_error(record, COMPANION_ERROR_UNAVAILABLE);
                dequeue_record(&plugin->records, record);
                request_drop(plugin, record);
        }
}

void records_deinit(struct plugin *plugin) {
        struct record *record;

        while ((record = records_next(&plugin->records)))
                records_number(&plugin->records);
        if (plugin->records.last_number > 0)
                records_end(plugin, plugin->records.last_number);
}
