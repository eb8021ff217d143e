/* SPDX-License-Identifier: Apache-2.0 */

#include "fuzz/engine_check.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "codec/encoder.h"
#include "engine/disconnect.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "support/result.h"

/* Length of the effects before the step. */
struct effects_mark {
        size_t n_changes, n_notifications;
};

static struct effects_mark mark(const struct effects *effects) {
        return (struct effects_mark){ effects->n_watched_changes, effects->n_notifications };
}

static bool is_same_version(struct version a, struct version b) {
        return a.wall_ms == b.wall_ms && a.counter == b.counter;
}

/* 1. Effects as text */

static void check_timestamp(const struct message *message, bool has_version, struct version version) {
        struct slice text = message_property(message, PROPERTY_TIMESTAMP);
        struct hlc hlc;

        ASSERT(has_version == (text.data != NULL));
        if (has_version)
                ASSERT(hlc_parse(text, &hlc) == 0 && hlc.wall_ms == version.wall_ms &&
                       hlc.counter == version.counter && slice_equal(hlc.node, SLICE_LITERAL("StateStore")));
}

static void check_details(const struct message *message, const struct reply *reply) {
        struct slice expires_in = message_property(message, PROPERTY_EXPIRES_IN);
        struct hlc token, expected;
        uint64_t number = 0;

        ASSERT(slice_equal(message_property(message, PROPERTY_DETAILS),
                           reply->has_details ? SLICE_LITERAL("1") : (struct slice){ 0 }));
        ASSERT(!expires_in.data || (parse_uint64(expires_in, &number) == 0 && number > 0));
        ASSERT(number == (uint64_t)reply->expires_in_ms);
        if (reply->has_details && entry_fence(reply->entry, &expected))
                ASSERT(hlc_parse(message_property(message, PROPERTY_FENCE), &token) == 0 &&
                       hlc_compare(token, expected) == 0);
        else
                ASSERT(!message_property(message, PROPERTY_FENCE).data);
}

static void check_reply_written(const struct reply *reply) {
        struct encoder encoder = { .dialect = DIALECT_SDK, .node_id = SLICE_LITERAL("StateStore") };
        struct message message;
        struct slice rest;
        struct resp3_item item;
        size_t n_items = 1;

        ASSERT(encoder_reply(&encoder, reply, &message) == 0);
        ASSERT(slice_equal(message_property(&message, PROPERTY_STATUS), SLICE_LITERAL("200")));
        check_timestamp(&message, reply->result.has_version, reply->result.version);
        check_details(&message, reply);
        for (rest = message.payload; n_items > 0; n_items--) {
                ASSERT(resp3_read(&rest, &item) == 0);
                if (item.type == RESP3_ARRAY)
                        n_items += (size_t)item.number;
        }
        ASSERT(rest.length == 0);

        encoder.dialect = DIALECT_DOCUMENT;
        ASSERT(encoder_reply(&encoder, reply, &message) == 0 && message.payload.length > 0);
        check_timestamp(&message, reply->result.has_version, reply->result.version);
        encoder_deinit(&encoder);
}

static void check_notification_written(const struct watched_change *change) {
        struct encoder encoder = { .dialect = DIALECT_SDK, .node_id = SLICE_LITERAL("StateStore") };
        struct slice words[4], value = { 0 };
        struct message message;
        size_t n_words;

        if (change->entry)
                value = entry_value(change->entry);
        ASSERT(encoder_notification(&encoder, change->version, value, &message) == 0);
        check_timestamp(&message, true, change->version);
        ASSERT(resp3_read_request(message.payload, words, 4, &n_words) == 0);
        ASSERT(n_words == (change->entry ? 4 : 2) && slice_equal(words[0], SLICE_LITERAL("NOTIFY")));
        if (value.data)
                ASSERT(slice_equal(words[3], value));
        encoder_deinit(&encoder);
}

/* 2. Notifications */

