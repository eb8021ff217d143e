/* SPDX-License-Identifier: Apache-2.0 */

#include "codec/identity.h"

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

static enum identity_result accept(struct companion_position *position, uint64_t sequence) {
        if (sequence <= position->sequence)
                return IDENTITY_REPEATED;

        position->sequence = sequence;
        return IDENTITY_VERIFIED;
}

enum identity_result identity_check(struct companion_positions *positions, const struct message *message,
                                    bool has_waited) {
        struct slice proof = message_property(message, COMPANION_PROPERTY_MAC);
        struct companion_request request = request_of(message);

        if (!proof.data || companion_proof_read(proof, &request) < 0 || request.connection == 0 ||
            request.client_id.length == 0)
                return IDENTITY_UNVERIFIED;

        if (positions->present.is_known && companion_proof_is_valid(proof, &request, positions->present.key))
                return accept(&positions->present, request.sequence);
        if (has_waited && positions->former.is_known &&
            companion_proof_is_valid(proof, &request, positions->former.key))
                return accept(&positions->former, request.sequence);
        return IDENTITY_UNVERIFIED;
}

static bool is_key(const struct companion_position *position, const uint8_t key[COMPANION_MAC_KEY_SIZE]) {
        return position->is_known && sodium_memcmp(position->key, key, sizeof(position->key)) == 0;
}

bool identity_take_key(struct companion_positions *positions, const uint8_t key[COMPANION_MAC_KEY_SIZE]) {
        struct companion_position next = { .is_known = true };

        if (is_key(&positions->present, key))
                return false;

        if (is_key(&positions->former, key)) /* the store changes between two brokers */
                next = positions->former;
        memcpy(next.key, key, sizeof(next.key));
        positions->former = positions->present;
        positions->present = next;
        return true;
}

void identity_end_wait(struct companion_positions *positions, uint64_t sequence) {
        if (sequence > positions->present.sequence)
                positions->present.sequence = sequence;
}

struct identity identity_read(const struct message *message) {
        struct companion_request request = request_of(message);
        int r = companion_proof_read(message_property(message, COMPANION_PROPERTY_MAC), &request);

        ASSERT(message->is_verified && r == 0);
        return (struct identity){ request.client_id, request.username, request.connection };
}
