/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/peer.h"

/* A client of the store that sends the same properties as the Go, Rust and .NET clients of AIO. */
struct asker {
        struct peer peer;
        /* The caller may replace these two slices. Borrowed. */
        struct slice topic;         /* of requests: TOPIC_INVOKE */
        struct slice reply_address; /* the Response Topic of requests: response_topic */
        char id[32];
        char response_topic[96];
        struct buf payload, timestamp;
};

/* Connect with a client id made of the number, and subscribe to the response topic. */
void asker_connect(struct asker *asker, uint64_t port, uint32_t number);
void asker_close(struct asker *asker);

/*
 * Publish a request with these words. The next peer_flush() sends it. The caller chooses unique
 * correlation data.
 */
void asker_ask(struct asker *asker, const struct slice *words, size_t n_words, struct slice correlation);
