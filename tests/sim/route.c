/* SPDX-License-Identifier: Apache-2.0 */

/* Routes messages of the pipeline to clients, and reports disconnects: with the plugin or without. */

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/parse.h"
#include "protocol/companion_mac.h"
#include "sim/check.h"
#include "sim/world.h"

#define NOTHING ((struct slice){ 0 })

static const char *number_text(uint64_t number, char text[24]) {
        snprintf(text, 24, "%" PRIu64, number);
        return text;
}

static void tell(struct world *world, const char *topic, const char *payload, struct slice correlation) {
        struct message message = { .topic = slice_from_string(topic),
                                   .payload = slice_from_string(payload),
                                   .correlation_data = correlation,
                                   .qos = 1 };

        broker_tell(world, &message);
}

static struct sim_client *find_connection(struct world *world, struct slice text) {
        uint64_t connection;

        ASSERT(parse_uint64(text, &connection) == 0);
        for (size_t i = 0; i < world->n_clients; i++)
                if (connection != 0 && world->clients[i].connection == connection)
                        return &world->clients[i];
        return NULL;
}

static void append_connections(const struct world *world, struct buf *text) {
        for (size_t i = 0; i < world->n_clients; i++) {
                if (world->clients[i].connection == 0 || !world->clients[i].is_tracked)
                        continue;
                buf_append_uint(text, world->clients[i].connection);
                buf_append_string(text, "\n");
        }
}

static void welcome(struct world *world, const struct message *hello) {
        struct sim_broker *broker = &world->broker;
        struct message message = { .topic = SLICE_LITERAL(COMPANION_WELCOME),
                                   .correlation_data = hello->correlation_data,
                                   .qos = 1 };
        uint8_t box[512];
        struct buf text = { 0 };

        buf_append(&text, broker->mac_key, sizeof(broker->mac_key));
        buf_append_uint(&text, broker->last_request);
        buf_append_string(&text, "\n" COMPANION_GUARDED "\n");
        append_connections(world, &text);
        ASSERT(!buf_failed(&text) && text.length + COMPANION_BOX_EXTRA <= sizeof(box));
        companion_box_seal(buf_slice(&text), hello->payload.data, box);
        message.payload = (struct slice){ box, text.length + COMPANION_BOX_EXTRA };
        if (IS_PLANTED(PLANTED_OLD_WELCOME)) /* the plain text, to seal it again for another HELLO */
                message.response_topic = buf_slice(&text);
        broker_tell(world, &message);
        buf_deinit(&text);
}

static void take_up_run(struct sim_broker *broker, struct slice hello) {
        uint64_t run, sequence;

        ASSERT(companion_pair_read(hello, &run, &sequence) == 0);
        if (run == broker->run)
                return;
        broker->run = run;
        broker->last_sequence = sequence;
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
        char number[24];

        snprintf(number, sizeof(number), "%.*s", (int)message->payload.length,
                 (const char *)message->payload.data);
        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_HELLO))) {
                take_up_run(&world->broker, message->correlation_data);
                welcome(world, message);
                return;
        }
        client = find_connection(world, message->payload);
        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_TRACK))) {
                if (client)
                        client->is_tracked = true;
                else
                        tell(world, COMPANION_DISCONNECTED, number, NOTHING);
        } else if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_KICK))) {
                if (client)
                        kick(world, client);
        } else if (client) {
                client->is_tracked = false;
        }
}

/* Deliver to the client of this connection, unless it was delivered before. */
static bool hand_over(struct world *world, const struct message *message) {
        struct sim_broker *broker = &world->broker;
        struct slice number, rest;
        struct sim_client *client;
        uint64_t connection, sequence;

        number = slice_split(message->correlation_data, ':', &rest);
        client = find_connection(world, number);
        ASSERT(companion_pair_read(message->correlation_data, &connection, &sequence) == 0);
        if (sequence <= broker->last_sequence && !IS_PLANTED(PLANTED_REPEATED))
                return true;

        broker->last_sequence = sequence;
        if (client)
                truth_receive(&world->truth, message->response_topic, message);
        return client;
}

/* Deliver to the client that the topic names after "answers/". */
static bool answer(struct world *world, const struct message *message) {
        struct slice name;

        slice_split(message->topic, '/', &name);
        for (size_t i = 0; i < world->n_clients; i++) {
                struct sim_client *client = &world->clients[i];
                struct timeline_event happening = { .happen = client_receive,
                                                    .number = i,
                                                    .generation = client->connection };

                if (client->connection == 0 || !slice_equal(name, slice_from_string(truth_client(i))))
                        continue;
                happening.at_ns = broker_after(world, &client->last_to_client_ns);
                happening.message = message_copy(message);
                timeline_plan(&world->timeline, happening);
                return true;
        }
        return false;
}

/* broker_publish() has checked the content of the notification. */
bool broker_route(struct world *world, const struct message *message) {
        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_DELIVER)))
                return hand_over(world, message);
        if (slice_starts_with(message->topic, SLICE_LITERAL(COMPANION_CONTROL))) {
                control(world, message);
                return true;
        }
        if (slice_starts_with(message->topic, SLICE_LITERAL("answers/")))
                return answer(world, message);
        return random_chance(&world->random, 90); /* a notify topic: some client is not subscribed */
}

uint64_t broker_connection(struct world *world) {
        return ++world->broker.n_connections;
}

void broker_client_disconnected(struct world *world, size_t client) {
        struct sim_client *disconnected = &world->clients[client];
        char text[24];

        if (world->broker.has_plugin && disconnected->is_tracked)
                tell(world, COMPANION_DISCONNECTED, number_text(disconnected->connection, text), NOTHING);
        if (!world->broker.has_plugin && world->config.presence_topic) {
                snprintf(text, sizeof(text), "gone/%s", truth_client(client));
                tell(world, text, "", NOTHING);
        }
        disconnected->connection = 0;
        disconnected->is_tracked = false;
}
