/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients that send a request, wait, and send it again until they have the reply, as the published
 * clients do. Each has a few requests at a time, with timestamps of its own clock, which is exact
 * or some seconds ahead.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"
#include "sim/check.h"
#include "sim/world.h"

#define UNSETTLED_MAX 3

/* SCAN pattern: matches the keys of the test, and none of the additional ones. */
#define PATTERN "[kl]*"

/*
 * A client's clock is at most this far ahead. With a small clock step (20 s) it stays below the
 * limit of a minute.
 */
#define AHEAD_MAX_MS 20000

/* 1. Requests */

static const char *current_value(struct world *world, size_t key) {
        size_t current = world->truth.current[key];

        return current == NONE ? "v0" : world->truth.changes[current].request->value;
}

/*
 * Two KEYNOTIFY requests of a client for one key must not be in flight together if copies of them
 * are sent: their order would be unknown.
 */
static bool is_other_pending(const struct world *world, const struct sim_request *request) {
        for (size_t i = 0; i < request->id; i++) {
                const struct sim_request *other = world->truth.requests[i];

                if (other->client == request->client && other->key == request->key &&
                    other->verb == VERB_KEYNOTIFY && !other->is_settled &&
                    !(other->is_single && request->is_single))
                        return true;
        }
        return false;
}

static void choose_set(struct world *world, struct sim_request *request) {
        static const int64_t px_ms[] = { 5, 50, 200, 1000, 5000 };
        bool redelivers = world->faults.redelivers;

        snprintf(request->value, sizeof(request->value), "v%zu", request->id);
        request->condition = (enum set_condition)random_below(&world->random, 3);
        request->has_px = random_chance(&world->random, redelivers ? 80 : 40);
        if (request->has_px)
                request->px_ms = px_ms[random_below(&world->random, redelivers ? 3 : 5)];
}

/* No token, the client's latest token, or one that is up to a second older. */
static void choose_fence(struct world *world, struct sim_request *request) {
        struct version latest = world->clients[request->client].fence;

        request->has_fence = latest.wall_ms > 0 && random_chance(&world->random, 40);
        request->fence = (struct hlc){ latest.wall_ms, latest.counter, SLICE_LITERAL("StateStore") };
        if (request->has_fence && random_chance(&world->random, 20))
                request->fence.wall_ms -= (int64_t)random_below(&world->random, 1000);
}

static void choose(struct world *world, struct sim_request *request) {
        request->key = random_below(&world->random, N_KEYS);
        request->is_single = world->broker.has_plugin && random_chance(&world->random, 50);
        request->verb = random_chance(&world->random, 20) ? VERB_SET
                                                          : (enum verb)random_below(&world->random, N_VERBS);
        if (request->verb == VERB_GET && world->faults.redelivers)
                request->verb = VERB_KEYNOTIFY;
        if (request->verb == VERB_KEYNOTIFY && is_other_pending(world, request))
                request->verb = VERB_GET;
        if (request->verb == VERB_SCAN)
                request->first_page = request;
        request->stop = request->verb == VERB_KEYNOTIFY && random_chance(&world->random, 25);
        snprintf(request->expected, sizeof(request->expected), "%s", current_value(world, request->key));
        if (request->verb == VERB_SET)
                choose_set(world, request);
        if (verbs[request->verb].flags & VERB_IS_FENCED)
                choose_fence(world, request);
        if ((verbs[request->verb].flags & VERB_NEEDS_TIMESTAMP) || random_chance(&world->random, 70))
                request->timestamp = (struct hlc){
                        .wall_ms = WALL_MS + world->now.mono_ns / NS_PER_MS,
                        .counter = request->id,
                        .node = slice_from_string(truth_client(request->client)),
                };
        if (request->timestamp.node.data && random_chance(&world->random, 5))
                request->timestamp.wall_ms += (int64_t)random_below(&world->random, AHEAD_MAX_MS);
}

/* 2. Sending */

static void append_words(const struct sim_request *request, struct buf *payload) {
        struct slice name = request->verb == VERB_SCAN ? SLICE_LITERAL(PATTERN) : truth_key(request->key);
        struct slice words[8] = { verbs[request->verb].text, name };
        size_t n = 2;
        char px[24];

        snprintf(px, sizeof(px), "%" PRId64, request->px_ms);
        if (request->verb == VERB_SET)
                words[n++] = slice_from_string(request->value);
        if (request->verb == VERB_VDEL)
                words[n++] = slice_from_string(request->expected);
        if (request->condition == SET_IF_ABSENT)
                words[n++] = SLICE_LITERAL("NX");
        if (request->condition == SET_IF_ABSENT_OR_EQUAL) {
                words[n++] = SLICE_LITERAL("NEX");
                words[n++] = slice_from_string(request->expected);
        }
        if (request->has_px) {
                words[n++] = SLICE_LITERAL("PX");
                words[n++] = slice_from_string(px);
        }
        if (request->token[0])
                words[n++] = slice_from_string(request->token);
        if (request->stop)
                words[n++] = SLICE_LITERAL("STOP");

        resp3_append_array(payload, n);
        for (size_t i = 0; i < n; i++)
                resp3_append_blob(payload, words[i]);
}

