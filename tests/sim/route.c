/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Routes messages of the pipeline to clients, and reports disconnects: with the plugin
 * (tests/support/model_plugin.h) or without.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "pipeline/internal.h"
#include "protocol/companion_box.h"
#include "protocol/handshake.h"
#include "protocol/topics.h"
#include "sim/check.h"
#include "sim/world.h"

/* 1. Connections */

size_t broker_owner(const struct world *world, uint64_t connection) {
        ASSERT(connection > 0 && connection <= world->broker.n_connections);
        return world->broker.owners[connection - 1];
}

uint64_t broker_connection(struct world *world, size_t client) {
        struct sim_broker *broker = &world->broker;

        ASSERT(array_reserve((void **)&broker->owners, &broker->owners_capacity, broker->n_connections + 1,
                             sizeof(*broker->owners)) == 0);
        broker->owners[broker->n_connections++] = client;
        return broker->n_connections;
}

void broker_client_disconnected(struct world *world, size_t client) {
        uint64_t connection = world->clients[client].connection;
        char text[24];
        struct message message = { .qos = 1 };

        world->clients[client].connection = 0;
        if (world->broker.has_plugin) {
                model_plugin_disconnected(&world->broker.plugin, connection, false, world->now.mono_ns);
                plugin_finish(world);
        } else if (world->config.presence_topic) {
                snprintf(text, sizeof(text), "gone/%s", truth_client(client));
                message.topic = slice_from_string(text);
                broker_send_to_store(world, &message);
        }
}

/* 2. What the plugin puts out */

/* Deliver to the client that the topic names: replies/{client}. */
static bool deliver_reply(struct world *world, const struct message *message) {
        struct slice name, rest;

        slice_split(message->topic, '/', &rest);
        name = slice_split(rest, '/', &rest);
        for (size_t i = 0; i < world->n_clients; i++) {
                struct sim_client *client = &world->clients[i];
                struct timeline_event event = { .happen = client_receive,
                                                .number = i,
                                                .generation = client->connection };

                if (client->connection == 0 || !slice_equal_string(name, truth_client(i)))
                        continue;
                event.at_ns = broker_after(world, &client->last_to_client_ns);
                event.message = message_copy(message);
                timeline_plan(&world->timeline, event);
                return true;
        }
        return false;
}

static void deliver_notification(struct world *world, uint64_t connection, const struct message *message) {
        if (IS_PLANTED(PLANTED_NOT_HANDED_OVER) && random_chance(&world->random, 5))
                return;
        ASSERT(world->clients[broker_owner(world, connection)].connection == connection);
        truth_receive(&world->truth, message);
}

/* The client reconnects at once. */
static void kick(struct world *world, uint64_t connection) {
        size_t client = broker_owner(world, connection);

        if (world->clients[client].connection != connection)
                return;
        check_trace("%s is disconnected", truth_client(client));
        client_disconnect(world, client);
        client_return(world, client);
}

/* The queue of the pipeline's session may be full. */
static void send_to_store(struct world *world, const struct message *message) {
        bool is_dropped =
                !world->is_healed && world->faults.drops_frames && random_chance(&world->random, 5);

        check_trace("the plugin sends %.*s%s", (int)message->topic.length, (const char *)message->topic.data,
                    is_dropped ? ", which is dropped" : "");
        if (world->broker.is_up && !is_dropped)
                broker_send_to_store(world, message);
}

static void tick_plugin(struct world *world, struct timeline_event *event) {
        (void)event;
        world->broker.plugin_tick_ns = INT64_MAX;
        model_plugin_tick(&world->broker.plugin, world->now.mono_ns);
        plugin_finish(world);
}

static void plan_tick(struct world *world) {
        int64_t deadline_ns = model_plugin_deadline(&world->broker.plugin);

        if (deadline_ns >= world->broker.plugin_tick_ns)
                return;
        world->broker.plugin_tick_ns = deadline_ns;
        world_plan(world, deadline_ns, tick_plugin, 0);
}

