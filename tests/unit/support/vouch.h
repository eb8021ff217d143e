/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "protocol/companion_mac.h"
#include "protocol/message.h"

/* What the plugin in the broker does to requests, and its welcome. A key is one character, repeated. */

static inline void vouch_key(char key, uint8_t ret_key[COMPANION_KEY_SIZE]) {
        memset(ret_key, key, COMPANION_KEY_SIZE);
}

struct vouched {
        char key;
        struct slice client, user; /* user absent: none */
        uint64_t connection, sequence;
};

/* Append the identity properties. *proof must live as long as the message. */
static inline void vouch(struct message *message, const struct vouched *vouched,
                         struct companion_proof *proof) {
        struct companion_request request = {
                .client_id = vouched->client,
                .username = vouched->user,
                .response_topic = message->response_topic,
                .correlation_data = message->correlation_data,
                .payload = message->payload,
                .properties = message->properties_digest,
                .connection = vouched->connection,
                .sequence = vouched->sequence,
        };
        uint8_t key[COMPANION_KEY_SIZE];
        struct user_property *properties = message->user_properties;

        vouch_key(vouched->key, key);
        *proof = companion_proof(&request, key);
        properties[message->n_user_properties++] =
                (struct user_property){ SLICE_LITERAL(COMPANION_PROPERTY_MAC),
                                        { (const uint8_t *)proof->text, proof->length } };
        properties[message->n_user_properties++] =
                (struct user_property){ SLICE_LITERAL(COMPANION_PROPERTY_CLIENT_ID), vouched->client };
        if (vouched->user.data)
                properties[message->n_user_properties++] =
                        (struct user_property){ SLICE_LITERAL(COMPANION_PROPERTY_USERNAME), vouched->user };
}

/* Welcome's text. rest: what follows the key. */
static inline struct slice welcome_text(struct buf *text, char key, const char *rest) {
        uint8_t bytes[COMPANION_KEY_SIZE];

        vouch_key(key, bytes);
        buf_append(text, bytes, sizeof(bytes));
        buf_append_string(text, rest);
        return buf_slice(text);
}

/* Welcome's payload, in answer to a hello with this payload; the caller frees it. */
static inline struct slice welcome_box(struct slice hello, struct slice text) {
        uint8_t *box = malloc(text.length + COMPANION_BOX_EXTRA);

        if (box)
                companion_box_seal(text, hello.data, box);
        return (struct slice){ box, text.length + COMPANION_BOX_EXTRA };
}
