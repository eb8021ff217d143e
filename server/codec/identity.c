/* SPDX-License-Identifier: Apache-2.0 */

#include "codec/identity.h"

#include <sodium.h>

#include "base/assert.h"
#include "protocol/companion_mac.h"

static struct companion_request request_of(const struct message *message) {
        return (struct companion_request){
                .client_id = message_property(message, COMPANION_PROPERTY_CLIENT_ID),
                .username = message_property(message, COMPANION_PROPERTY_USERNAME),
                .response_topic = message->response_topic,
                .correlation_data = message->correlation_data,
                .payload = message->payload,
                .properties = message->properties_digest,
        };
}

static enum identity_result accept_sequence(struct companion_key_state *state, uint64_t sequence) {
        if (sequence <= state->sequence)
                return IDENTITY_REPEATED;

        state->sequence = sequence;
        return IDENTITY_VERIFIED;
}

enum identity_result identity_check(struct companion_key_states *key_states, const struct message *message,
                                    bool is_before_welcome) {
        struct slice mac = message_property(message, COMPANION_PROPERTY_MAC);
        struct companion_request request = request_of(message);

        if (!mac.data || companion_mac_read(mac, &request) < 0 || request.connection == 0 ||
            request.client_id.length == 0)
                return IDENTITY_UNVERIFIED;

        if (key_states->present.is_known && companion_mac_is_valid(mac, &request, key_states->present.key))
                return accept_sequence(&key_states->present, request.sequence);
        if (is_before_welcome && key_states->former.is_known &&
            companion_mac_is_valid(mac, &request, key_states->former.key))
                return accept_sequence(&key_states->former, request.sequence);
        return IDENTITY_UNVERIFIED;
}

static bool is_key(const struct companion_key_state *state, const uint8_t key[COMPANION_KEY_SIZE]) {
        return state->is_known && sodium_memcmp(state->key, key, sizeof(state->key)) == 0;
}

bool identity_set_key(struct companion_key_states *key_states, const uint8_t key[COMPANION_KEY_SIZE]) {
        struct companion_key_state next = { .is_known = true };

        if (is_key(&key_states->present, key))
                return false;

        /* The store is connected to the former broker again: keep the sequence of its key. */
        if (is_key(&key_states->former, key))
                next = key_states->former;
        memcpy(next.key, key, sizeof(next.key));
        key_states->former = key_states->present;
        key_states->present = next;
        return true;
}

void identity_skip_to(struct companion_key_states *key_states, uint64_t sequence) {
        if (sequence > key_states->present.sequence)
                key_states->present.sequence = sequence;
}

struct identity identity_read(const struct message *message) {
        struct companion_request request = request_of(message);
        int r = companion_mac_read(message_property(message, COMPANION_PROPERTY_MAC), &request);

        ASSERT(message->is_verified && r == 0);
        return (struct identity){ request.client_id, request.username, request.connection };
}
