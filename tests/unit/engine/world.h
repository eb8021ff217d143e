/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <criterion/criterion.h>

#include "engine/engine.h"

/* An engine, a clock that the test advances, and the effects of the last event. */

#define S SLICE_LITERAL

#define WORLD_WALL_MS INT64_C(1696374425000)

#define WORLD_REPLIES_MAX 16

struct world {
        struct engine *engine;
        struct now now;
        struct effects effects;
        struct reply replies[WORLD_REPLIES_MAX]; /* of the batch */
        size_t n_replies;
        uint64_t n_asked;
        char notified[4096];
};

/* Quotas that no test reaches. */
struct engine_config world_config(void);

void world_init(struct world *world, struct engine_config config);
void world_deinit(struct world *world);

/* Advance both clocks. */
void pass_ns(struct world *world, int64_t ns);
void pass_ms(struct world *world, int64_t ms);

/*
 * Step the request and return its reply. The reply and world->effects are valid until the next
 * step. A request without a payload gets a unique payload, so that no request is a repetition of
 * another one.
 */
const struct reply *ask(struct world *world, struct request request);

/* Step the request and return whether its reply has this outcome. */
bool asked(struct world *world, struct request request, enum outcome outcome);

/* Step the event, and repeat it while it is unfinished. */
void happen(struct world *world, struct event event);
void tick(struct world *world);

/*
 * A batch of several steps: the effects are those of all steps since begin_batch(). Each of the
 * functions above is a batch of its own.
 */
void begin_batch(struct world *world);
void ask_in_batch(struct world *world, struct request request);
void happen_in_batch(struct world *world, struct event event);

/* Return whether the key has this value, or none. Executes a GET without a client. */
bool has(struct world *world, struct slice key, struct slice value);
bool has_none(struct world *world, struct slice key);

/*
 * The notifications of the last step, in order: "c:k=v" for a key that was set, "c:k gone" for one
 * that was deleted or expired, each followed by a blank.
 */
const char *notified(struct world *world);

/* A version as one number, for comparisons. The counter must be below 1000. */
int64_t version_number(struct version version);

/* SLICE_LITERAL as a constant expression, for initializers of static data. */
#define BYTES(text)                                                                                         \
        { (const uint8_t *)("" text), sizeof(text) - 1 }

#define SET(key_text, value_text, ...)                                                                      \
        ((struct request){                                                                                  \
                .verb = VERB_SET, .key = BYTES(key_text), .value = BYTES(value_text), __VA_ARGS__ })
#define GET(key_text, ...) ((struct request){ .verb = VERB_GET, .key = BYTES(key_text), __VA_ARGS__ })
#define DEL(key_text, ...) ((struct request){ .verb = VERB_DEL, .key = BYTES(key_text), __VA_ARGS__ })
#define SCAN(pattern, ...) ((struct request){ .verb = VERB_SCAN, .key = BYTES(pattern), __VA_ARGS__ })
#define VDEL(key_text, value_text, ...)                                                                     \
        ((struct request){                                                                                  \
                .verb = VERB_VDEL, .key = BYTES(key_text), .value = BYTES(value_text), __VA_ARGS__ })
#define WATCH(client_text, key_text, ...)                                                                   \
        ((struct request){ .verb = VERB_KEYNOTIFY,                                                          \
                           .client = BYTES(client_text),                                                    \
                           .key = BYTES(key_text),                                                          \
                           __VA_ARGS__ })
#define UNWATCH(client_text, key_text, ...) WATCH(client_text, key_text, .stop = true, __VA_ARGS__)

/* Options, appended to the macros above. */
#define PX(ms)                 .has_px = true, .px_ms = (ms)
#define NX                     .condition = SET_IF_ABSENT
#define NEX(text)              .condition = SET_IF_ABSENT_OR_EQUAL, .expected = BYTES(text)
#define TS(wall, count, id)    .has_timestamp = true, .timestamp = { (wall), (count), BYTES(id) }
#define FENCE(wall, count, id) .has_fence = true, .fence = { (wall), (count), BYTES(id) }
