/* SPDX-License-Identifier: Apache-2.0 */

#include "support/model_plugin.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "protocol/companion_box.h"
#include "protocol/handshake.h"
#include "protocol/properties.h"

/* Records of a frame, before the store has reported how long their execution takes. */
#define FIRST_RECORDS_MAX 16

void model_plugin_init(struct model_plugin *plugin, uint64_t broker_run) {
        *plugin = (struct model_plugin){
                .broker_run = broker_run,
                .wait_ns = COMPANION_WAIT_S_DEFAULT * INT64_C(1000000000),
                .queue_bytes_max = COMPANION_QUEUE_BYTES_DEFAULT,
                .frame_timeout_ns = COMPANION_FRAME_TIMEOUT_NS,
        };
}

/* 1. Outputs */

/* message: without the NULs that a copy has; NULL: none. */
static void put(struct model_plugin *plugin, struct model_output output, const struct message *message) {
        ASSERT(array_reserve((void **)&plugin->outputs, &plugin->outputs_capacity, plugin->n_outputs + 1,
                             sizeof(output)) == 0);
        if (message) {
                output.message = message_copy(message);
                ASSERT(output.message);
        }
        plugin->outputs[plugin->n_outputs++] = output;
}

static void put_to_store(struct model_plugin *plugin, const char *topic, struct slice payload) {
        const struct message message = { .topic = slice_from_string(topic), .payload = payload };

        put(plugin, (struct model_output){ .type = MODEL_TO_STORE }, &message);
}

bool model_plugin_take(struct model_plugin *plugin, struct model_output *ret_output) {
        if (plugin->n_outputs == 0)
                return false;
        *ret_output = plugin->outputs[0];
        plugin->n_outputs--;
        memmove(plugin->outputs, plugin->outputs + 1, plugin->n_outputs * sizeof(*plugin->outputs));
        return true;
}

/* 2. Records and connections */

static void append(struct model_records *records, struct model_record *record) {
        ASSERT(array_reserve((void **)&records->list, &records->capacity, records->n + 1,
                             sizeof(*records->list)) == 0);
        records->list[records->n++] = record;
}

static void remove_record(struct model_records *records, const struct model_record *record) {
        size_t i = 0;

        while (records->list[i] != record)
                i++;
        records->n--;
        memmove(records->list + i, records->list + i + 1, (records->n - i) * sizeof(*records->list));
}

static struct model_connection *find_connection(const struct model_plugin *plugin, uint64_t number) {
        struct model_connection *connection = plugin->connections;

        while (connection && (connection->number != number || connection->has_ended))
                connection = connection->next;
        return connection;
}

static struct model_connection *open_connection(struct model_plugin *plugin,
                                                const struct model_sender *sender) {
        struct model_connection *connection = find_connection(plugin, sender->connection);

        if (connection) {
                ASSERT(slice_equal_string(sender->client_id, connection->client_id));
                return connection;
        }
        connection = calloc(1, sizeof(*connection) + sender->client_id.length + 1);
        ASSERT(connection && sender->connection > 0);
        connection->number = sender->connection;
        memcpy(connection->client_id, sender->client_id.data, sender->client_id.length);
        ASSERT(fair_queues_open(&plugin->queues, sender->client_id, &connection->queue) == 0);
        connection->next = plugin->connections;
        plugin->connections = connection;
        return connection;
}

static void free_connection(struct model_plugin *plugin, struct model_connection *connection) {
        struct model_connection **at = &plugin->connections;

        while (*at != connection)
                at = &(*at)->next;
        *at = connection->next;
        fair_queues_close(&plugin->queues, connection->queue);
        free(connection);
}

static struct model_record *new_record(struct model_connection *connection,
                                       const struct frame_to_store_record *record, int64_t now_ns) {
        struct model_record *new = calloc(1, sizeof(*new));
        struct frame_to_store frame = { 0 };

        ASSERT(new);
        frame_to_store_append_record(&new->bytes, record);
        ASSERT(!buf_failed(&new->bytes));
        frame.records = buf_slice(&new->bytes);
        ASSERT(frame_to_store_next(&frame, &new->record));
        new->connection = connection;
        new->arrived_ns = now_ns;
        return new;
}

