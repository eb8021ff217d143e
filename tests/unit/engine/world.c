/* SPDX-License-Identifier: Apache-2.0 */

#include "unit/engine/world.h"
#include "support/limits.h"

#include <stdio.h>

struct engine_config world_config(void) {
        return (struct engine_config){
                .node_id = S("StateStore"),
                .table_key = { { 1 } },
                .limits = TEST_LIMITS,
        };
}

void world_init(struct world *world, struct engine_config config) {
        *world = (struct world){ .now = { .wall_ms = WORLD_WALL_MS, .mono_ns = 5000 } };
        cr_assert_eq(engine_new(&world->engine, &config), 0);
}

void world_deinit(struct world *world) {
        begin_batch(world);
        effects_deinit(&world->effects);
        cr_expect_null(engine_free(world->engine));
}

void pass_ns(struct world *world, int64_t ns) {
        world->now.mono_ns += ns;
        world->now.wall_ms += ns / 1000000;
}

void pass_ms(struct world *world, int64_t ms) {
        pass_ns(world, ms * 1000000);
}

void begin_batch(struct world *world) {
        for (; world->n_replies > 0; world->n_replies--)
                reply_deinit(&world->replies[world->n_replies - 1]);
        effects_reset(&world->effects);
}

void happen_in_batch(struct world *world, struct event event) {
        int r;

        while ((r = engine_step(world->engine, &event, world->now, &world->effects)) ==
               ENGINE_STEP_UNFINISHED)
                event.is_continued = true;
        cr_assert_eq(r, 0);
}

void ask_in_batch(struct world *world, struct request request) {
        world->n_asked++;
        if (!request.payload.data)
                request.payload = (struct slice){ (uint8_t *)&world->n_asked, sizeof(world->n_asked) };

        cr_assert_lt(world->n_replies, WORLD_REPLIES_MAX);
        engine_request(world->engine, &request, &world->replies[world->n_replies++], world->now,
                       &world->effects);
}

const struct reply *ask(struct world *world, struct request request) {
        begin_batch(world);
        ask_in_batch(world, request);
        return &world->replies[0];
}

bool asked(struct world *world, struct request request, enum outcome outcome) {
        return ask(world, request)->result.outcome == outcome;
}

void happen(struct world *world, struct event event) {
        begin_batch(world);
        happen_in_batch(world, event);
}

void tick(struct world *world) {
        happen(world, (struct event){ .type = EVENT_TICK });
}

bool has(struct world *world, struct slice key, struct slice value) {
        const struct reply *reply = ask(world, (struct request){ .verb = VERB_GET, .key = key });

        return reply->result.outcome == OUTCOME_VALUE && slice_equal(entry_value(reply->entry), value);
}

bool has_none(struct world *world, struct slice key) {
        return ask(world, (struct request){ .verb = VERB_GET, .key = key })->result.outcome ==
               OUTCOME_NO_VALUE;
}

/* Puts client and key into text as "c:k". */
static void append_notified_of(struct buf *text, const struct registration *registration) {
        buf_append_slice(text, registration->client_id);
        buf_append_string(text, ":");
        buf_append_slice(text, registration->key_name);
}

const char *notified(struct world *world) {
        struct buf text = { 0 };

        for (size_t i = 0; i < world->effects.n_notifications; i++) {
                const struct notification *notification = &world->effects.notifications[i];
                const struct watched_change *change =
                        &world->effects.watched_changes[notification->watched_change];

                append_notified_of(&text, notification->registration);
                if (change->entry) {
                        buf_append_string(&text, "=");
                        buf_append_slice(&text, entry_value(change->entry));
                }
                buf_append_string(&text, change->entry ? " " : " gone ");
        }
        cr_assert_lt(text.length, sizeof(world->notified));
        if (text.length > 0)
                memcpy(world->notified, text.data, text.length);
        world->notified[text.length] = '\0';
        buf_deinit(&text);
        return world->notified;
}

int64_t version_number(struct version version) {
        cr_assert_lt(version.counter, 1000);
        return version.wall_ms * 1000 + version.counter;
}
