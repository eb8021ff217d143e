/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The broker between the clients and the pipeline. In some runs it also plays the plugin
 * (common/protocol/companion.h). After a reconnect both sides send unacknowledged messages again.
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "pipeline/internal.h"
#include "protocol/companion.h"
#include "protocol/topics.h"
#include "sim/check.h"
#include "sim/world.h"

int64_t broker_after(struct world *world, int64_t *last_ns) {
        int64_t at_ns = world_soon(world, 5);

        if (at_ns < *last_ns)
                at_ns = *last_ns;
        return *last_ns = at_ns;
}

/* 1. To the pipeline */

static void wake(struct world *world, struct timeline_event *event);

static void plan_wake(struct world *world) {
        struct sim_broker *broker = &world->broker;

        if (!broker->is_up || broker->is_wake_planned || broker->n_waiting == broker->n_unacknowledged)
                return;
        broker->is_wake_planned = true;
        timeline_plan(&world->timeline,
                      (struct timeline_event){ .at_ns = broker_after(world, &broker->last_to_store_ns),
                                               .happen = wake,
                                               .generation = broker->link });
}

void broker_send_to_store(struct world *world, const struct message *message) {
        struct sim_broker *broker = &world->broker;

        ASSERT(array_reserve((void **)&broker->waiting, &broker->waiting_capacity, broker->n_waiting + 1,
                             sizeof(*broker->waiting)) == 0);
        broker->waiting[broker->n_waiting] = message_copy(message);
        ASSERT(broker->waiting[broker->n_waiting++]);
        plan_wake(world);
}

static void drop_waiting(struct sim_broker *broker, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(broker->waiting[i]);
        broker->n_waiting -= n;
        for (size_t i = 0; i < broker->n_waiting; i++)
                broker->waiting[i] = broker->waiting[i + n];
}

static void trace(const struct world *world, const char *direction, const struct message *message) {
        char line[100] = "";

        if (!check_is_traced)
                return;
        /* Do not print the payload of WELCOME: it is encrypted. */
        if (!slice_equal(message->topic, SLICE_LITERAL(COMPANION_WELCOME)))
                snprintf(line, sizeof(line), "%.*s", (int)message->payload.length,
                         (const char *)message->payload.data);
        for (char *at = line; *at; at++)
                if (*at < ' ')
                        *at = '|';
        check_trace("%9.3f %s %.*s %.*s %s %.*s", (double)world->now.mono_ns / 1e9, direction,
                    (int)message->topic.length, (const char *)message->topic.data,
                    (int)message->correlation_data.length, (const char *)message->correlation_data.data,
                    line, (int)message_property(message, COMPANION_PROPERTY_MAC).length,
                    (const char *)message_property(message, COMPANION_PROPERTY_MAC).data);
}

static uint64_t n_dropped(const struct world *world) {
        const struct counters *counters = pipeline_counters(world->pipeline);

        return counters->n_drops[DROP_REPEATED] + counters->n_drops[DROP_UNVERIFIED];
}

static void deliver_request(struct world *world, const struct message *message) {
        struct sim_request *request = truth_find(&world->truth, message->correlation_data);
        bool is_checked_later = session_broker_kind(&world->pipeline->session) == BROKER_UNKNOWN;
        uint64_t n_dropped_before = n_dropped(world);

        if (request->delivered_ns > world->now.mono_ns)
                request->delivered_ns = world->now.mono_ns;
        turns_add(&world->turns, request, is_checked_later);
        pipeline_receive(world->pipeline, message, world_store_now(world));
        if (n_dropped(world) > n_dropped_before)
                turns_drop_last(&world->turns, request->client);
}

/* The client of a message on the presence topic, or N_CLIENTS. */
static size_t disconnected_client(const struct world *world, const struct message *message) {
        struct slice client;
        size_t i = 0;

        if (!world->config.presence_topic ||
            !topic_match_client(message->topic, slice_from_string(world->config.presence_topic), &client))
                return N_CLIENTS;
        while (i < N_CLIENTS && !slice_equal(client, slice_from_string(truth_client(i))))
                i++;
        return i;
}

