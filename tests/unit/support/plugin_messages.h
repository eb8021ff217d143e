/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "protocol/companion_mac.h"
#include "protocol/message.h"

/* Identity properties and WELCOME, as the plugin makes them. A key is one character, repeated. */

static inline void repeat_key(char key, uint8_t ret_key[COMPANION_KEY_SIZE]) {
        memset(ret_key, key, COMPANION_KEY_SIZE);
}

struct sender {
        char key;
        struct slice client, user; /* user absent: none */
        uint64_t connection, sequence;
};

/* Append the identity properties. *mac must live as long as the message. */
static inline void add_identity(struct message *message, const struct sender *sender,
                                struct companion_mac *mac) {
        struct companion_request request = {
                .client_id = sender->client,
                .username = sender->user,
                .response_topic = message->response_topic,
                .correlation_data = message->correlation_data,
                .payload = message->payload,
                .properties = message->properties_digest,
                .connection = sender->connection,
                .sequence = sender->sequence,
        };
        uint8_t key[COMPANION_KEY_SIZE];
        struct user_property *properties = message->user_properties;

        repeat_key(sender->key, key);
        *mac = companion_mac_compute(&request, key);
        properties[message->n_user_properties++] =
                (struct user_property){ SLICE_LITERAL(COMPANION_PROPERTY_MAC),
                                        { (const uint8_t *)mac->text, mac->length } };
        properties[message->n_user_properties++] =
                (struct user_property){ SLICE_LITERAL(COMPANION_PROPERTY_CLIENT_ID), sender->client };
        if (sender->user.data)
                properties[message->n_user_properties++] =
                        (struct user_property){ SLICE_LITERAL(COMPANION_PROPERTY_USERNAME), sender->user };
}

/* Append the plain text of WELCOME: the key, then rest. */
static inline struct slice welcome_text(struct buf *text, char key, const char *rest) {
        uint8_t bytes[COMPANION_KEY_SIZE];

        repeat_key(key, bytes);
        buf_append(text, bytes, sizeof(bytes));
        buf_append_string(text, rest);
        return buf_slice(text);
}

/*
 * Return the payload of WELCOME: the encrypted text. hello: payload of HELLO. The caller frees the
 * result.
 */
static inline struct slice welcome_payload(struct slice hello, struct slice text) {
        static const uint8_t nonce[COMPANION_NONCE_SIZE];
        uint8_t *box = malloc(text.length + COMPANION_BOX_EXTRA);

        if (box)
                companion_box_seal(text, hello.data, nonce, box);
        return (struct slice){ box, text.length + COMPANION_BOX_EXTRA };
}
