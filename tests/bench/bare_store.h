/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/encoder.h"
#include "codec/invocation.h"
#include "engine/engine.h"

/*
 * The store without a broker: the bytes of a request go in, the bytes of its answer come out, through the same
 * decoder, engine and encoder. Requests read as the published clients send them and the plugin stamps them.
 */

#define BARE_VALUE_LENGTH 100

/* A store that remembers answers as statestored does unless told otherwise. */
#define BARE_REMEMBERED_BYTES (UINT64_C(32) << 20)

struct bare_store {
        struct engine *engine;
        struct decoder decoder;
        struct encoder encoder;
        struct effects effects;
        struct now now; /* read once a batch, as once a wake-up */
        struct message get, set, set_px;
        struct buf texts[3]; /* their payloads */
        uint64_t correlation[2];
        uint64_t n_answer_bytes; /* so that nothing of the work can be left out */
};

/* Answers are made after this many requests: what one wake-up brings in a busy store. */
#define BARE_BATCH 16

void bare_store_init(struct bare_store *store, uint64_t n_remembered_bytes);
void bare_store_deinit(struct bare_store *store);

/* px_ms: below 10^12, 0 for none. */
void bare_store_get(struct bare_store *store, uint64_t key);
void bare_store_set(struct bare_store *store, uint64_t key, uint64_t px_ms);

/* What a timer does. */
void bare_store_tick(struct bare_store *store);

/* Ends the batch and reads the clock. */
void bare_store_flush(struct bare_store *store);

/* SETs the keys below n, each once. */
void bare_store_fill(struct bare_store *store, uint64_t n_keys);