static void deliver_disconnect(struct world *world, const struct message *message, size_t client) {
        turns_add_disconnect(&world->turns, client);
        pipeline_receive(world->pipeline, message, world_store_now(world));
        if (pipeline_n_waiting_bytes(world->pipeline) == 0)
                turns_drop_last(&world->turns, client);
}

static void deliver_message(struct world *world, const struct message *message) {
        size_t client = disconnected_client(world, message);

        if (slice_equal(message->topic, SLICE_LITERAL(TOPIC_INVOKE)))
                deliver_request(world, message);
        else if (client < N_CLIENTS)
                deliver_disconnect(world, message, client);
        else
                pipeline_receive(world->pipeline, message, world_store_now(world));
}

static void deliver(struct world *world, size_t n) {
        struct sim_broker *broker = &world->broker;

        for (; n > 0 && broker->n_unacknowledged < broker->n_waiting; n--) {
                struct message *message = broker->waiting[broker->n_unacknowledged++];

                trace(world, ">", message);
                if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_WELCOME)))
                        truth_begin_attempt(&world->truth);
                deliver_message(world, message);
                if (world->flushes_each)
                        pipeline_wakeup_ended(world->pipeline, world_store_now(world));
        }
}

static size_t find_outgoing(const struct sim_broker *broker, uint16_t id) {
        size_t i = 0;

        while (i < broker->n_outgoing && broker->outgoing[i].id != id)
                i++;
        return i;
}

static void acknowledge(struct world *world) {
        struct sim_broker *broker = &world->broker;

        for (size_t i = 0; i < broker->n_outgoing;) {
                struct sim_outgoing outgoing = broker->outgoing[i];

                if (!outgoing.is_acknowledged) {
                        i++;
                        continue;
                }
                free(outgoing.message);
                broker->n_outgoing--;
                memmove(&broker->outgoing[i], &broker->outgoing[i + 1],
                        (broker->n_outgoing - i) * sizeof(outgoing));
                pipeline_acknowledged(world->pipeline, outgoing.id, outgoing.no_subscriber,
                                      world_store_now(world));
        }
}

/* End the wake-up: the pipeline commits what it has read. */
static void end_wakeup(struct world *world) {
        pipeline_wakeup_ended(world->pipeline, world_store_now(world));
}

static void read_acknowledgements(struct world *world, struct timeline_event *event) {
        struct sim_broker *broker = &world->broker;

        if (event->generation != broker->link || !broker->is_up)
                return;
        acknowledge(world);
        end_wakeup(world);
}

/*
 * The pipeline reads some of the waiting messages. It has sent the PUBACKs of the messages of the
 * previous wake-up.
 */
static void wake(struct world *world, struct timeline_event *event) {
        struct sim_broker *broker = &world->broker;

        if (event->generation != broker->link || !broker->is_up)
                return;

        broker->is_wake_planned = false;
        drop_waiting(broker, broker->n_unacknowledged);
        broker->n_unacknowledged = 0;
        deliver(world, 1 + random_below(&world->random, 6));
        acknowledge(world); /* acknowledgements come in the same stream */
        end_wakeup(world);
        plan_wake(world);
}

/* 2. From the pipeline */

static void arrive(struct world *world, struct timeline_event *event) {
        struct sim_broker *broker = &world->broker;
        size_t at = find_outgoing(broker, (uint16_t)event->number);
        struct sim_outgoing *outgoing = &broker->outgoing[at];

        if (event->generation != broker->link || !broker->is_up || at == broker->n_outgoing)
                return;
        outgoing->no_subscriber = !broker_route(world, outgoing->message) && !broker->has_plugin;
        outgoing->is_acknowledged = true;
        timeline_plan(&world->timeline,
                      (struct timeline_event){ .at_ns = broker_after(world, &broker->last_to_store_ns),
                                               .happen = read_acknowledgements,
                                               .generation = broker->link });
}

static void plan_arrival(struct world *world, uint16_t id) {
        struct sim_broker *broker = &world->broker;

        timeline_plan(&world->timeline,
                      (struct timeline_event){ .at_ns = broker_after(world, &broker->last_to_broker_ns),
                                               .happen = arrive,
                                               .number = id,
                                               .generation = broker->link });
}