static void free_record(struct model_record *record) {
        buf_deinit(&record->bytes);
        free(record);
}

static void add_record(struct model_plugin *plugin, struct model_record *record) {
        fair_queues_add(&plugin->queues, record->connection->queue, &record->waiting, record->bytes.length);
        append(&plugin->waiting, record);
}

/* The record has ended: it is in no list any more. */
static void end_record(struct model_plugin *plugin, struct model_record *record) {
        if (record->record.kind == FRAME_REQUEST)
                record->connection->n_requests--;
        else
                free_connection(plugin, record->connection);
        free_record(record);
}

const struct model_record *model_plugin_find(const struct model_plugin *plugin, uint64_t number) {
        for (size_t i = 0; i < plugin->numbered.n; i++) {
                struct model_record *record = plugin->numbered.list[i];

                if (record->number == number && record->record.kind == FRAME_REQUEST)
                        return record;
        }
        return NULL;
}

void model_plugin_deinit(struct model_plugin *plugin) {
        struct model_output output;

        while (fair_queues_first(&plugin->queues))
                fair_queues_take(&plugin->queues);
        for (size_t i = 0; i < plugin->waiting.n; i++)
                free_record(plugin->waiting.list[i]);
        for (size_t i = 0; i < plugin->numbered.n; i++)
                free_record(plugin->numbered.list[i]);
        while (plugin->connections)
                free_connection(plugin, plugin->connections);
        fair_queues_deinit(&plugin->queues);
        while (model_plugin_take(plugin, &output))
                free(output.message);
        free(plugin->waiting.list);
        free(plugin->numbered.list);
        free(plugin->outputs);
        buf_deinit(&plugin->instance_id);
}

/* 3. Frames to the store */

/* A change counts as delivered when its last record is processed. */
static uint64_t delivered(const struct model_plugin *plugin) {
        return plugin->position.sequence - (plugin->position.sequence > 0 && !plugin->position.is_complete);
}

/* Kept records that were not sent since WELCOME precede new ones. NULL: there is none of both. */
static struct model_record *next_record(const struct model_plugin *plugin) {
        if (plugin->n_sent < plugin->numbered.n)
                return plugin->numbered.list[plugin->n_sent];
        return (struct model_record *)fair_queues_first(&plugin->queues);
}

static void number_record(struct model_plugin *plugin, struct model_record *record) {
        fair_queues_take(&plugin->queues);
        remove_record(&plugin->waiting, record);
        record->number = ++plugin->last_number;
        append(&plugin->numbered, record);
}

/* Append records to a frame, at least one, up to the limits. Returns the last one. */
static const struct model_record *pack(struct model_plugin *plugin, struct buf *frame) {
        struct model_record *record, *last = NULL;

        for (size_t n = 0; n < plugin->n_records_max && (record = next_record(plugin)); n++) {
                if (last && frame->length + record->bytes.length > COMPANION_FRAME_BYTES_MAX)
                        break;
                if (record->number == 0)
                        number_record(plugin, record);
                buf_append_slice(frame, buf_slice(&record->bytes));
                plugin->n_sent++;
                last = record;
        }
        return last;
}

static void send_frame(struct model_plugin *plugin, bool has_records, int64_t now_ns) {
        const struct model_records *numbered = &plugin->numbered;
        const struct frame_to_store header = {
                .frame_number = ++plugin->n_frames,
                .next_record_number = plugin->n_sent < numbered->n ? numbered->list[plugin->n_sent]->number
                                                                   : plugin->last_number + 1,
                .published = delivered(plugin),
                .counters = plugin->counters,
        };
        const struct model_record *last;
        struct buf frame = { 0 };
        size_t length;
        uint8_t *box;

        frame_to_store_append(&frame, &header);
        last = has_records ? pack(plugin, &frame) : NULL;
        length = frame.length + COMPANION_BOX_EXTRA;
        box = malloc(length);
        ASSERT(!buf_failed(&frame) && box);
        companion_box_seal(buf_slice(&frame), plugin->key, box);
        put_to_store(plugin, COMPANION_FRAME_TO_STORE, (struct slice){ box, length });
        free(box);
        buf_deinit(&frame);

        plugin->is_frame_due = false;
        if (last && plugin->n_outstanding == 0)
                plugin->timeout_ns = now_ns + plugin->frame_timeout_ns;
        if (last)
                plugin->outstanding[plugin->n_outstanding++] = last->number;
}