/* A planted fault: replies overtake the notifications before them. */
static void move_replies(struct model_plugin *plugin) {
        for (size_t i = 1; i < plugin->n_outputs; i++)
                for (size_t j = i; j > 0 && plugin->outputs[j].type == MODEL_REPLY &&
                                   plugin->outputs[j - 1].type == MODEL_NOTIFICATION;
                     j--) {
                        struct model_output reply = plugin->outputs[j];

                        plugin->outputs[j] = plugin->outputs[j - 1];
                        plugin->outputs[j - 1] = reply;
                }
}

void plugin_finish(struct world *world) {
        uint64_t connections[N_CLIENTS];
        struct model_output output;

        if (IS_PLANTED(PLANTED_OVERTAKEN))
                move_replies(&world->broker.plugin);
        while (model_plugin_take(&world->broker.plugin, &output)) {
                switch (output.type) {
                case MODEL_TO_STORE:
                        send_to_store(world, output.message);
                        break;
                case MODEL_REPLY:
                        world_read_connections(world, connections);
                        truth_receive_reply(&world->truth, output.message, connections);
                        deliver_reply(world, output.message);
                        break;
                case MODEL_NOTIFICATION:
                        deliver_notification(world, output.connection, output.message);
                        break;
                case MODEL_KICK:
                        kick(world, output.connection);
                        break;
                }
                free(output.message);
        }
        plan_tick(world);
}

void plugin_request(struct world *world, const struct message *message, size_t client) {
        const struct model_sender sender = { .connection = world->clients[client].connection,
                                             .client_id = slice_from_string(truth_client(client)) };

        check_trace("%9.3f the plugin takes %.*s of connection %" PRIu64, (double)world->now.mono_ns / 1e9,
                    (int)message->correlation_data.length, (const char *)message->correlation_data.data,
                    sender.connection);
        model_plugin_request(&world->broker.plugin, &sender, message, world->now.mono_ns);
        plugin_finish(world);
}

/* 3. Planted faults */

static bool is_keynotify(const struct world *world, const struct model_record *record) {
        return record->record.kind == FRAME_REQUEST &&
               truth_find(&world->truth, record->record.request.correlation_data)->verb == VERB_KEYNOTIFY;
}

/* The record becomes a request that the pipeline drops, because it has no Response Topic. */
static void empty_record(struct model_record *record) {
        struct frame_to_store_record empty = { .kind = FRAME_REQUEST,
                                               .connection = record->connection->number,
                                               .client_id = SLICE_LITERAL("c"),
                                               .request = { .qos = 1 } };
        struct frame_to_store frame = { 0 };

        empty.request.correlation_data = record->record.request.correlation_data;
        record->bytes = (struct buf){ 0 };
        frame_to_store_append_record(&record->bytes, &empty);
        frame.records = buf_slice(&record->bytes);
        ASSERT(!buf_failed(&record->bytes) && frame_to_store_next(&frame, &record->record));
}

/*
 * Each KEYNOTIFY that the plugin would send again waits behind new requests, and gets another
 * number. Its connection is open.
 */
static void mix(struct world *world) {
        struct model_plugin *plugin = &world->broker.plugin;
        struct model_records *waiting = &plugin->waiting;

        for (size_t i = 0; i < plugin->numbered.n; i++) {
                struct model_record *record = plugin->numbered.list[i], *copy;

                if (!is_keynotify(world, record) || record->connection->has_ended)
                        continue;
                copy = malloc(sizeof(*copy));
                ASSERT(copy && array_reserve((void **)&waiting->list, &waiting->capacity, waiting->n + 1,
                                             sizeof(*waiting->list)) == 0);
                *copy = *record;
                copy->number = 0;
                copy->waiting = (struct fair_item){ 0 };
                waiting->list[waiting->n++] = copy;
                fair_queues_add(&plugin->queues, copy->connection->queue, &copy->waiting,
                                copy->bytes.length);
                copy->connection->n_requests++;
                empty_record(record);
        }
}

