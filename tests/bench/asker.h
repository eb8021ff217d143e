/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/peer.h"

/* A client that asks the store as the published clients do: the same properties, a timestamp of its own. */
struct asker {
        struct peer peer;
        struct slice topic; /* that requests go to: TOPIC_INVOKE, unless the owner changes it; borrowed */
        char id[32];
        char response_topic[96];
        struct buf payload, timestamp;
};

/* Connects as the client of this number, with a response topic that it has subscribed to. */
void asker_connect(struct asker *asker, uint64_t port, uint32_t number);
void asker_close(struct asker *asker);

/*
 * Publishes a request of these words; it leaves with the next peer_flush(). What correlation is unlike all others is
 * the caller's care.
 */
void asker_ask(struct asker *asker, const struct slice *words, size_t n_words, struct slice correlation);