/* Send frames until this many are outstanding. */
static void send_frames(struct model_plugin *plugin, size_t n_frames_max, int64_t now_ns) {
        if (!plugin->is_serving)
                return;
        while (plugin->n_outstanding < n_frames_max && next_record(plugin))
                send_frame(plugin, true, now_ns);
        if (plugin->is_frame_due)
                send_frame(plugin, false, now_ns);
}

/* 4. Requests and ends of connections */

/* Publish the reply to a request, if it has a response topic. */
static void publish_reply(struct model_plugin *plugin, const struct frame_request *request,
                          struct slice properties, struct slice payload) {
        struct message message = { .topic = request->response_topic,
                                   .correlation_data = request->correlation_data,
                                   .payload = payload,
                                   .qos = 1 };

        if (!request->response_topic.data)
                return;
        while (frame_property_next(&properties, &message.user_properties[message.n_user_properties]))
                ASSERT(++message.n_user_properties < MESSAGE_USER_PROPERTIES_MAX);
        put(plugin, (struct model_output){ .type = MODEL_REPLY }, &message);
}

static void publish_error(struct model_plugin *plugin, const struct model_record *record, const char *text) {
        struct buf properties = { 0 }, payload = { 0 };

        frame_property_append(&properties, SLICE_LITERAL(PROPERTY_STATUS), SLICE_LITERAL("200"));
        frame_property_append(&properties, SLICE_LITERAL(PROPERTY_VERSION), SLICE_LITERAL("1.0"));
        frame_property_append(&properties, SLICE_LITERAL(PROPERTY_SOURCE_ID),
                              SLICE_LITERAL(COMPANION_SOURCE_ID));
        buf_append_format(&payload, "-ERR %s\r\n", text);
        ASSERT(!buf_failed(&properties) && !buf_failed(&payload));
        publish_reply(plugin, &record->record.request, buf_slice(&properties), buf_slice(&payload));
        buf_deinit(&properties);
        buf_deinit(&payload);
}

/* A request at QoS 0 or 2 gets an error, so the plugin does not keep its content. */
static struct model_record *new_request(struct model_connection *connection, struct slice username,
                                        const struct message *request, int64_t now_ns) {
        struct frame_to_store_record record = {
                .kind = FRAME_REQUEST,
                .connection = connection->number,
                .client_id = slice_from_string(connection->client_id),
                .request = { .qos = request->qos,
                             .username = username,
                             .response_topic = request->response_topic,
                             .correlation_data = request->correlation_data },
        };
        struct buf properties = { 0 };
        struct model_record *new;

        frame_properties_append(&properties, request);
        ASSERT(!buf_failed(&properties));
        if (request->qos == 1) {
                record.request.properties = buf_slice(&properties);
                record.request.payload = request->payload;
        }
        new = new_record(connection, &record, now_ns);
        buf_deinit(&properties);
        return new;
}

void model_plugin_request(struct model_plugin *plugin, const struct model_sender *sender,
                          const struct message *request, int64_t now_ns) {
        struct model_connection *connection = open_connection(plugin, sender);
        struct model_record *record = new_request(connection, sender->username, request, now_ns);

        if (!fair_queues_has_room(&plugin->queues, connection->queue, record->bytes.length,
                                  plugin->queue_bytes_max)) {
                plugin->counters.n_too_many++;
                publish_error(plugin, record, COMPANION_ERROR_TOO_MANY);
                free_record(record);
                return;
        }
        connection->n_requests++;
        add_record(plugin, record);
        send_frames(plugin, 1, now_ns);
}