static void check_notification(struct world *world, const struct message *message) {
        static struct message *delayed;

        if (IS_PLANTED(PLANTED_LOST_NOTIFIED) && random_chance(&world->random, 5))
                return;
        if (IS_PLANTED(PLANTED_SWAPPED) && !delayed && random_chance(&world->random, 10)) {
                delayed = message_copy(message);
                return;
        }
        world->tally->n_notifications++;
        truth_notify(&world->truth, message);
        if (delayed) {
                truth_notify(&world->truth, delayed);
                free(delayed);
                delayed = NULL;
        }
}

static void check_frame(struct world *world, const struct message *deliver) {
        struct companion_frame frame;
        struct buf topic = { 0 };

        ASSERT(companion_frame_read(deliver->payload, &frame) == 0);
        for (size_t i = 0; i < companion_frame_n_recipients(&frame); i++) {
                struct message message = broker_notification(world, deliver, &frame, i, &topic);

                check_notification(world, &message);
        }
        buf_deinit(&topic);
}

static void check_published(struct world *world, const struct message *message) {
        if (slice_starts_with(message->topic, SLICE_LITERAL("replies/")))
                truth_reply(&world->truth, message, world->now);
        else if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_DELIVER)))
                check_frame(world, message);
        else if (!slice_starts_with(message->topic, SLICE_LITERAL(COMPANION_CONTROL)))
                check_notification(world, message);
}

int broker_publish(void *userdata, const struct message *message, uint16_t *ret_id) {
        struct world *world = userdata;
        struct sim_broker *broker = &world->broker;
        struct sim_outgoing *outgoing;

        trace(world, "<", message);
        policy_observe(world);
        check_published(world, message);
        ASSERT(array_reserve((void **)&broker->outgoing, &broker->outgoing_capacity, broker->n_outgoing + 1,
                             sizeof(*broker->outgoing)) == 0);
        do
                broker->last_id++;
        while (broker->last_id == 0 || find_outgoing(broker, broker->last_id) < broker->n_outgoing);

        outgoing = &broker->outgoing[broker->n_outgoing++];
        *outgoing = (struct sim_outgoing){ .message = message_copy(message), .id = broker->last_id };
        ASSERT(outgoing->message);
        if (broker->is_up)
                plan_arrival(world, broker->last_id);
        *ret_id = broker->last_id;
        return 0;
}

bool broker_has_room(void *userdata) {
        struct world *world = userdata;

        return world->has_room && !IS_PLANTED(PLANTED_NO_ROOM);
}

/* 3. Connections */

void broker_connect_store(struct world *world) {
        struct sim_broker *broker = &world->broker;
        struct message banner = { .topic = SLICE_LITERAL(COMPANION_BANNER),
                                  .payload = SLICE_LITERAL(COMPANION_VERSION),
                                  .qos = 1 };

        if (broker->is_up || !world->pipeline)
                return;

        check_trace("connected");
        truth_begin_attempt(&world->truth);
        broker->is_up = true;
        broker->link++;
        broker->is_wake_planned = false;
        broker->n_unacknowledged = 0;
        broker->ignores_frames = broker->has_plugin && !IS_PLANTED(PLANTED_REPEATED);
        for (size_t i = 0; i < broker->n_outgoing; i++) { /* unacknowledged messages, before new ones */
                broker->outgoing[i].is_acknowledged = false;
                plan_arrival(world, broker->outgoing[i].id);
        }
        deliver(world, broker->n_waiting); /* before the retained messages of the subscription */
        if (broker->has_plugin)
                pipeline_receive(world->pipeline, &banner, world_store_now(world));
        pipeline_connected(world->pipeline, broker->session_present, world_store_now(world));
        pipeline_wakeup_ended(world->pipeline, world_store_now(world));
        broker->session_present = true;
        plan_wake(world);
}

void broker_drop_store(struct world *world) {
        struct sim_broker *broker = &world->broker;

        check_trace("cut off");
        if (broker->is_up)
                pipeline_disconnected(world->pipeline);
        broker->is_up = false;
        broker->is_wake_planned = false;
}

