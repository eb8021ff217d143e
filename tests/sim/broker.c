/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The broker between the clients and the pipeline. In some runs it has the plugin (route.c). After a
 * reconnect both sides send unacknowledged messages again; messages at QoS 0 are lost.
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "pipeline/internal.h"
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

/* Drop the messages that are lost with the connection. */
static void drop_waiting_at_qos_0(struct sim_broker *broker) {
        size_t n = 0;

        for (size_t i = 0; i < broker->n_waiting; i++)
                if (broker->waiting[i]->qos > 0)
                        broker->waiting[n++] = broker->waiting[i];
                else
                        free(broker->waiting[i]);
        broker->n_waiting = n;
}

static void trace(const struct world *world, const char *direction, const struct message *message) {
        bool is_binary = slice_starts_with(message->topic, SLICE_LITERAL(COMPANION_SYS)) ||
                         slice_starts_with(message->topic, SLICE_LITERAL(COMPANION_CONTROL));
        char line[100] = "";

        if (!check_is_traced)
                return;
        if (!is_binary)
                snprintf(line, sizeof(line), "%.*s", (int)message->payload.length,
                         (const char *)message->payload.data);
        for (char *at = line; *at; at++)
                if (*at < ' ')
                        *at = '|';
        check_trace("%9.3f %s %.*s %.*s %s", (double)world->now.mono_ns / 1e9, direction,
                    (int)message->topic.length, (const char *)message->topic.data,
                    (int)message->correlation_data.length, (const char *)message->correlation_data.data,
                    line);
}

/* With the plugin, the pipeline ignores requests outside frames. */
static void deliver_request(struct world *world, const struct message *message) {
        struct sim_request *request = truth_find(&world->truth, message->correlation_data);

        if (!world->broker.has_plugin) {
                if (request->delivered_ns > world->now.mono_ns)
                        request->delivered_ns = world->now.mono_ns;
                turns_add(&world->turns, request);
        }
        pipeline_receive(world->pipeline, message, world_store_now(world));
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
                        pipeline_advance(world->pipeline, world_store_now(world));
        }
}

static size_t find_outgoing(const struct sim_broker *broker, uint16_t id) {
        size_t i = 0;

        while (i < broker->n_outgoing && broker->outgoing[i].id != id)
                i++;
        return i;
}

static void remove_outgoing(struct sim_broker *broker, size_t i) {
        broker->n_outgoing--;
        memmove(&broker->outgoing[i], &broker->outgoing[i + 1],
                (broker->n_outgoing - i) * sizeof(*broker->outgoing));
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
                remove_outgoing(broker, i);
                pipeline_acknowledged(world->pipeline, outgoing.id, outgoing.no_subscriber,
                                      world_store_now(world));
        }
}

/* End the wake-up: the pipeline commits what it has read. */
static void end_wakeup(struct world *world) {
        pipeline_advance(world->pipeline, world_store_now(world));
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
        if (outgoing->message->qos == 0) {
                struct message *message = outgoing->message;

                remove_outgoing(broker, at);
                broker_route(world, message);
                free(message);
                return;
        }
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

void broker_check_notification(struct world *world, const struct message *message) {
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

static void check_published(struct world *world, const struct message *message) {
        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_HELLO)))
                world->last_number = 0;
        else if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_FRAME_TO_PLUGIN)))
                plugin_check_frame(world, message);
        else if (slice_starts_with(message->topic, SLICE_LITERAL("replies/")))
                truth_reply(&world->truth, message, world->now);
        else
                broker_check_notification(world, message);
}

/* Drop the messages that are lost with the connection. */
static void drop_outgoing_at_qos_0(struct sim_broker *broker) {
        for (size_t i = broker->n_outgoing; i-- > 0;)
                if (broker->outgoing[i].message->qos == 0) {
                        free(broker->outgoing[i].message);
                        remove_outgoing(broker, i);
                }
}

int broker_publish(void *userdata, const struct message *message) {
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
        else if (message->qos == 0)
                drop_outgoing_at_qos_0(broker);
        return message->qos > 0 ? broker->last_id : 0;
}

bool broker_has_room(void *userdata) {
        struct world *world = userdata;

        return world->has_room && !IS_PLANTED(PLANTED_NO_ROOM);
}

/* 3. Connections */

