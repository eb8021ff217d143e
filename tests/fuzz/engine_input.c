/* SPDX-License-Identifier: Apache-2.0 */

#include "fuzz/engine_input.h"

#include <stdlib.h>

#include "base/array.h"

#define BYTES(text)                                                                                         \
        { (const uint8_t *)("" text), sizeof(text) - 1 }

const struct slice engine_values[N_VALUES] = {
        BYTES("v"),
        BYTES("w"),
        BYTES(""),
        BYTES("a\r\nb\0c"),
        BYTES("a value that is longer than the others"),
        BYTES("c0"),
};

const struct slice engine_clients[N_CLIENTS] = { BYTES("c0"), BYTES("c1"), BYTES("\xff"), BYTES("") };

#define LONG_KEY_LENGTH 32700

struct slice engine_key(size_t i) {
        static const struct slice keys[N_KEYS - 1] = { BYTES("k"),       BYTES("k1"),   BYTES("lock"),
                                                       BYTES("c0"),      BYTES("\xff"), BYTES("\0"),
                                                       BYTES("\xC3\xA4") };
        static uint8_t long_key[LONG_KEY_LENGTH];

        return i < N_KEYS - 1 ? keys[i] : (struct slice){ long_key, LONG_KEY_LENGTH };
}

void asked_deinit(struct asked *asked) {
        buf_deinit(&asked->timestamp);
        buf_deinit(&asked->fence);
}

uint64_t engine_connection(const struct input_context *around, size_t client) {
        return around->has_connection_numbers ? 1 + client + N_CLIENTS * around->n_reconnects[client] : 0;
}

/* Timestamps near the present, near assigned versions, and at the limits of the ranges. */
static struct hlc take_hlc(struct slice *input, const struct input_context *around) {
        static const int64_t offsets_ms[] = { 0, -1, 1, -1000, 1000, 60000, 60001, 100000 };
        static const uint64_t counters[] = { 0,         1,          7,         INT32_MAX - 2, INT32_MAX - 1,
                                             INT32_MAX, UINT32_MAX, UINT64_MAX };
        size_t choice = input_below(input, 16);
        struct hlc hlc = { .node = slice_from_string(input_chance(input, 50) ? "c0" : "StateStore") };

        if (choice < 4) {
                hlc.wall_ms = around->versions[choice].wall_ms;
                hlc.counter = around->versions[choice].counter;
                return hlc;
        }
        hlc.wall_ms = around->now.wall_ms + offsets_ms[choice % 8];
        if (choice == 14)
                hlc.wall_ms = 0;
        if (choice == 15)
                hlc.wall_ms = INT64_MAX;
        if (hlc.wall_ms < 0)
                hlc.wall_ms = 0;
        hlc.counter = counters[input_below(input, 8)];
        return hlc;
}

static void take_set(struct slice *input, struct request *request) {
        static const int64_t px_ms[] = { 1, 2, 10, 100, 1000, 60000, INT64_MAX / 1000000, INT64_MAX };

        request->value = engine_values[input_below(input, N_VALUES)];
        request->condition = (enum set_condition)input_below(input, 3);
        if (request->condition == SET_IF_ABSENT_OR_EQUAL)
                request->expected = engine_values[input_below(input, N_VALUES)];
        request->has_px = input_chance(input, 50);
        if (request->has_px)
                request->px_ms = px_ms[input_below(input, 8)];
        request->wants_persistence = input_chance(input, 50);
}

static void take_arguments(struct slice *input, struct request *request) {
        switch (request->verb) {
        case VERB_SET:
                take_set(input, request);
                break;
        case VERB_GET:
                request->wants_details = input_chance(input, 50);
                break;
        case VERB_VDEL:
                request->value = engine_values[input_below(input, N_VALUES)];
                break;
        case VERB_KEYNOTIFY:
                request->stop = input_chance(input, 30);
                break;
        case VERB_SCAN:
                request->key = slice_from_string(input_chance(input, 50) ? "*" : "[!k]*");
                if (input_chance(input, 10))
                        request->value = SLICE_LITERAL("000000000000000000000000");
                break;
        case VERB_DEL:
        case VERB_UNKNOWN:
                break;
        }
}

