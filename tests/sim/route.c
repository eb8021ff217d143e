/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Routes messages of the pipeline to clients, and reports disconnects: with the plugin or without.
 */

#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"
#include "base/assert.h"
#include "protocol/companion_hello.h"
#include "protocol/companion_mac.h"
#include "protocol/topics.h"
#include "sim/check.h"
#include "sim/world.h"

#define NOTHING ((struct slice){ 0 })

/*
 * Interval at which DISCONNECTED is repeated. Shorter than in the plugin, so that a run has several
 * repetitions.
 */
#define REPEAT_AFTER_NS INT64_C(200000000)

static const char *number_text(uint64_t number, char text[24]) {
        snprintf(text, 24, "%" PRIu64, number);
        return text;
}

static void send_to_store(struct world *world, const char *topic, const char *payload,
                          struct slice correlation) {
        struct message message = { .topic = slice_from_string(topic),
                                   .payload = slice_from_string(payload),
                                   .correlation_data = correlation,
                                   .qos = 1 };

        broker_send_to_store(world, &message);
}

static struct sim_client *find_connection(struct world *world, uint64_t connection) {
        for (size_t i = 0; i < world->n_clients; i++)
                if (connection != 0 && world->clients[i].connection == connection)
                        return &world->clients[i];
        return NULL;
}

static void append_welcome(const struct world *world, struct buf *text) {
        uint64_t connections[N_CLIENTS];
        struct companion_welcome welcome = { .sequence = world->broker.last_request,
                                             .is_guarded = true,
                                             .delivered = world->broker.delivered,
                                             .connections = connections };

        memcpy(welcome.mac_key, world->broker.mac_key, sizeof(welcome.mac_key));
        for (size_t i = 0; i < world->n_clients; i++)
                if (world->clients[i].connection != 0 && world->clients[i].is_tracked)
                        connections[welcome.n_connections++] = world->clients[i].connection;
        companion_welcome_append(text, &welcome);
}

/*
 * A planted fault: replace the text by that of the previous WELCOME, and keep the new one for the
 * next HELLO.
 */
static void exchange_welcome(struct sim_broker *broker, struct buf *text) {
        struct buf previous = broker->welcome;

        broker->welcome = *text;
        *text = previous;
        if (text->length == 0)
                buf_append_slice(text, buf_slice(&broker->welcome)); /* the first HELLO */
}

static void welcome(struct world *world, const struct message *message) {
        struct message reply = { .topic = SLICE_LITERAL(COMPANION_WELCOME),
                                 .correlation_data = message->correlation_data,
                                 .qos = 1 };
        static const uint8_t nonce[COMPANION_NONCE_SIZE]; /* the key differs for each HELLO */
        struct companion_hello hello;
        uint8_t box[512];
        struct buf text = { 0 };

        ASSERT(companion_hello_read(message->payload, &hello) == 0);
        append_welcome(world, &text);
        if (IS_PLANTED(PLANTED_OLD_WELCOME))
                exchange_welcome(&world->broker, &text);
        ASSERT(!buf_failed(&text) && text.length + COMPANION_BOX_EXTRA <= sizeof(box));
        companion_box_seal(buf_slice(&text), hello.key, nonce, box);
        reply.payload = (struct slice){ box, text.length + COMPANION_BOX_EXTRA };
        broker_send_to_store(world, &reply);
        buf_deinit(&text);
}

static size_t find_ended(const struct sim_broker *broker, uint64_t connection) {
        size_t i = 0;

        while (i < broker->n_ended && broker->ended[i] != connection)
                i++;
        return i;
}

static void acknowledge_end(struct sim_broker *broker, uint64_t connection) {
        size_t at = find_ended(broker, connection);

        if (at < broker->n_ended)
                broker->ended[at] = broker->ended[--broker->n_ended];
}

static void send_disconnected(struct world *world, uint64_t connection) {
        char text[24];

        send_to_store(world, COMPANION_DISCONNECTED, number_text(connection, text), NOTHING);
}

static void repeat_disconnected(struct world *world, struct timeline_event *happening);

static void plan_repetition(struct world *world) {
        if (world->broker.is_repeating)
                return;
        world->broker.is_repeating = true;
        timeline_plan(&world->timeline,
                      (struct timeline_event){ .at_ns = world->now.mono_ns + REPEAT_AFTER_NS,
                                               .happen = repeat_disconnected });
}

static void repeat_disconnected(struct world *world, struct timeline_event *happening) {
        struct sim_broker *broker = &world->broker;

        (void)happening;
        broker->is_repeating = false;
        for (size_t i = 0; broker->is_up && i < broker->n_ended; i++)
                send_disconnected(world, broker->ended[i]);
        if (broker->n_ended > 0)
                plan_repetition(world);
}

static void report_end(struct world *world, uint64_t connection) {
        struct sim_broker *broker = &world->broker;

        if (find_ended(broker, connection) == broker->n_ended) {
                ASSERT(array_reserve((void **)&broker->ended, &broker->ended_capacity, broker->n_ended + 1,
                                     sizeof(*broker->ended)) == 0);
                broker->ended[broker->n_ended++] = connection;
        }
        plan_repetition(world);
        if (world->is_healed || !world->faults.drops_disconnected || !random_chance(&world->random, 50))
                send_disconnected(world, connection);
}

/* The client reconnects at once. */
static void kick(struct world *world, const struct sim_client *client) {
        size_t i = (size_t)(client - world->clients);

        check_trace("%s is disconnected", truth_client(i));
        client_disconnect(world, i);
        client_return(world, i);
}