void model_plugin_disconnected(struct model_plugin *plugin, uint64_t number, bool is_slow_watcher,
                               int64_t now_ns) {
        struct model_connection *connection = find_connection(plugin, number);
        struct frame_to_store_record end = { .kind = FRAME_DISCONNECTED,
                                             .connection = number,
                                             .is_slow_watcher = is_slow_watcher };

        if (!connection)
                return;
        if (!connection->is_tracked && connection->n_requests == 0) {
                free_connection(plugin, connection);
                return;
        }
        connection->has_ended = true;
        end.client_id = slice_from_string(connection->client_id);
        add_record(plugin, new_record(connection, &end, now_ns));
        send_frames(plugin, 1, now_ns);
}

/* 5. HELLO */

static void kick(struct model_plugin *plugin, uint64_t connection) {
        put(plugin, (struct model_output){ .type = MODEL_KICK, .connection = connection }, NULL);
}

static bool is_same_instance(const struct model_plugin *plugin, const struct handshake_hello *hello) {
        return slice_equal(hello->instance_id, buf_slice(&plugin->instance_id));
}

static void set_instance(struct model_plugin *plugin, const struct handshake_hello *hello) {
        if (is_same_instance(plugin, hello))
                return;

        plugin->first_served_broker_run = hello->served_broker_run;
        buf_reset(&plugin->instance_id);
        buf_append_slice(&plugin->instance_id, hello->instance_id);
        ASSERT(!buf_failed(&plugin->instance_id));
        plugin->position.sequence = 0;
        for (struct model_connection *connection = plugin->connections; connection;
             connection = connection->next) {
                if (connection->is_tracked && !connection->has_ended)
                        kick(plugin, connection->number);
                connection->is_tracked = false;
        }
}

static void end_numbered(struct model_plugin *plugin) {
        while (plugin->numbered.n > 0) {
                struct model_record *record = plugin->numbered.list[0];

                remove_record(&plugin->numbered, record);
                end_record(plugin, record);
        }
}

/* Return whether another run has sent HELLO between two HELLOs of this run. */
static bool set_run(struct model_plugin *plugin, uint64_t run) {
        bool is_takeover = run != plugin->run && run == plugin->former_run;

        if (run != plugin->run) {
                plugin->former_run = plugin->run;
                plugin->run = run;
        }
        return is_takeover;
}

static void append_connections(const struct model_plugin *plugin, struct buf *connections) {
        for (const struct model_connection *connection = plugin->connections; connection;
             connection = connection->next)
                if (!connection->has_ended && (connection->is_tracked || connection->n_requests > 0))
                        handshake_connection_append(
                                connections,
                                &(struct handshake_connection){ .number = connection->number,
                                                                .is_tracked = connection->is_tracked,
                                                                .is_pending = connection->n_requests > 0 });
}

static void send_welcome(struct model_plugin *plugin, const struct handshake_hello *hello,
                         bool is_takeover) {
        struct handshake_welcome welcome = { .is_takeover = is_takeover,
                                             .broker_run = plugin->broker_run,
                                             .published = delivered(plugin) };
        struct buf connections = { 0 }, text = { 0 };
        uint8_t *box;

        append_connections(plugin, &connections);
        welcome.connections = buf_slice(&connections);
        handshake_welcome_append(&text, &welcome);
        box = malloc(text.length + COMPANION_BOX_EXTRA);
        ASSERT(!buf_failed(&connections) && !buf_failed(&text) && box);
        companion_box_seal(buf_slice(&text), hello->key, box);
        put_to_store(plugin, COMPANION_WELCOME, (struct slice){ box, text.length + COMPANION_BOX_EXTRA });
        free(box);
        buf_deinit(&connections);
        buf_deinit(&text);
}

/*
 * The store's MQTT client repeats a HELLO without PUBACK when it has reconnected, and then sends a
 * new one. Ignore the former: the store has dropped its key.
 */
static bool is_repeated(const struct model_plugin *plugin, const struct handshake_hello *hello) {
        return hello->run == plugin->run && hello->number <= plugin->n_hellos;
}

