/* SPDX-License-Identifier: Apache-2.0 */

/* Registrations: PROTOCOL.md "Notifications". */

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

static void end(struct model *model, struct model_registration *registration) {
        *registration = model->registrations[--model->n_registrations];
}

void model_end(struct model *model, struct slice client, struct slice key) {
        struct model_registration *registration = find_registration(model, client, key);

        if (registration)
                end(model, registration);
}

/* 1. KEYNOTIFY */

/* Whether the client has any registration at all. */
static bool is_watching(const struct model *model, struct slice client) {
        for (size_t i = 0; i < model->n_registrations; i++)
                if (slice_equal(model->registrations[i].client, client))
                        return true;
        return false;
}

static void track_change(struct model_effects *effects, uint64_t connection, bool is_tracked) {
        if (connection != 0)
                effects->track_changes[effects->n_track_changes++] =
                        (struct track_change){ .connection = connection, .is_tracked = is_tracked };
}

/* What a client registered over another connection than this one ended with that. */
static void end_former(struct model *model, const struct request *request) {
        for (size_t i = model->n_registrations; i-- > 0;)
                if (slice_equal(model->registrations[i].client, request->client) &&
                    model->registrations[i].connection != request->connection)
                        end(model, &model->registrations[i]);
        if (model->saved)
                end_former(model->saved, request);
}

static void do_watch(struct model *model, const struct request *request, struct now now,
                     struct model_effects *effects) {
        bool is_first = !is_watching(model, request->client);

        if (model->n_registrations >= model->config->max_registrations ||
            !model_make_room(model, 0, watch_cost(request->client, request->key), now, effects)) {
                model_answer(effects, OUTCOME_QUOTA_EXCEEDED, NULL);
                return;
        }
        model->registrations[model->n_registrations++] =
                (struct model_registration){ request->client, request->key, request->connection };
        if (is_first)
                track_change(effects, request->connection, true);
        model_answer(effects, OUTCOME_DONE, &model->clock);
}

void model_keynotify(struct model *model, const struct request *request, struct now now,
                     struct model_effects *effects) {
        struct model_registration *registration;

        if (request->client.length == 0) {
                model_answer(effects, OUTCOME_CLIENT_UNKNOWN, NULL);
                return;
        }
        if (topic_notify_length(request->client.length, request->key.length) > TOPIC_LENGTH_MAX) {
                model_answer(effects, OUTCOME_KEY_TOO_LONG_TO_NOTIFY, NULL);
                return;
        }

        end_former(model, request);
        registration = find_registration(model, request->client, request->key);
        if (!registration && !request->stop) {
                do_watch(model, request, now, effects);
                return;
        }
        model_answer(effects, registration ? OUTCOME_DONE : OUTCOME_NOTHING,
                     registration ? &model->clock : NULL);
        if (registration && request->stop) {
                end(model, registration);
                if (!is_watching(model, request->client))
                        track_change(effects, request->connection, false);
        }
}

/* 2. Departures */

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
        bool is_list = event->type == EVENT_CONNECTIONS_RETAINED || event->type == EVENT_ALL_DISCONNECTED;

        model->n_disconnects++;
        for (size_t i = model->n_registrations; i-- > 0;)
                if (has_disconnected(&model->registrations[i], event)) {
                        end(model, &model->registrations[i]);
                        if (is_list)
                                model->unlisted_at = model->n_disconnects;
                }
        if (model->saved)
                model_disconnect(model->saved, event);
}