static void add(struct message *message, const char *name, struct slice value) {
        message->user_properties[message->n_user_properties++] =
                (struct user_property){ slice_from_string(name), value };
}

static void add_hlc(struct message *message, const char *name, struct hlc hlc, struct buf *text) {
        hlc_append(text, hlc, HLC_PADDED);
        add(message, name, buf_slice(text));
}

/* Send another copy over the client's present connection. */
static void send(struct world *world, struct sim_request *request) {
        CLEANUP(buf_deinit) struct buf payload = { 0 }, timestamp = { 0 }, fence = { 0 };
        uint64_t connection = world->clients[request->client].connection;
        const char *name = truth_client(request->client);
        char correlation[24], replies[24];
        struct message message = { .topic = SLICE_LITERAL(TOPIC_INVOKE), .qos = 1 };

        append_words(request, &payload);
        /*
         * The reply to a request without a timestamp is not remembered by its content if its
         * Correlation Data is short.
         */
        snprintf(correlation, sizeof(correlation), "%0*zu",
                 (request->is_single || request->verb == VERB_KEYNOTIFY) && !request->timestamp.node.data
                         ? 1
                         : 20,
                 request->id);
        snprintf(replies, sizeof(replies), "replies/%s", name);
        message.payload = buf_slice(&payload);
        message.correlation_data = slice_from_string(correlation);
        message.response_topic = slice_from_string(replies);
        message.has_expiry = random_chance(&world->random, 10);
        message.expiry_s = 1 + (uint32_t)random_below(&world->random, 3);

        add(&message, "__srcId", slice_from_string(name));
        if (request->timestamp.node.data)
                add_hlc(&message, "__ts", request->timestamp, &timestamp);
        if (request->has_fence)
                add_hlc(&message, "__ft", request->fence, &fence);
        request->connection =
                request->connection == 0 || request->connection == connection ? connection : UINT64_MAX;
        broker_receive_request(world, &message, request->client);
        world->tally->n_copies++;
}

/* The message is in transit to the broker; it is dropped if the connection ends before. */
static void arrive(struct world *world, struct timeline_event *event) {
        struct sim_request *request = world->truth.requests[event->number];

        if (event->generation == world->clients[request->client].connection)
                send(world, request);
}

/* Until its reply, the client does not know whether it is registered. */
static void begin_keynotify(struct sim_client *client, const struct sim_request *request) {
        client->registered_on[request->key] = client->stopped_on[request->key] = 0;
        client->last_keynotify[request->key] = request->id;
}

static void end_keynotify(struct sim_client *client, const struct sim_request *request, bool is_done) {
        bool is_known = is_done && client->last_keynotify[request->key] == request->id;

        if (is_known && request->stop)
                client->stopped_on[request->key] = request->connection;
        else if (is_known && request->sent_ns > client->denied_ns)
                client->registered_on[request->key] = request->connection;
}

static void try(struct world *world, struct timeline_event *event) {
        struct sim_request *request = world->truth.requests[event->number];
        struct sim_client *client = &world->clients[request->client];

        if (request->is_settled || (request->is_single && request->is_sent))
                return;
        if (client->connection != 0 && !(IS_PLANTED(PLANTED_LOST_REQUESTS) && request->client == 0)) {
                int64_t at_ns = world_soon(world, 10);

                if (at_ns < client->last_to_broker_ns)
                        at_ns = client->last_to_broker_ns;
                client->last_to_broker_ns = at_ns;
                request->is_sent = true;
                if (request->verb == VERB_KEYNOTIFY)
                        begin_keynotify(client, request);
                timeline_plan(&world->timeline, (struct timeline_event){ .at_ns = at_ns,
                                                                         .happen = arrive,
                                                                         .number = request->id,
                                                                         .generation = client->connection });
        }
        world_plan(world, world_soon(world, 1500) + 200 * NS_PER_MS, try, request->id);
}

static void ask(struct world *world, struct sim_request *request) {
        world->clients[request->client].n_unsettled++;
        world_plan(world, world->now.mono_ns, try, request->id);
}

/* 3. Connections and time */

/*
 * A client that repeats no copies may send KEYNOTIFY and its STOP without waiting, in either order.
 */
static void ask_opposite(struct world *world, const struct sim_request *request) {
        struct sim_request *opposite = truth_add_request(&world->truth, world->now.mono_ns);

        opposite->client = request->client;
        opposite->key = request->key;
        opposite->verb = VERB_KEYNOTIFY;
        opposite->stop = !request->stop;
        opposite->is_single = true;
        ask(world, opposite);
}