static void receive_hello(struct model_plugin *plugin, const struct message *message) {
        struct handshake_hello hello;

        ASSERT(message->qos == 1 && handshake_hello_read(message->payload, &hello) == 0);
        if (is_repeated(plugin, &hello))
                return;
        plugin->has_ended = is_same_instance(plugin, &hello) &&
                            hello.served_broker_run != plugin->broker_run &&
                            hello.served_broker_run != plugin->first_served_broker_run;
        if (plugin->has_ended)
                return;
        if (hello.served_broker_run > 0 &&
            !(hello.served_broker_run == plugin->broker_run && is_same_instance(plugin, &hello)))
                end_numbered(plugin);

        companion_frame_key(hello.key, plugin->key);
        set_instance(plugin, &hello);
        send_welcome(plugin, &hello, set_run(plugin, hello.run));
        plugin->n_hellos = hello.number;
        plugin->has_store = true;
        plugin->is_serving = false;
        plugin->n_frames = 0;
        plugin->n_sent = 0;
        plugin->n_outstanding = 0;
        plugin->n_ended = 0;
        plugin->n_records_max = FIRST_RECORDS_MAX;
        plugin->is_frame_due = false;
}

/* 6. Frames of the store */

/* End the records up to this number. Count those whose reply is missing; the last one may have it. */
static void end_up_to(struct model_plugin *plugin, uint64_t number, bool is_last_replied) {
        ASSERT(number <= plugin->last_number);
        while (plugin->numbered.n > 0 && plugin->numbered.list[0]->number <= number) {
                struct model_record *record = plugin->numbered.list[0];
                bool has_reply = is_last_replied && record->number == number;

                ASSERT(plugin->n_sent > 0);
                plugin->n_sent--;
                plugin->n_ended++;
                plugin->n_unreplied += record->record.kind == FRAME_REQUEST &&
                                       record->record.request.response_topic.data && !has_reply;
                remove_record(&plugin->numbered, record);
                end_record(plugin, record);
        }
}

static void receive_reply(struct model_plugin *plugin, const struct frame_reply *reply) {
        struct model_record *record = (struct model_record *)model_plugin_find(plugin, reply->record_number);

        if (!record)
                return;
        if (reply->tracking != FRAME_TRACKING_UNCHANGED)
                record->connection->is_tracked = reply->tracking == FRAME_TRACKED;
        if (reply->has_message)
                publish_reply(plugin, &record->record.request, reply->properties, reply->payload);
        end_up_to(plugin, reply->record_number, true);
}

/* Publish to the recipients behind the position whose connections are open. */
static void receive_notification(struct model_plugin *plugin,
                                 const struct frame_notification *notification) {
        struct slice properties = notification->properties;
        struct message message = { .payload = notification->payload, .qos = 1 };
        struct buf topic = { 0 };
        size_t i = 0;

        plugin->is_frame_due = true;
        if (notification->sequence < plugin->position.sequence)
                return;
        if (notification->sequence > plugin->position.sequence) {
                plugin->position.sequence = notification->sequence;
                plugin->position.n_recipients = 0;
                plugin->position.is_complete = false;
        }
        if (plugin->position.n_recipients > notification->index)
                i = plugin->position.n_recipients - notification->index;
        while (frame_property_next(&properties, &message.user_properties[message.n_user_properties]))
                ASSERT(++message.n_user_properties < MESSAGE_USER_PROPERTIES_MAX);
        for (; i < frame_n_recipients(notification); i++) {
                uint64_t number = frame_recipient(notification, i);
                const struct model_connection *connection = find_connection(plugin, number);

                plugin->position.n_recipients = notification->index + (uint32_t)i + 1;
                if (!connection)
                        continue;
                buf_reset(&topic);
                topic_append_notify(&topic, slice_from_string(connection->client_id), notification->key);
                ASSERT(!buf_failed(&topic));
                message.topic = buf_slice(&topic);
                put(plugin, (struct model_output){ .type = MODEL_NOTIFICATION, .connection = number },
                    &message);
        }
        plugin->position.is_complete |= notification->is_last;
        buf_deinit(&topic);
}

/* Size the next frame for COMPANION_FRAME_WORK_NS of execution. */
static void set_records_max(struct model_plugin *plugin, size_t n_records, uint64_t work_ns) {
        uint64_t n_max = COMPANION_FRAME_RECORDS_MAX;

        if (work_ns > 0 && COMPANION_FRAME_WORK_NS * n_records / work_ns < n_max)
                n_max = COMPANION_FRAME_WORK_NS * n_records / work_ns;
        plugin->n_records_max = n_max > 0 ? n_max : 1;
}

