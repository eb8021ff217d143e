/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/encoder.h"
#include "codec/invocation.h"
#include "engine/engine.h"

/*
 * The store without a broker: decoder, engine and encoder, from the bytes of a request to the bytes
 * of its reply. Requests have the properties of the Go, Rust and .NET clients of AIO, and the
 * identity properties of the plugin.
 */

#define BARE_VALUE_LENGTH 100

/* The default of max-remembered-bytes. */
#define BARE_REMEMBERED_BYTES (UINT64_C(32) << 20)

/* Number of requests per batch, as in a busy store. */
#define BARE_BATCH 16

struct bare_store {
        struct engine *engine;
        struct decoder decoder;
        struct encoder encoder;
        struct effects effects;
        struct reply replies[BARE_BATCH];
        size_t n_replies;
        struct now now; /* read once per batch, as statestored does once per wake-up */
        struct frame_to_store_record get, set, set_px;
        struct buf texts[3]; /* their payloads */
        struct buf properties;
        uint64_t correlation[2];
        uint64_t n_reply_bytes; /* uses the result, so that the compiler keeps the work */
};

void bare_store_init(struct bare_store *store, uint64_t n_remembered_bytes);
void bare_store_deinit(struct bare_store *store);

/* px_ms: below 10^12, 0 for none. */
void bare_store_get(struct bare_store *store, uint64_t key);
void bare_store_set(struct bare_store *store, uint64_t key, uint64_t px_ms);

/* Process a tick. */
void bare_store_tick(struct bare_store *store);

/* End the batch and read the clock. */
void bare_store_flush(struct bare_store *store);

/* Set each key below n once. */
void bare_store_fill(struct bare_store *store, uint64_t n_keys);