/*
 * Replace the text of WELCOME by that of the previous WELCOME, and keep the new one for the next
 * HELLO.
 */
static void exchange_welcome(struct world *world, const struct message *hello_message) {
        struct model_output *output = NULL;
        struct buf previous = world->broker.welcome;
        struct handshake_hello hello;
        uint8_t text[512];
        struct message *welcome;
        size_t length;

        for (size_t i = 0; i < world->broker.plugin.n_outputs && !output; i++)
                if (world->broker.plugin.outputs[i].type == MODEL_TO_STORE)
                        output = &world->broker.plugin.outputs[i];
        if (!output)
                return; /* a repeated HELLO */
        ASSERT(output->message->payload.length <= sizeof(text));
        welcome = output->message;
        ASSERT(handshake_hello_read(hello_message->payload, &hello) == 0);
        ASSERT(companion_box_open(welcome->payload, hello.key, text, &length) == 0);
        world->broker.welcome = (struct buf){ 0 };
        buf_append(&world->broker.welcome, text, length);
        if (previous.length > 0) {
                uint8_t box[512 + COMPANION_BOX_EXTRA];
                struct message other = *welcome;

                companion_box_seal(buf_slice(&previous), hello.key, box);
                other.payload = (struct slice){ box, previous.length + COMPANION_BOX_EXTRA };
                output->message = message_copy(&other);
                ASSERT(output->message);
                free(welcome);
        }
        buf_deinit(&previous);
}

/* The plugin does not learn which broker was served last. */
static void receive_without_run(struct model_plugin *plugin, const struct message *message, int64_t now_ns) {
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        struct message changed = *message;
        struct handshake_hello hello;

        ASSERT(handshake_hello_read(message->payload, &hello) == 0);
        hello.served_broker_run = 0;
        handshake_hello_append(&payload, &hello);
        changed.payload = buf_slice(&payload);
        ASSERT(!buf_failed(&payload));
        model_plugin_receive(plugin, &changed, now_ns);
}

/* 4. Messages of the pipeline */

/* The plugin has no memory for a frame: it closes the connection, and ignores what follows. */
static bool drops_frame(struct world *world) {
        if (world->is_healed || !world->faults.plugin_fails || !random_chance(&world->random, 2))
                return false;
        model_plugin_store_disconnected(&world->broker.plugin);
        world_plan(world, world_soon(world, 10), world_drop_link, 0);
        return true;
}

/* Serve the other broker. */
static void receive_elsewhere(struct world *world, const struct message *message) {
        struct model_plugin *other = &world->broker.other;
        struct model_output output;

        client_forget_registrations(world);
        model_plugin_receive(other, message, world->now.mono_ns);
        while (model_plugin_take(other, &output)) {
                ASSERT(output.type == MODEL_TO_STORE);
                send_to_store(world, output.message);
                free(output.message);
        }
}

/* The plugin ends numbered records without a reply if the store does not know whether they were executed. */
static void abandon_requests(struct world *world) {
        for (size_t i = 0; i < world->n_clients; i++)
                client_abandon(world, i);
}

static void receive_hello(struct world *world, const struct message *message) {
        struct model_plugin *plugin = &world->broker.plugin;
        size_t n_numbered = plugin->numbered.n;

        if (IS_PLANTED(PLANTED_REPEATED))
                plugin->position.sequence = 0;
        if (IS_PLANTED(PLANTED_MIXED))
                mix(world);
        if (IS_PLANTED(PLANTED_RECORDS_KEPT))
                receive_without_run(plugin, message, world->now.mono_ns);
        else
                model_plugin_receive(plugin, message, world->now.mono_ns);
        if (plugin->has_ended)
                world_plan(world, world->now.mono_ns, world_restart_broker, 0);
        if (plugin->numbered.n < n_numbered)
                abandon_requests(world);
        if (IS_PLANTED(PLANTED_OLD_WELCOME))
                exchange_welcome(world, message);
}