static void receive_end(struct model_plugin *plugin, uint64_t number, uint64_t work_ns, int64_t now_ns) {
        end_up_to(plugin, number, false);
        if (plugin->n_ended == 0)
                return;

        set_records_max(plugin, plugin->n_ended, work_ns);
        plugin->n_ended = 0;
        while (plugin->n_outstanding > 0 && plugin->outstanding[0] <= number) {
                plugin->n_outstanding--;
                memmove(plugin->outstanding, plugin->outstanding + 1,
                        plugin->n_outstanding * sizeof(*plugin->outstanding));
        }
        plugin->timeout_ns = now_ns + plugin->frame_timeout_ns;
}

static void receive_frame(struct model_plugin *plugin, const struct message *message, int64_t now_ns) {
        struct frame_to_plugin_record record;
        struct slice records;

        ASSERT(message->qos == 0 && frame_to_plugin_read(message->payload, &records) == 0);
        if (!plugin->has_store)
                return;
        plugin->is_serving = true;
        plugin->is_frame_due |= records.length == 0;
        while (frame_to_plugin_next(&records, &record))
                switch (record.kind) {
                case FRAME_REPLY:
                        receive_reply(plugin, &record.reply);
                        break;
                case FRAME_NOTIFICATION:
                        receive_notification(plugin, &record.notification);
                        break;
                case FRAME_KICK:
                        if (find_connection(plugin, record.connection))
                                kick(plugin, record.connection);
                        break;
                case FRAME_END:
                        receive_end(plugin, record.end.record_number, record.end.work_ns, now_ns);
                        break;
                }
        send_frames(plugin, COMPANION_FRAMES_MAX, now_ns);
}

void model_plugin_receive(struct model_plugin *plugin, const struct message *message, int64_t now_ns) {
        if (slice_equal_string(message->topic, COMPANION_HELLO)) {
                receive_hello(plugin, message);
                return;
        }
        ASSERT(slice_equal_string(message->topic, COMPANION_FRAME_TO_PLUGIN));
        receive_frame(plugin, message, now_ns);
}

void model_plugin_store_disconnected(struct model_plugin *plugin) {
        plugin->has_store = plugin->is_serving = false;
}

/* 7. Time */

static int64_t frame_deadline(const struct model_plugin *plugin) {
        return plugin->is_serving && plugin->n_outstanding > 0 ? plugin->timeout_ns : INT64_MAX;
}

/* The waiting request that arrived first, or NULL. */
static struct model_record *first_request(const struct model_plugin *plugin) {
        for (size_t i = 0; i < plugin->waiting.n; i++)
                if (plugin->waiting.list[i]->record.kind == FRAME_REQUEST)
                        return plugin->waiting.list[i];
        return NULL;
}

static int64_t wait_deadline(const struct model_plugin *plugin) {
        const struct model_record *request = plugin->wait_ns > 0 ? first_request(plugin) : NULL;

        return request ? request->arrived_ns + plugin->wait_ns : INT64_MAX;
}

int64_t model_plugin_deadline(const struct model_plugin *plugin) {
        int64_t frame_ns = frame_deadline(plugin), wait_ns = wait_deadline(plugin);

        return frame_ns < wait_ns ? frame_ns : wait_ns;
}

void model_plugin_tick(struct model_plugin *plugin, int64_t now_ns) {
        while (now_ns >= wait_deadline(plugin)) {
                struct model_record *request = first_request(plugin);

                plugin->counters.n_unavailable++;
                publish_error(plugin, request, COMPANION_ERROR_UNAVAILABLE);
                fair_queues_remove(&plugin->queues, &request->waiting);
                remove_record(&plugin->waiting, request);
                end_record(plugin, request);
        }
        if (now_ns >= frame_deadline(plugin)) {
                plugin->timeout_ns = now_ns + plugin->frame_timeout_ns;
                plugin->is_frame_due = true;
                send_frames(plugin, 1, now_ns);
        }
}