static void control(struct world *world, const struct message *message) {
        struct sim_client *client;
        uint64_t number;

        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_HELLO))) {
                world->broker.ignores_frames = false;
                world->broker.n_ended = 0;
                welcome(world, message);
                return;
        }
        ASSERT(parse_uint64(message->payload, &number) == 0);
        client = find_connection(world, number);
        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_TRACK))) {
                if (client)
                        client->is_tracked = true;
                else
                        report_end(world, number);
        } else if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_KICK))) {
                if (client)
                        kick(world, client);
        } else {
                acknowledge_end(&world->broker, number);
                if (client)
                        client->is_tracked = false;
        }
}

struct message broker_notification(const struct world *world, const struct message *deliver,
                                   const struct companion_frame *frame, size_t recipient,
                                   struct buf *topic) {
        uint64_t connection = companion_frame_recipient(frame, recipient);
        struct message message = *deliver;

        ASSERT(connection > 0 && connection <= world->broker.n_connections);
        buf_reset(topic);
        topic_append_notify(topic, slice_from_string(truth_client(world->broker.owners[connection - 1])),
                            frame->key);
        ASSERT(!buf_failed(topic));
        message.topic = buf_slice(topic);
        message.payload = frame->payload;
        return message;
}

static bool is_connected(const struct world *world, uint64_t connection) {
        return world->clients[world->broker.owners[connection - 1]].connection == connection;
}

/*
 * Deliver a frame to the recipients whose connections have not ended, unless it was delivered
 * before.
 */
static void deliver_frame(struct world *world, const struct message *deliver) {
        struct sim_broker *broker = &world->broker;
        struct companion_frame frame;
        struct buf topic = { 0 };
        bool is_dropped = IS_PLANTED(PLANTED_NOT_HANDED_OVER) && random_chance(&world->random, 5);

        ASSERT(companion_frame_read(deliver->payload, &frame) == 0);
        for (size_t i = 0; i < companion_frame_n_recipients(&frame); i++) {
                struct message message = broker_notification(world, deliver, &frame, i, &topic);
                bool is_repeated =
                        frame.sequence < broker->sequence ||
                        (frame.sequence == broker->sequence && frame.index + i < broker->n_recipients);

                if (is_repeated && !IS_PLANTED(PLANTED_REPEATED))
                        continue;
                broker->sequence = frame.sequence;
                broker->n_recipients = frame.index + i + 1;
                if (is_connected(world, companion_frame_recipient(&frame, i)) && !is_dropped)
                        truth_receive(&world->truth, &message);
        }
        buf_deinit(&topic);
        if (frame.is_last && frame.sequence > broker->delivered)
                broker->delivered = frame.sequence;
}

/* Acknowledge a frame with DELIVERED and the sequence of the last complete change. */
static void acknowledge(struct world *world, const struct message *deliver) {
        struct companion_frame frame;
        char text[24];

        ASSERT(companion_frame_read(deliver->payload, &frame) == 0);
        if (frame.wants_acknowledgement)
                send_to_store(world, COMPANION_DELIVERED, number_text(world->broker.delivered, text),
                              NOTHING);
}

/* Deliver to the client that the topic names after "replies/". */
static bool reply(struct world *world, const struct message *message) {
        struct slice name;

        slice_split(message->topic, '/', &name);
        for (size_t i = 0; i < world->n_clients; i++) {
                struct sim_client *client = &world->clients[i];
                struct timeline_event event = { .happen = client_receive,
                                                .number = i,
                                                .generation = client->connection };

                if (client->connection == 0 || !slice_equal(name, slice_from_string(truth_client(i))))
                        continue;
                event.at_ns = broker_after(world, &client->last_to_client_ns);
                event.message = message_copy(message);
                timeline_plan(&world->timeline, event);
                return true;
        }
        return false;
}

/*
 * Whether the plugin drops this DELIVER for lack of memory. The broker acknowledges it, and closes
 * the connection.
 */
static bool drops_frame(struct world *world) {
        struct sim_broker *broker = &world->broker;

        if (!broker->ignores_frames && world->faults.plugin_fails && !world->is_healed &&
            random_chance(&world->random, 2)) {
                broker->ignores_frames = true;
                world_plan(world, world_soon(world, 10), world_drop_link, 0);
        }
        return broker->ignores_frames;
}

/* broker_publish() has checked the content of the notification. */
bool broker_route(struct world *world, const struct message *message) {
        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_DELIVER))) {
                if (drops_frame(world))
                        return true;
                deliver_frame(world, message);
                acknowledge(world, message);
                return true;
        }
        if (slice_starts_with(message->topic, SLICE_LITERAL(COMPANION_CONTROL))) {
                control(world, message);
                return true;
        }
        if (slice_starts_with(message->topic, SLICE_LITERAL("replies/")))
                return reply(world, message);
        return random_chance(&world->random, 90); /* a notify topic: one of ten has no subscriber */
}

uint64_t broker_connection(struct world *world, size_t client) {
        struct sim_broker *broker = &world->broker;

        ASSERT(array_reserve((void **)&broker->owners, &broker->owners_capacity, broker->n_connections + 1,
                             sizeof(*broker->owners)) == 0);
        broker->owners[broker->n_connections++] = client;
        return broker->n_connections;
}

void broker_client_disconnected(struct world *world, size_t client) {
        struct sim_client *disconnected = &world->clients[client];
        char text[24];

        if (world->broker.has_plugin && disconnected->is_tracked)
                report_end(world, disconnected->connection);
        if (!world->broker.has_plugin && world->config.presence_topic) {
                snprintf(text, sizeof(text), "gone/%s", truth_client(client));
                send_to_store(world, text, "", NOTHING);
        }
        disconnected->connection = 0;
        disconnected->is_tracked = false;
}
