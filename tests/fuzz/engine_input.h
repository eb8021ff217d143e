/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "fuzz/fuzz.h"

/* Requests and events about few keys, clients and values, so that they affect each other. */

#define N_KEYS    8
#define N_VALUES  6
#define N_CLIENTS 4 /* the last client has no id */

extern const struct slice engine_values[N_VALUES];
extern const struct slice engine_clients[N_CLIENTS];

/* One of the N_KEYS keys is too long for a notify topic. */
struct slice engine_key(size_t i);

/* A request with the memory that it borrows. It borrows its payload from the input. */
struct asked {
        struct request request;
        struct buf timestamp, fence;
        uint8_t correlation[16];
};
void asked_deinit(struct asked *asked);

struct input_context {
        struct now now;
        bool has_connection_numbers; /* as with the plugin */
        uint64_t n_reconnects[N_CLIENTS];

        /* Assigned by the engine. Some timestamps and fencing tokens equal them. */
        struct version versions[4];
};

void engine_take_request(struct slice *input, const struct input_context *around, struct asked *ret_asked);

/* Return the number of a client's present connection; 0 if connections have no numbers. */
uint64_t engine_connection(const struct input_context *around, size_t client);

/* connections: room for N_CLIENTS, borrowed by the event. */
void engine_take_disconnect(struct slice *input, struct input_context *around, uint64_t *connections,
                            struct event *ret_event);