void broker_forget_outgoing(struct sim_broker *broker) {
        while (broker->n_outgoing > 0)
                free(broker->outgoing[--broker->n_outgoing].message);
}

void broker_draw_key(struct world *world) {
        struct sim_broker *broker = &world->broker;

        for (size_t i = 0; i < sizeof(broker->mac_key); i++)
                broker->mac_key[i] = (uint8_t)random_next(&world->random);
        broker->last_request = 0;
}

void broker_restart(struct world *world) {
        struct sim_broker *broker = &world->broker;

        broker_drop_store(world);
        for (size_t i = 0; i < world->n_clients; i++) { /* without a DISCONNECTED */
                world->clients[i].connection = 0;
                world->clients[i].is_tracked = false;
        }
        if (random_chance(&world->random, 50)) {
                drop_waiting(broker, broker->n_waiting);
                broker->session_present = false;
        }
        broker->n_unacknowledged = 0;
        broker->sequence = broker->n_recipients = broker->delivered = 0;
        broker->n_ended = 0;
        broker_draw_key(world);
}

/*
 * A client that has taken over the store's session knows a request with its MAC. It publishes the
 * request again as a will, which the plugin does not process: unchanged (a copy) and with other
 * Correlation Data (a forgery). The pipeline must execute neither. An executed forgery counts as
 * another execution of the request, because truth_find() ignores the leading zero of its
 * Correlation Data. For a SET, the check that a request is executed once fails.
 */
static void broker_attack(struct world *world, const struct message *message) {
        struct message forgery = *message;
        char correlation[32];

        snprintf(correlation, sizeof(correlation), "0%.*s", (int)message->correlation_data.length,
                 (const char *)message->correlation_data.data);
        forgery.correlation_data = slice_from_string(correlation);
        broker_send_to_store(world, message);
        broker_send_to_store(world, &forgery);
}

/*
 * As the plugin does, add a MAC with a new sequence number and the client id to a PUBLISH of a
 * client.
 */
static void add_identity_and_send(struct world *world, const struct message *message, size_t client) {
        struct sim_broker *broker = &world->broker;
        struct message identified = *message;
        struct companion_request request = {
                .client_id = slice_from_string(truth_client(client)),
                .response_topic = message->response_topic,
                .correlation_data = message->correlation_data,
                .payload = message->payload,
                .properties = message->properties_digest,
                .connection = world->clients[client].connection,
        };
        struct companion_mac mac;

        if (broker->has_plugin) {
                request.sequence = ++broker->last_request;
                mac = companion_mac_compute(&request, broker->mac_key);
                identified.user_properties[identified.n_user_properties++] =
                        (struct user_property){ SLICE_LITERAL(COMPANION_PROPERTY_MAC),
                                                { (const uint8_t *)mac.text, mac.length } };
                identified.user_properties[identified.n_user_properties++] =
                        (struct user_property){ SLICE_LITERAL(COMPANION_PROPERTY_CLIENT_ID),
                                                request.client_id };
        }
        broker_send_to_store(world, &identified);
        if (broker->has_plugin && random_chance(&world->random, 5))
                broker_attack(world, &identified);
}

void broker_receive_request(struct world *world, const struct message *message, size_t client) {
        struct message copy = *message;
        char correlation[32];

        add_identity_and_send(world, message, client);
        if (random_chance(&world->random, 5))
                add_identity_and_send(world, message, client); /* QoS 1 */
        if (IS_PLANTED(PLANTED_OTHER_REQUEST) && random_chance(&world->random, 20)) {
                snprintf(correlation, sizeof(correlation), "0%.*s", (int)message->correlation_data.length,
                         (const char *)message->correlation_data.data);
                copy.correlation_data = slice_from_string(correlation);
                add_identity_and_send(world, &copy, client);
        }
}

void broker_deinit(struct sim_broker *broker) {
        drop_waiting(broker, broker->n_waiting);
        free(broker->waiting);
        broker_forget_outgoing(broker);
        free(broker->outgoing);
        free(broker->owners);
        free(broker->ended);
}