static bool is_of(const struct registration *registration, struct slice client, struct slice key) {
        return slice_equal(registration->client_id, client) && slice_equal(registration->key_name, key);
}

static bool is_notified(const struct effects *effects, size_t change, struct slice client,
                        struct slice key) {
        size_t n_times = 0;

        for (size_t i = 0; i < effects->n_notifications; i++)
                n_times += effects->notifications[i].watched_change == change &&
                           is_of(effects->notifications[i].registration, client, key);
        return n_times == 1;
}

static void compare_change(const struct effects *effects, size_t i, const struct model_change *expected) {
        const struct watched_change *change = &effects->watched_changes[i];
        size_t n_notified = 0;

        ASSERT(is_same_version(change->version, expected->version));
        ASSERT((change->entry != NULL) == (expected->value.data != NULL));
        if (change->entry)
                ASSERT(slice_equal(entry_value(change->entry), expected->value));
        for (size_t j = 0; j < effects->n_notifications; j++)
                n_notified += effects->notifications[j].watched_change == i;
        ASSERT(n_notified == expected->n_watchers);
        for (size_t j = 0; j < expected->n_watchers; j++)
                ASSERT(is_notified(effects, i, expected->watchers[j], expected->key));
        check_notification_written(change);
}

static void compare_effects(const struct effects *effects, struct effects_mark before,
                            const struct model_effects *expected) {
        ASSERT(effects->n_watched_changes - before.n_changes == expected->n_changes);
        for (size_t i = 0; i < expected->n_changes; i++)
                compare_change(effects, before.n_changes + i, &expected->changes[i]);

        /* in the order of the changes */
        for (size_t i = before.n_notifications; i < effects->n_notifications; i++)
                ASSERT(effects->notifications[i].watched_change >= before.n_changes &&
                       (i == before.n_notifications ||
                        effects->notifications[i].watched_change >=
                                effects->notifications[i - 1].watched_change));
}

/* 3. Replies */

static bool is_listed(const struct model_key *key, const struct request *request, struct now now) {
        uint64_t budget = UINT64_MAX;

        return key->deadline_ns > now.mono_ns && slice_is_utf8(key->key) && slice_is_utf8(request->key) &&
               glob_match(request->key, key->key, &budget);
}

static void compare_page(const struct engine_and_model *both, const struct scan_page *page,
                         const struct request *request, struct now now) {
        size_t n_listed = 0;

        for (size_t i = 0; i < both->model.n_keys; i++) {
                const struct model_key *key = &both->model.keys[i];
                size_t n_times = 0;

                for (size_t j = 0; j < page->n_entries; j++)
                        n_times += slice_equal(entry_key(page->entries[j]), key->key);
                ASSERT(n_times == is_listed(key, request, now));
                n_listed += n_times;
        }
        ASSERT(n_listed == page->n_entries && !page->has_next);
}

static void compare_reply(const struct reply *reply, const struct model_effects *expected) {
        CLEANUP(buf_deinit) struct buf given = { 0 }, modelled = { 0 };
        struct reply of_model = *reply;

        ASSERT(reply->result.outcome == expected->result.outcome);
        of_model.result = expected->result;
        reply_append(&given, reply);
        reply_append(&modelled, &of_model);
        ASSERT(slice_equal(buf_slice(&given), buf_slice(&modelled)));
        ASSERT((reply->entry != NULL) == (reply->result.outcome == OUTCOME_VALUE));
        ASSERT((reply->page != NULL) == (reply->result.outcome == OUTCOME_PAGE));
        if (reply->entry)
                ASSERT(slice_equal(entry_value(reply->entry), expected->value));
        ASSERT(reply->has_details == expected->has_details &&
               reply->expires_in_ms == expected->expires_in_ms);
        check_reply_written(reply);
}

/* Repeat the event while it is unfinished. */
static void step(struct engine_and_model *both, struct event event, struct now now) {
        int r;

        while ((r = engine_step(both->engine, &event, now, &both->effects)) == ENGINE_STEP_UNFINISHED)
                event.is_continued = true;
        ASSERT(r == 0);
}