/* Another broker has another session: it has none of the messages of this one. */
static void choose_broker(struct world *world) {
        struct sim_broker *broker = &world->broker;
        bool is_away = world->faults.visits_other && !world->is_healed && random_chance(&world->random, 30);

        if (is_away == broker->is_away)
                return;
        check_trace("%s", is_away ? "to the other broker" : "back from the other broker");
        broker->is_away = is_away;
        client_forget_registrations(world);
        drop_waiting(broker, broker->n_waiting);
        broker_forget_outgoing(broker);
}

void broker_connect_store(struct world *world) {
        struct sim_broker *broker = &world->broker;
        struct message banner = { .topic = SLICE_LITERAL(COMPANION_BANNER),
                                  .payload = SLICE_LITERAL(COMPANION_VERSION),
                                  .qos = 1 };

        if (broker->is_up || !world->pipeline)
                return;

        choose_broker(world);
        check_trace("connected");
        truth_begin_attempt(&world->truth);
        broker->is_up = true;
        broker->link++;
        broker->is_wake_planned = false;
        broker->n_unacknowledged = 0;
        for (size_t i = 0; i < broker->n_outgoing; i++) { /* unacknowledged messages, before new ones */
                broker->outgoing[i].is_acknowledged = false;
                plan_arrival(world, broker->outgoing[i].id);
        }
        deliver(world, broker->n_waiting); /* before the retained messages of the subscription */
        if (broker->has_plugin)
                pipeline_receive(world->pipeline, &banner, world_store_now(world));
        pipeline_connected(world->pipeline, broker->session_present);
        pipeline_advance(world->pipeline, world_store_now(world));
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
        broker->n_unacknowledged = 0;
        drop_waiting_at_qos_0(broker);
        drop_outgoing_at_qos_0(broker);
        model_plugin_store_disconnected(broker->is_away ? &broker->other : &broker->plugin);
}

void broker_forget_outgoing(struct sim_broker *broker) {
        while (broker->n_outgoing > 0)
                free(broker->outgoing[--broker->n_outgoing].message);
}

void broker_start_plugin(struct world *world) {
        struct sim_broker *broker = &world->broker;

        broker->plugin_tick_ns = INT64_MAX;
        if (!broker->has_plugin)
                return;
        model_plugin_init(&broker->plugin, random_next(&world->random));
        broker->plugin.frame_timeout_ns = 200 * NS_PER_MS; /* so that a run has several */
        broker->plugin.wait_ns = world->faults.is_impatient ? 300 * NS_PER_MS : 0;
}

void broker_restart(struct world *world) {
        struct sim_broker *broker = &world->broker;

        broker_drop_store(world);
        for (size_t i = 0; i < world->n_clients; i++) {
                world->clients[i].connection = 0;
                client_abandon(world, i);
        }
        if (random_chance(&world->random, 50)) {
                drop_waiting(broker, broker->n_waiting);
                broker->session_present = false;
        }
        model_plugin_deinit(&broker->plugin);
        broker_start_plugin(world);
}

/*
 * With the plugin, a client publishes a request again as a will, which the plugin does not take:
 * unchanged (a copy) and with other Correlation Data (a forgery). The pipeline must execute
 * neither. An executed forgery counts as another execution of the request, because truth_find()
 * ignores the leading zero of its Correlation Data. For a SET, the check that a request is executed
 * once fails.
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

static void receive_copy(struct world *world, const struct message *message, size_t client) {
        if (!world->broker.has_plugin) {
                broker_send_to_store(world, message);
                return;
        }
        plugin_request(world, message, client);
        if (random_chance(&world->random, 5))
                broker_attack(world, message);
}

void broker_receive_request(struct world *world, const struct message *message, size_t client) {
        const struct sim_request *request = truth_find(&world->truth, message->correlation_data);
        struct message copy = *message;
        char correlation[32];

        receive_copy(world, message, client);
        if (!request->is_single && random_chance(&world->random, 5))
                receive_copy(world, message, client); /* QoS 1 */
        if (IS_PLANTED(PLANTED_OTHER_REQUEST) && random_chance(&world->random, 20)) {
                snprintf(correlation, sizeof(correlation), "0%.*s", (int)message->correlation_data.length,
                         (const char *)message->correlation_data.data);
                copy.correlation_data = slice_from_string(correlation);
                receive_copy(world, &copy, client);
        }
}

void broker_deinit(struct sim_broker *broker) {
        drop_waiting(broker, broker->n_waiting);
        free(broker->waiting);
        broker_forget_outgoing(broker);
        free(broker->outgoing);
        free(broker->owners);
        model_plugin_deinit(&broker->plugin);
        model_plugin_deinit(&broker->other);
        buf_deinit(&broker->welcome);
}