/* A request of the console. */
static void take_version_condition(struct slice *input, const struct input_context *around,
                                   struct request *request) {
        request->is_inner = true;
        request->version_condition = (enum version_condition)input_below(input, 3);
        request->expected_version = around->versions[input_below(input, 4)];
}

static void take_clocks(struct slice *input, const struct input_context *around, struct asked *asked) {
        struct request *request = &asked->request;
        uint8_t choice;

        request->has_timestamp =
                input_chance(input, 70) || (verbs[request->verb].flags & VERB_NEEDS_TIMESTAMP);
        if (request->has_timestamp) {
                request->timestamp = take_hlc(input, around);
                hlc_append(&asked->timestamp, request->timestamp, HLC_UNPADDED);
                request->timestamp_text = buf_slice(&asked->timestamp);
        }
        if (!(verbs[request->verb].flags & VERB_IS_FENCED))
                return;
        choice = input_byte(input);
        request->has_fence = choice < 103; /* 40 % */
        if (request->has_fence) {
                request->fence = take_hlc(input, around);
                hlc_append(&asked->fence, request->fence, HLC_UNPADDED);
                request->fence_text = buf_slice(&asked->fence);
        }
        if (choice % 8 == 4) /* 13 %, and in no stored input that once failed */
                take_version_condition(input, around, request);
}

void engine_take_request(struct slice *input, const struct input_context *around, struct asked *ret_asked) {
        struct request *request = &ret_asked->request;
        const uint8_t *begin = input->data;
        size_t client;

        *ret_asked = (struct asked){ 0 };
        request->verb = (enum verb)input_below(input, N_VERBS);
        request->key = engine_key(input_below(input, N_KEYS));
        client = input_below(input, N_CLIENTS);
        request->client = engine_clients[client];
        request->connection = engine_connection(around, client);
        take_arguments(input, request);
        request->payload = (struct slice){ begin, (size_t)(input->data - begin) }; /* what identifies it */

        take_clocks(input, around, ret_asked);
        request->response_topic = slice_from_string(input_chance(input, 80) ? "replies" : "other/replies");
        ret_asked->correlation[0] = (uint8_t)input_below(input, 4);
        request->correlation_data.data = ret_asked->correlation;
        request->correlation_data.length = input_chance(input, 70) ? 16 : 4;
        request->expiry_s = input_chance(input, 50) ? 0 : (uint32_t)input_number(input, 2);
}

void engine_take_disconnect(struct slice *input, struct input_context *around, uint64_t *connections,
                            struct event *ret_event) {
        static const enum event_type types[] = { EVENT_CLIENT_DISCONNECTED, EVENT_CONNECTION_CLOSED,
                                                 EVENT_CONNECTION_CLOSED, EVENT_CONNECTIONS_RETAINED,
                                                 EVENT_CONNECTIONS_RETAINED };
        size_t client = input_below(input, N_CLIENTS);
        struct event event = { .type = types[input_below(input, 5)] };

        event.client = engine_clients[client];
        event.connection = engine_connection(around, client);
        if (event.type == EVENT_CONNECTION_CLOSED && event.connection == 0)
                event.type = EVENT_CLIENT_DISCONNECTED;
        if (event.type == EVENT_CONNECTIONS_RETAINED) {
                uint8_t retained = input_byte(input);

                event.connections = connections;
                for (size_t i = 0; i < N_CLIENTS; i++)
                        if (retained & 1 << i)
                                connections[event.n_connections++] = engine_connection(around, i);
                qsort(connections, event.n_connections, sizeof(*connections), compare_uint64);
        }
        if (input_chance(input, 50)) /* reconnects, whether the former connection has ended or not */
                around->n_reconnects[client]++;
        *ret_event = event;
}
