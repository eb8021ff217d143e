/* SPDX-License-Identifier: Apache-2.0 */

/* Registrations: PROTOCOL.md "Notifications". */

#include "base/assert.h"
#include "fuzz/model.h"
#include "protocol/topics.h"

static struct model_registration *find_registration(struct model *model, struct slice client,
                                                    struct slice key) {
        for (size_t i = 0; i < model->n_registrations; i++)
                if (slice_equal(model->registrations[i].client, client) &&
                    slice_equal(model->registrations[i].key, key))
                        return &model->registrations[i];
        return NULL;
}

static void record_end(struct model *model, const struct model_registration *registration, bool is_stop) {
        for (size_t i = 0; i < model->n_ends; i++)
                if (slice_equal(model->ends[i].client, registration->client) &&
                    slice_equal(model->ends[i].key, registration->key))
                        return;
        ASSERT(model->n_ends < MODEL_REGISTRATIONS_MAX);
        model->ends[model->n_ends++] =
                (struct model_end){ registration->client, registration->key, is_stop };
}

static void end(struct model *model, struct model_registration *registration) {
        record_end(model, registration, false);
        *registration = model->registrations[--model->n_registrations];
}

static struct model_registration *find_of_client(struct model *model, struct slice client) {
        for (size_t i = 0; i < model->n_registrations; i++)
                if (slice_equal(model->registrations[i].client, client))
                        return &model->registrations[i];
        return NULL;
}

/* 1. KEYNOTIFY */

/* End the registrations that the client made over another connection: that connection has ended. */
static void end_former(struct model *model, const struct request *request) {
        for (size_t i = model->n_registrations; i-- > 0;)
                if (slice_equal(model->registrations[i].client, request->client) &&
                    model->registrations[i].connection != request->connection)
                        end(model, &model->registrations[i]);
}

static uint64_t n_of_client(const struct model *model, struct slice client) {
        uint64_t n = 0;

        for (size_t i = 0; i < model->n_registrations; i++)
                n += slice_equal(model->registrations[i].client, client);
        return n;
}

/* A quarter of all registrations, at least 256. */
static uint64_t max_of_client(const struct model *model) {
        uint64_t max = model->config->limits.max_registrations;

        return max < 1024 ? 256 : max / 4;
}

static void do_watch(struct model *model, const struct request *request, struct now now,
                     struct model_effects *effects) {
        const struct model_registration *other = find_of_client(model, request->client);
        struct model_delivery delivery = other ? other->delivery : (struct model_delivery){ 0 };

        if (model->n_registrations >= model->config->limits.max_registrations ||
            n_of_client(model, request->client) >= max_of_client(model) ||
            !model_make_room(model, 0, registration_cost(request->client, request->key, SLICE_LITERAL("")),
                             now, effects)) {
                model_reply(effects, OUTCOME_QUOTA_EXCEEDED, NULL);
                return;
        }
        model->registrations[model->n_registrations++] =
                (struct model_registration){ request->client, request->key, request->connection, delivery };
        model_reply(effects, OUTCOME_DONE, &model->clock);
}

void model_keynotify(struct model *model, const struct request *request, struct now now,
                     struct model_effects *effects) {
        struct model_registration *registration;

        if (request->client.length == 0) {
                model_reply(effects, OUTCOME_CLIENT_UNKNOWN, NULL);
                return;
        }
        if (topic_notify_length(request->client.length, request->key.length) > TOPIC_LENGTH_MAX) {
                model_reply(effects, OUTCOME_KEY_TOO_LONG_TO_NOTIFY, NULL);
                return;
        }

        end_former(model, request);
        registration = find_registration(model, request->client, request->key);
        if (!registration && !request->stop) {
                do_watch(model, request, now, effects);
                return;
        }
        model_reply(effects, registration ? OUTCOME_DONE : OUTCOME_NOTHING,
                    registration ? &model->clock : NULL);
        if (!registration || !request->stop)
                return;
        record_end(model, registration, true);
        end(model, registration);
}

/* 2. Disconnects */

static bool has_disconnected(const struct model_registration *registration, const struct event *event) {
        switch (event->type) {
        case EVENT_CLIENT_DISCONNECTED:
                return slice_equal(registration->client, event->client);
        case EVENT_CONNECTION_CLOSED:
                return registration->connection == event->connection;
        case EVENT_CONNECTIONS_RETAINED:
                for (size_t i = 0; i < event->n_connections; i++)
                        if (event->connections[i] == registration->connection)
                                return false;
                return true;
        default:
                return true;
        }
}

void model_disconnect(struct model *model, const struct event *event) {
        for (size_t i = model->n_registrations; i-- > 0;)
                if (has_disconnected(&model->registrations[i], event))
                        end(model, &model->registrations[i]);
}

void model_begin_batch(struct model *model) {
        model->n_ends = 0;
}

void model_repeat_ends(struct model *model, const struct model *batch) {
        for (size_t i = 0; i < batch->n_ends; i++) {
                struct model_registration *registration =
                        find_registration(model, batch->ends[i].client, batch->ends[i].key);

                if (registration && !batch->ends[i].is_stop)
                        end(model, registration);
        }
}

/* 3. Deliveries */

static void set_delivery(struct model *model, struct slice client, struct model_delivery delivery) {
        for (size_t i = 0; i < model->n_registrations; i++)
                if (slice_equal(model->registrations[i].client, client))
                        model->registrations[i].delivery = delivery;
}

void model_delivered(struct model *model, struct slice client, struct slice key) {
        if (find_registration(model, client, key))
                set_delivery(model, client, (struct model_delivery){ .is_subscribed = true });
}

void model_not_reached(struct model *model, struct slice client, struct slice key, struct now now) {
        struct model_registration *registration = find_registration(model, client, key);

        if (!registration)
                return;
        if (registration->delivery.is_subscribed)
                end(model, registration);
        else if (!registration->delivery.is_unreachable)
                set_delivery(
                        model, client,
                        (struct model_delivery){ .is_unreachable = true, .idle_since_ns = now.mono_ns });
}

void model_restart_idle(struct model *model, struct slice client, struct now now) {
        struct model_registration *registration = find_of_client(model, client);

        if (registration && registration->delivery.is_unreachable)
                set_delivery(
                        model, client,
                        (struct model_delivery){ .is_unreachable = true, .idle_since_ns = now.mono_ns });
}

static int64_t idle_deadline(const struct model *model, const struct model_registration *registration) {
        return registration->delivery.is_unreachable
                       ? registration->delivery.idle_since_ns + model->config->limits.registration_timeout_ns
                       : INT64_MAX;
}

void model_end_idle(struct model *model, struct now now) {
        for (size_t i = model->n_registrations; i-- > 0;)
                if (idle_deadline(model, &model->registrations[i]) <= now.mono_ns)
                        end(model, &model->registrations[i]);
}

int64_t model_next_idle(const struct model *model) {
        int64_t next_ns = INT64_MAX;

        for (size_t i = 0; i < model->n_registrations; i++)
                if (idle_deadline(model, &model->registrations[i]) < next_ns)
                        next_ns = idle_deadline(model, &model->registrations[i]);
        return next_ns;
}