static void act(struct world *world, struct timeline_event *event) {
        size_t client = event->number;

        if (world->is_healed || world->truth.n_requests >= world->n_requests_max)
                return;
        if (world->clients[client].connection != 0 && world->clients[client].n_unsettled < UNSETTLED_MAX) {
                struct sim_request *request = truth_add_request(&world->truth, world->now.mono_ns);

                request->client = client;
                choose(world, request);
                ask(world, request);
                if (request->verb == VERB_KEYNOTIFY && request->is_single &&
                    random_chance(&world->random, 50))
                        ask_opposite(world, request);
        }
        world_plan(world, world_soon(world, 100), act, client);
}

void client_start(struct world *world, size_t client) {
        client_return(world, client);
        world_plan(world, world_soon(world, 100), act, client);
}

void client_return(struct world *world, size_t client) {
        if (world->clients[client].connection == 0)
                world->clients[client].connection = broker_connection(world, client);
}

/* The request gets no reply, and is not sent again. */
static void give_up(struct world *world, struct sim_request *request) {
        if (!request->is_single || request->is_settled || !request->is_sent)
                return;
        request->is_settled = true;
        world->clients[request->client].n_unsettled--;
}

void client_forget_registrations(struct world *world) {
        for (size_t i = 0; i < world->n_clients; i++)
                memset(world->clients[i].registered_on, 0, sizeof(world->clients[i].registered_on));
        truth_end_registrations(&world->truth);
}

void client_abandon(struct world *world, size_t client) {
        for (size_t i = 0; i < world->truth.n_requests; i++) {
                struct sim_request *request = world->truth.requests[i];

                if (request->client == client)
                        give_up(world, request);
        }
}

void client_check_registration(const struct world *world, size_t client, size_t key) {
        const struct sim_client *state = &world->clients[client];
        bool is_registered = world->truth.is_registered[client][key] &&
                             world->truth.connection[client][key] == state->connection;

        if (state->connection == 0)
                return;
        CHECK(state->registered_on[key] != state->connection || is_registered,
              "a client that has the reply to KEYNOTIFY is notified");
        CHECK(state->stopped_on[key] != state->connection || !is_registered,
              "a client that has the reply to KEYNOTIFY STOP is not notified");
}

void client_disconnect(struct world *world, size_t client) {
        if (world->clients[client].connection == 0)
                return;
        broker_client_disconnected(world, client);
        client_abandon(world, client);
}

/* Request the next page of a scan. */
static void request_next_page(struct world *world, struct sim_request *request, struct slice payload) {
        struct truth_page page = truth_read_page(payload);
        struct sim_request *next;

        world->tally->n_pages++;
        if (!page.token.data) {
                world->tally->n_scans++;
                return;
        }

        next = truth_add_request(&world->truth, world->now.mono_ns);
        next->client = request->client;
        next->verb = VERB_SCAN;
        next->first_page = request->first_page;
        if (IS_PLANTED(PLANTED_OLD_TOKEN))
                memcpy(next->token, request->token, SCAN_TOKEN_LENGTH);
        else
                memcpy(next->token, page.token.data, SCAN_TOKEN_LENGTH);
        for (size_t key = 0; key < N_KEYS; key++)
                next->is_listed[key] = request->is_listed[key] ||
                                       (page.n_listed[key] > 0 && !IS_PLANTED(PLANTED_LOST_PAGE));
        ask(world, next);
}

static bool is_refused_by_plugin(struct slice payload) {
        return slice_equal(payload, SLICE_LITERAL("-ERR " COMPANION_ERROR_UNAVAILABLE "\r\n"));
}

void client_receive(struct world *world, struct timeline_event *event) {
        struct sim_client *client = &world->clients[event->number];
        struct sim_request *request = truth_find(&world->truth, event->message->correlation_data);
        enum outcome outcome;

        if (event->generation != client->connection || request->is_settled)
                return;

        request->is_settled = true;
        client->n_unsettled--;
        request->is_refused = is_refused_by_plugin(event->message->payload);
        if (request->is_refused) {
                if (request->verb == VERB_KEYNOTIFY)
                        end_keynotify(client, request, false);
                return;
        }
        outcome = truth_outcome(request, event->message->payload);
        if (outcome == OUTCOME_DONE && request->verb == VERB_SET)
                client->fence = request->version;
        if (request->verb == VERB_KEYNOTIFY)
                end_keynotify(client, request, !outcome_is_error(outcome));
        if (outcome == OUTCOME_PAGE)
                request_next_page(world, request, event->message->payload);
}

void client_request_all_keys(struct world *world) {
        for (size_t key = 0; key < N_KEYS; key++) {
                struct sim_request *request = truth_add_request(&world->truth, world->now.mono_ns);

                request->key = key;
                request->verb = VERB_GET;
                ask(world, request);
        }
}