static void receive_control(struct world *world, const struct message *message) {
        struct model_plugin *plugin = &world->broker.plugin;
        bool is_hello = slice_equal(message->topic, SLICE_LITERAL(COMPANION_HELLO));

        if (world->broker.is_away) {
                receive_elsewhere(world, message);
                return;
        }
        if (!is_hello && drops_frame(world))
                return;
        if (is_hello)
                receive_hello(world, message);
        else
                model_plugin_receive(plugin, message, world->now.mono_ns);
        plugin_finish(world);
}

/* broker_publish() has checked the content. */
bool broker_route(struct world *world, const struct message *message) {
        if (slice_starts_with(message->topic, SLICE_LITERAL(COMPANION_CONTROL))) {
                receive_control(world, message);
                return true;
        }
        if (slice_starts_with(message->topic, SLICE_LITERAL("replies/")))
                return deliver_reply(world, message);
        return random_chance(&world->random, 90); /* a notify topic: one of ten has no subscriber */
}

/* 5. Checks of frames when the pipeline publishes them */

static void read_properties(struct message *message, struct slice properties) {
        while (frame_property_next(&properties, &message->user_properties[message->n_user_properties]))
                message->n_user_properties++;
}

static void check_reply(struct world *world, const struct frame_reply *reply) {
        const struct model_record *record = model_plugin_find(&world->broker.plugin, reply->record_number);
        struct message message = { .payload = reply->payload };

        check_trace("  reply %" PRIu64 "%s%s%s %.*s", reply->record_number,
                    reply->tracking == FRAME_TRACKED ? " tracked" : "",
                    reply->tracking == FRAME_UNTRACKED ? " untracked" : "",
                    reply->has_message ? "" : " without a message",
                    (int)(reply->payload.length > 2 ? reply->payload.length - 2 : 0),
                    (const char *)reply->payload.data);
        CHECK(record, "each reply belongs to a request that is kept");
        if (!reply->has_message)
                return;
        message.correlation_data = record->record.request.correlation_data;
        read_properties(&message, reply->properties);
        truth_reply(&world->truth, &message, world->now);
}

static void check_notification(struct world *world, const struct frame_notification *notification) {
        struct message message = { .payload = notification->payload };
        struct buf topic = { 0 };

        check_trace("  notification %" PRIu64 " to %zu", notification->sequence,
                    frame_n_recipients(notification));
        read_properties(&message, notification->properties);
        for (size_t i = 0; i < frame_n_recipients(notification); i++) {
                size_t client = broker_owner(world, frame_recipient(notification, i));

                buf_reset(&topic);
                topic_append_notify(&topic, slice_from_string(truth_client(client)), notification->key);
                ASSERT(!buf_failed(&topic));
                message.topic = buf_slice(&topic);
                broker_check_notification(world, &message);
        }
        buf_deinit(&topic);
}

static void check_record(struct world *world, const struct frame_to_plugin_record *record) {
        switch (record->kind) {
        case FRAME_REPLY:
                check_reply(world, &record->reply);
                break;
        case FRAME_NOTIFICATION:
                check_notification(world, &record->notification);
                break;
        case FRAME_KICK:
                check_trace("  kick %" PRIu64, record->connection);
                break;
        case FRAME_END:
                check_trace("  end %" PRIu64, record->end.record_number);
                break;
        }
}

/* The plugin ignores frames before HELLO. */
void plugin_check_frame(struct world *world, const struct message *frame) {
        struct frame_to_plugin_record record;
        struct slice records, rest;

        ASSERT(frame_to_plugin_read(frame->payload, &records) == 0);
        if (world->pipeline->peer.state != PEER_WITH_PLUGIN)
                return;
        rest = records;
        while (IS_PLANTED(PLANTED_REPLIES_FIRST) && frame_to_plugin_next(&rest, &record))
                if (record.kind == FRAME_REPLY)
                        check_record(world, &record);
        while (frame_to_plugin_next(&records, &record))
                if (record.kind != FRAME_REPLY || !IS_PLANTED(PLANTED_REPLIES_FIRST))
                        check_record(world, &record);
}
