/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * A second implementation of the state store that is slow, bounded and simple: arrays with linear
 * search. It implements PROTOCOL.md "Commands", "Errors", "Hybrid logical clocks", "Notifications"
 * and "Repeated requests". It allocates nothing and borrows all texts, so an assignment copies a
 * whole store.
 */

#define MODEL_KEYS_MAX          16
#define MODEL_REGISTRATIONS_MAX 64
#define MODEL_REPLIES_MAX       256

struct model_key {
        struct slice key, value;
        struct version version;
        int64_t deadline_ns;
        bool has_fence, is_persistent;
        struct hlc fence;
};

/*
 * A client's state, from the acknowledgements of its notifications. All its registrations have the
 * same copy.
 */
struct model_delivery {
        bool is_subscribed, is_unreachable;
        int64_t idle_since_ns; /* if it is unreachable */
};

struct model_registration {
        struct slice client, key;
        uint64_t connection;
        struct model_delivery delivery;
};

struct model_reply {
        const struct request *request;
        struct result result;
        int64_t until_ns;
};

/* The first end of a registration of this client and key in the present batch. */
struct model_end {
        struct slice client, key;
        bool is_stop; /* KEYNOTIFY STOP: a failed commit restores the registration */
};

struct model {
        const struct engine_config *config;
        struct version clock;
        size_t n_keys, n_registrations, n_replies;
        struct model_key keys[MODEL_KEYS_MAX];
        struct model_registration registrations[MODEL_REGISTRATIONS_MAX];
        struct model_reply replies[MODEL_REPLIES_MAX];
        struct model_end ends[MODEL_REGISTRATIONS_MAX];
        size_t n_ends;
};

/* A changed key, and the clients to notify. */
struct model_change {
        struct slice key, value; /* value absent: deleted */
        struct version version;
        size_t n_watchers;
        struct slice watchers[MODEL_REGISTRATIONS_MAX];
};

/* The effects of one step. */
struct model_effects {
        struct result result;
        struct slice value; /* OUTCOME_VALUE */
        bool has_details;
        int64_t expires_in_ms; /* 0: never */
        size_t n_changes;      /* of watched keys */
        struct model_change changes[MODEL_KEYS_MAX + 1];
};

/* The request is borrowed for as long as its reply is remembered. */
void model_request(struct model *model, const struct request *request, struct now now,
                   struct model_effects *effects);
void model_tick(struct model *model, struct now now, struct model_effects *effects);

/* A disconnect: end registrations. */
void model_disconnect(struct model *model, const struct event *event);

/*
 * The broker had a subscriber for a notification of this registration, or none. Ignored if it has
 * ended.
 */
void model_delivered(struct model *model, struct slice client, struct slice key);
void model_not_reached(struct model *model, struct slice client, struct slice key, struct now now);

/* A new batch begins. */
void model_begin_batch(struct model *model);

/* Remove the registrations whose first end in the batch of `batch` was not KEYNOTIFY STOP. */
void model_repeat_ends(struct model *model, const struct model *batch);

/* The client has sent a request. */
void model_restart_idle(struct model *model, struct slice client, struct now now);

/* End the registrations of clients that are idle too long. */
void model_end_idle(struct model *model, struct now now);

/* Return when model_end_idle() next ends a registration; INT64_MAX: never. */
int64_t model_next_idle(const struct model *model);

/* Return the key, or NULL. Ignores deadlines. */
struct model_key *model_find(struct model *model, struct slice key);

/*
 * Return the cost of all data for the quota; and the earliest deadline, INT64_MAX if there is none.
 */
uint64_t model_n_bytes(const struct model *model);
int64_t model_next_expiry(const struct model *model);

/*
 * Shared by model.c and model_registrations.c. model_make_room(): false if the quota is exceeded
 * without the expired keys.
 */
void model_reply(struct model_effects *effects, enum outcome outcome, const struct version *version);
bool model_make_room(struct model *model, uint64_t n_more_keys, uint64_t n_more_bytes, struct now now,
                     struct model_effects *effects);
void model_keynotify(struct model *model, const struct request *request, struct now now,
                     struct model_effects *effects);
