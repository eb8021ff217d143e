/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/verification.h"

#include <sodium.h>

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

static enum verification_result accept_sequence(struct companion_key_state *state, uint64_t sequence) {
        if (sequence <= state->sequence)
                return VERIFICATION_REPEATED;

        state->sequence = sequence;
        return VERIFICATION_PASSED;
}

enum verification_result verification_check(struct companion_key_states *key_states,
                                            const struct message *message, bool is_before_welcome) {
        struct slice mac = message_property(message, COMPANION_PROPERTY_MAC);
        struct companion_request request = request_of(message);

        if (!mac.data || companion_mac_read(mac, &request) < 0 || request.connection == 0 ||
            request.client_id.length == 0)
                return VERIFICATION_FAILED;

        if (key_states->present.is_known && companion_mac_is_valid(mac, &request, key_states->present.key))
                return accept_sequence(&key_states->present, request.sequence);
        if (is_before_welcome && key_states->former.is_known &&
            companion_mac_is_valid(mac, &request, key_states->former.key))
                return accept_sequence(&key_states->former, request.sequence);
        return VERIFICATION_FAILED;
}

static bool is_key(const struct companion_key_state *state, const uint8_t key[COMPANION_KEY_SIZE]) {
        return state->is_known && sodium_memcmp(state->key, key, sizeof(state->key)) == 0;
}

bool verification_set_key(struct companion_key_states *key_states, const uint8_t key[COMPANION_KEY_SIZE]) {
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

void verification_skip_to(struct companion_key_states *key_states, uint64_t sequence) {
        if (sequence > key_states->present.sequence)
                key_states->present.sequence = sequence;
}
