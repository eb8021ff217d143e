/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/bare_store.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/fail.h"
#include "bench/keys.h"
#include "bench/stopwatch.h"
#include "protocol/resp3.h"

#define NODE_ID "StateStore"

/* Payloads are formatted once; each request overwrites the key, and PX if it has one. */
#define KEY_IN_GET (sizeof("*2\r\n$3\r\nGET\r\n$20\r\n") - 1)
#define KEY_IN_SET (sizeof("*3\r\n$3\r\nSET\r\n$20\r\n") - 1)
#define PX_DIGITS  12

static struct slice append_request(struct buf *text, const char *verb, bool has_px) {
        static const uint8_t key[KEY_LENGTH], px[PX_DIGITS];
        uint8_t value[BARE_VALUE_LENGTH];
        bool is_set = strcmp(verb, "SET") == 0;

        memset(value, 'v', sizeof(value));
        resp3_append_array(text, is_set ? has_px ? 5 : 3 : 2);
        resp3_append_blob(text, slice_from_string(verb));
        resp3_append_blob(text, (struct slice){ key, sizeof(key) });
        if (is_set)
                resp3_append_blob(text, (struct slice){ value, sizeof(value) });
        if (has_px) {
                resp3_append_blob(text, SLICE_LITERAL("PX"));
                resp3_append_blob(text, (struct slice){ px, sizeof(px) });
        }
        if (buf_failed(text))
                fail("out of memory");
        return buf_slice(text);
}

static void append_properties(struct buf *properties) {
        frame_property_append(properties, SLICE_LITERAL("__ts"),
                              SLICE_LITERAL("001696374425000:00000:Client1"));
        frame_property_append(properties, SLICE_LITERAL("__srcId"), SLICE_LITERAL("bench-1"));
        frame_property_append(properties, SLICE_LITERAL("__protVer"), SLICE_LITERAL("1.0"));
        if (buf_failed(properties))
                fail("out of memory");
}

static struct frame_to_store_record new_request(const struct bare_store *store, struct slice payload) {
        return (struct frame_to_store_record){
                .kind = FRAME_REQUEST,
                .client_id = SLICE_LITERAL("bench-1"),
                .request = {
                        .qos = 1,
                        .response_topic = SLICE_LITERAL(
                                "clients/bench-1/services/statestore/_any_/command/invoke/response"),
                        .correlation_data = { (const uint8_t *)store->correlation,
                                              sizeof(store->correlation) },
                        .properties = buf_slice(&store->properties),
                        .payload = payload,
                },
        };
}

void bare_store_init(struct bare_store *store, uint64_t n_remembered_bytes) {
        struct engine_config config = {
                .node_id = SLICE_LITERAL(NODE_ID),
                .table_key = { "benchmark" },
                .limits = { .max_keys = UINT64_MAX,
                            .max_bytes = UINT64_MAX,
                            .max_remembered_bytes = n_remembered_bytes },
        };

        *store = (struct bare_store){
                .encoder = { .node_id = SLICE_LITERAL(NODE_ID) },
        };
        if (engine_new(&store->engine, &config) < 0)
                fail("out of memory");

        append_properties(&store->properties);
        store->get = new_request(store, append_request(&store->texts[0], "GET", false));
        store->set = new_request(store, append_request(&store->texts[1], "SET", false));
        store->set_px = new_request(store, append_request(&store->texts[2], "SET", true));
        bare_store_flush(store);
}

void bare_store_deinit(struct bare_store *store) {
        for (size_t i = 0; i < store->n_replies; i++)
                reply_deinit(&store->replies[i]);
        effects_deinit(&store->effects);
        encoder_deinit(&store->encoder);
        engine_free(store->engine);
        for (size_t i = 0; i < 3; i++)
                buf_deinit(&store->texts[i]);
        buf_deinit(&store->properties);
}

static void ask(struct bare_store *store, const struct frame_to_store_record *request) {
        struct invocation invocation;

        store->correlation[0]++;
        invocation_decode(&store->decoder, request, &invocation);
        invocation.request.expiry_s = 10;
        if (!invocation_is_accepted(&invocation))
                fail("the store refused a request");
        engine_request(store->engine, &invocation.request, &store->replies[store->n_replies++], store->now,
                       &store->effects);
        if (store->n_replies == BARE_BATCH)
                bare_store_flush(store);
}

void bare_store_get(struct bare_store *store, uint64_t key) {
        key_write(store->texts[0].data + KEY_IN_GET, key);
        ask(store, &store->get);
}

/* Write the digits so that they end before `end`. */
static void write_px(uint8_t *end, uint64_t px_ms) {
        for (uint8_t *at = end; at > end - PX_DIGITS; px_ms /= 10)
                *--at = (uint8_t)('0' + px_ms % 10);
}

void bare_store_set(struct bare_store *store, uint64_t key, uint64_t px_ms) {
        struct buf *text = &store->texts[px_ms ? 2 : 1];

        key_write(text->data + KEY_IN_SET, key);
        if (px_ms)
                write_px(text->data + text->length - 2, px_ms);
        ask(store, px_ms ? &store->set_px : &store->set);
}

void bare_store_tick(struct bare_store *store) {
        const struct event tick = { .type = EVENT_TICK };

        if (engine_step(store->engine, &tick, store->now, &store->effects) < 0)
                fail("out of memory");
}

void bare_store_flush(struct bare_store *store) {
        struct message reply;

        for (size_t i = 0; i < store->n_replies; i++) {
                if (encoder_reply(&store->encoder, &store->replies[i], &reply) < 0)
                        fail("out of memory");
                store->n_reply_bytes += reply.payload.length + reply.payload.data[reply.payload.length - 1];
                reply_deinit(&store->replies[i]);
        }
        store->n_replies = 0;
        effects_reset(&store->effects);
        store->now = (struct now){ stopwatch_wall_ms(), stopwatch_ns() };
}

void bare_store_fill(struct bare_store *store, uint64_t n_keys) {
        for (uint64_t key = 0; key < n_keys; key++)
                bare_store_set(store, key, 0);
        bare_store_flush(store);
        if (engine_stats(store->engine).n_keys != n_keys)
                fail("the keys do not exist");
}
