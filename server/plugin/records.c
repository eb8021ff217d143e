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
#include "plugin/publish.h"
#include "plugin/record.h"
#include "protocol/companion.h"

/* Free a request, and the connection if its disconnect waits only for this request. */
static void request_drop(struct plugin *plugin, struct record *request) {
        struct connection *connection = request->connection;

        free(request);
        connection->n_kept--;
        if (!connection->is_closed || connection_is_reported(connection) ||
            connection->disconnect.number > 0)
                return;
        fair_queues_remove(&plugin->records.queues, &connection->disconnect.waiting);
        connection_free(plugin, connection);
}

/* The memory of a record with this request. */
static size_t record_size(const struct frame_request *request) {
        const size_t n_terminators = 5; /* slice_copy() */

        return sizeof(struct record) + request->username.length + request->response_topic.length +
               request->correlation_data.length + request->properties.length + request->payload.length +
               n_terminators;
}

/*
 * What a request takes in the queue of this connection. The first request that the plugin keeps for a
 * connection also counts for the connection and its queue, which contain the client id: it can have
 * 64 KiB.
 */
static size_t queued_bytes(const struct connection *connection, const struct frame_request *request) {
        return record_size(request) +
               (connection->n_kept == 0 ? connection_size(strlen(connection->client_id)) : 0);
}

struct record *records_copy_request(const struct plugin *plugin, struct connection *connection,
                                    struct frame_request request) {
        bool is_refused =
                !fair_queues_has_room(&plugin->records.queues, connection->queue,
                                      queued_bytes(connection, &request), (size_t)plugin->queue_bytes_max);
        struct record *record;
        uint8_t *at;

        if (is_refused)
                request.properties = request.payload = (struct slice){ 0 };
        record = malloc(record_size(&request));
        if (!record)
                return NULL;

        at = (uint8_t *)(record + 1);
        *record = (struct record){
                .connection = connection,
                .is_request = true,
                .is_refused = is_refused,
                .request = { .qos = request.qos,
                             .username = slice_copy(&at, request.username),
                             .response_topic = slice_copy(&at, request.response_topic),
                             .correlation_data = slice_copy(&at, request.correlation_data),
                             .properties = slice_copy(&at, request.properties),
                             .payload = slice_copy(&at, request.payload) },
        };
        return record;
}

void records_add_request(struct plugin *plugin, struct record *record) {
        struct records *records = &plugin->records;
        struct connection *connection = record->connection;

        if (record->is_refused) {
                plugin->counters.n_too_many++;
                broker_log_client(&plugin->too_many_limit, "request refused: too many requests are waiting",
                                  connection->client_id);
                publish_error(plugin, record, COMPANION_ERROR_TOO_MANY);
                free(record);
                return;
        }

        record->expires_ns =
                plugin->wait_s > 0 ? system_clock_mono_ns() + (int64_t)plugin->wait_s * NS_PER_S : INT64_MAX;
        fair_queues_add(&records->queues, connection->queue, &record->waiting,
                        queued_bytes(connection, &record->request));
        DL_APPEND(records->by_arrival, record);
        connection->n_kept++;
}

void records_add_disconnect(struct plugin *plugin, struct connection *connection) {
        connection->is_closed = true;
        connection->disconnect = (struct record){ .connection = connection };
        fair_queues_add(&plugin->records.queues, connection->queue, &connection->disconnect.waiting, 0);
}

struct record *records_next(const struct records *records, const struct record *last) {
        struct record *numbered = last ? last->next : records->unsent;

        return numbered ? numbered : (struct record *)fair_queues_first(&records->queues);
}

void records_number(struct records *records, struct record *record) {
        if (record->number > 0)
                return;
        ASSERT(&record->waiting == fair_queues_first(&records->queues));
        fair_queues_take(&records->queues);
        if (record->is_request)
                DL_DELETE(records->by_arrival, record);
        record->number = ++records->last_number;
        DL_APPEND(records->numbered, record);
        if (!records->unsent)
                records->unsent = record;
}

void records_sent(struct records *records, const struct record *last) {
        records->unsent = last->next;
}

uint64_t records_next_number(const struct records *records) {
        return records->unsent ? records->unsent->number : records->last_number + 1;
}

void records_restart(struct records *records) {
        records->unsent = records->numbered;
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
                if (record->is_request)
                        request_drop(plugin, record);
                else
                        connection_free(plugin, record->connection);
        }
        return 0;
}

void records_end_all(struct plugin *plugin) {
        records_end(plugin, plugin->records.last_number);
}

void records_expire(struct plugin *plugin, int64_t now_ns) {
        struct records *records = &plugin->records;
        struct record *record;

        while ((record = records->by_arrival) && now_ns >= record->expires_ns) {
                plugin->counters.n_unavailable++;
                broker_log_client(&plugin->unavailable_limit,
                                  "request refused: the state store is not available",
                                  record->connection->client_id);
                publish_error(plugin, record, COMPANION_ERROR_UNAVAILABLE);
                fair_queues_remove(&records->queues, &record->waiting);
                DL_DELETE(records->by_arrival, record);
                request_drop(plugin, record);
        }
}

void records_deinit(struct plugin *plugin) {
        struct record *record = NULL;

        while ((record = records_next(&plugin->records, record)))
                records_number(&plugin->records, record);
        records_end_all(plugin);
}
