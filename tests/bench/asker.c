/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/asker.h"

#include <inttypes.h>
#include <stdio.h>

#include "bench/stopwatch.h"
#include "protocol/hlc.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

/* Request timeout of the published clients. */
#define EXPIRY_S 10

void asker_connect(struct asker *asker, uint64_t port, uint32_t number) {
        *asker = (struct asker){ .topic = SLICE_LITERAL(TOPIC_INVOKE) };
        snprintf(asker->id, sizeof(asker->id), "bench-%" PRIu32, number);
        snprintf(asker->response_topic, sizeof(asker->response_topic),
                 "clients/%s/services/statestore/_any_/command/invoke/response", asker->id);
        asker->reply_address = slice_from_string(asker->response_topic);
        peer_connect(&asker->peer, port, asker->id);
        peer_subscribe(&asker->peer, asker->response_topic);
}

void asker_close(struct asker *asker) {
        peer_close(&asker->peer);
        buf_deinit(&asker->payload);
        buf_deinit(&asker->timestamp);
}

void asker_ask(struct asker *asker, const struct slice *words, size_t n_words, struct slice correlation) {
        struct slice id = slice_from_string(asker->id);

        buf_reset(&asker->timestamp);
        hlc_append(&asker->timestamp, (struct hlc){ stopwatch_wall_ms(), 0, id }, HLC_PADDED);
        buf_reset(&asker->payload);
        resp3_append_array(&asker->payload, n_words);
        for (size_t i = 0; i < n_words; i++)
                resp3_append_blob(&asker->payload, words[i]);

        peer_publish(&asker->peer, &(struct message){
                                           .topic = asker->topic,
                                           .payload = buf_slice(&asker->payload),
                                           .response_topic = asker->reply_address,
                                           .correlation_data = correlation,
                                           .has_expiry = true,
                                           .expiry_s = EXPIRY_S,
                                           .n_user_properties = 3,
                                           .user_properties = {
                                                   { SLICE_LITERAL("__ts"), buf_slice(&asker->timestamp) },
                                                   { SLICE_LITERAL("__srcId"), id },
                                                   { SLICE_LITERAL("__protVer"), SLICE_LITERAL("1.0") },
                                           },
                                   });
}