const struct reply *both_ask(struct engine_and_model *both, const struct request *request, struct now now) {
        struct model_effects expected = { 0 };
        struct effects_mark before = mark(&both->effects);
        const struct reply *reply = &both->reply;

        reply_deinit(&both->reply);
        model_request(&both->model, request, now, &expected);
        engine_request(both->engine, request, &both->reply, now, &both->effects);
        compare_reply(reply, &expected);
        if (reply->page)
                compare_page(both, reply->page, request, now);
        compare_effects(&both->effects, before, &expected);
        ASSERT(is_same_version(engine_stats(both->engine).clock, both->model.clock));
        return reply;
}

/* 4. Events without a reply */

void both_tick(struct engine_and_model *both, struct now now) {
        struct event event = { .type = EVENT_TICK };
        struct model_effects expected = { 0 };
        struct effects_mark before = mark(&both->effects);

        model_tick(&both->model, now, &expected);
        ASSERT(engine_step(both->engine, &event, now, &both->effects) == 0);
        compare_effects(&both->effects, before, &expected);
        ASSERT(engine_next_deadline(both->engine) > now.mono_ns);
}

static void disconnect_in_engine(struct engine_and_model *both, const struct event *event, struct now now) {
        struct model_effects nothing = { 0 };
        struct effects_mark before = mark(&both->effects);

        step(both, *event, now);
        compare_effects(&both->effects, before, &nothing);
        ASSERT(engine_stats(both->engine).n_registrations == both->model.n_registrations);
}

void both_disconnect(struct engine_and_model *both, const struct event *event, struct now now) {
        model_disconnect(&both->model, event);
        disconnect_in_engine(both, event, now);
}

void both_acknowledge(struct engine_and_model *both, enum event_type type, struct registration *registration,
                      struct now now) {
        struct event event = { .type = type, .registration = registration };

        for (size_t i = 0; i < both->model.n_registrations && registration->key; i++) {
                struct model_registration known = both->model.registrations[i];

                if (!is_of(registration, known.client, known.key))
                        continue;
                if (type == EVENT_REACHED)
                        model_delivered(&both->model, known.client, known.key);
                else
                        model_not_reached(&both->model, known.client, known.key, now);
                break;
        }
        disconnect_in_engine(both, &event, now);
}

/* 5. Content */

void both_compare(struct engine_and_model *both) {
        const struct keyspace *keyspace = &both->engine->keyspace;
        struct model *model = &both->model;

        ASSERT(keyspace->n_keys == model->n_keys);
        for (size_t i = 0; i < model->n_keys; i++) {
                const struct model_key *key = &model->keys[i];
                struct entry *entry = keyspace_find(keyspace, keyspace_hash(keyspace, key->key), key->key);
                struct hlc fence;

                ASSERT(entry && slice_equal(entry_value(entry), key->value));
                ASSERT(is_same_version(entry_version(entry), key->version));
                ASSERT(keyspace_deadline(keyspace, entry) == key->deadline_ns);
                ASSERT(entry_fence(entry, &fence) == key->has_fence);
                ASSERT(!key->has_fence || hlc_compare(fence, key->fence) == 0);
                ASSERT(entry->is_persistent == key->is_persistent);
        }

        ASSERT(engine_stats(both->engine).n_registrations == model->n_registrations);
        for (size_t i = 0; i < model->n_registrations; i++) {
                const struct model_registration *expected = &model->registrations[i];
                struct registration *registration =
                        engine_find_registration(both->engine, expected->client, expected->key);

                ASSERT(registration && registration->connection == expected->connection);
        }
        ASSERT(engine_stats(both->engine).n_bytes == model_n_bytes(model));
        ASSERT(heap_first_deadline(&keyspace->deadlines) == model_next_expiry(model));
        ASSERT(disconnect_idle_deadline(both->engine) == model_next_idle(model));
}
