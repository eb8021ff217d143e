/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * A state store that is slow, bounded and obviously right: arrays, searched from the front. What PROTOCOL.md
 * "Commands", "Errors", "Hybrid logical clocks", "Notifications" and "Repeated requests" say, once more. It
 * allocates nothing and borrows all texts: an assignment is a copy of a whole store.
 */

#define MODEL_KEYS_MAX          16
#define MODEL_REGISTRATIONS_MAX 64
#define MODEL_ANSWERS_MAX       256

struct model_key {
        struct slice key, value;
        struct version version;
        int64_t deadline_ns;
        bool has_fence, is_persistent;
        struct hlc fence;
};

struct model_registration {
        struct slice client, key;
        uint64_t connection;
};

struct model_answer {
        const struct request *request;
        uint64_t where; /* of KEYNOTIFY: it is bound to a connection */
        enum outcome outcome;
        bool has_version;
        struct version version;
        int64_t until_ns;
};

struct model {
        const struct engine_config *config;
        struct model *saved; /* the state before the batch, with its disconnects; NULL: no batch */
        struct version clock;
        uint64_t n_disconnects;
        uint64_t
                unlisted_at; /* n_disconnects when the broker last listed fewer connections than had registrations */
        size_t n_keys, n_registrations, n_answers;
        struct model_key keys[MODEL_KEYS_MAX];
        struct model_registration registrations[MODEL_REGISTRATIONS_MAX];
        struct model_answer answers[MODEL_ANSWERS_MAX];
};

/* A key that has changed, and the clients to notify. */
struct model_change {
        struct slice key, value; /* value absent: deleted */
        struct version version;
        size_t n_watchers;
        struct slice watchers[MODEL_REGISTRATIONS_MAX];
};

/* What one step leads to. */
struct model_effects {
        enum outcome outcome;
        bool has_version;
        struct version version;
        struct slice value; /* OUTCOME_VALUE */
        size_t n_changes;   /* of watched keys */
        struct model_change changes[MODEL_KEYS_MAX + 1];
        size_t n_track_changes;
        struct track_change track_changes[1];
};

/* The request is borrowed for as long as its answer is remembered. */
void model_request(struct model *model, const struct request *request, struct now now,
                   struct model_effects *effects);
void model_tick(struct model *model, struct now now, struct model_effects *effects);

/* A departure: whose registrations end. */
void model_disconnect(struct model *model, const struct event *event);

/* Ends this registration, if it is there. */
void model_end(struct model *model, struct slice client, struct slice key);

/* NULL where there is none. Knows no time. */
struct model_key *model_find(struct model *model, struct slice key);

/* What all of it costs against the quota, INT64_MAX where nothing expires. */
uint64_t model_n_bytes(const struct model *model);
int64_t model_next_expiry(const struct model *model);

/* Shared by model.c and model_watch.c. model_make_room(): false if the quota is exceeded without the expired keys. */
void model_answer(struct model_effects *effects, enum outcome outcome, const struct version *version);
bool model_make_room(struct model *model, uint64_t n_more_keys, uint64_t n_more_bytes, struct now now,
                     struct model_effects *effects);
void model_keynotify(struct model *model, const struct request *request, struct now now,
                     struct model_effects *effects);
