/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/companion_mac.h"

#include <errno.h>
#include <string.h>

/* Labels separate the uses of a key, and the protocol versions of each use. */
#define LABEL_REQUEST    UINT64_C(0x3374736575716572) /* "request3" */
#define LABEL_PROPERTIES UINT64_C(0x3373706f72702020) /* "  props3" */
#define LABEL_HELLO      UINT64_C(0x336f6c6c65682020) /* "  hello3" */

/* The length that stands for an absent slice. */
#define LENGTH_ABSENT UINT64_MAX

int companion_mac_init(void) {
        return sodium_init() < 0 ? -EIO : 0;
}

static uint8_t *put_number(uint8_t *at, uint64_t number) {
        for (size_t i = 0; i < sizeof(number); i++)
                *at++ = (uint8_t)(number >> (8 * i));
        return at;
}

static uint8_t *put_length(uint8_t *at, struct slice slice) {
        return put_number(at, slice.data ? slice.length : LENGTH_ABSENT);
}

static void add(crypto_generichash_state *state, struct slice slice) {
        if (slice.length > 0)
                crypto_generichash_update(state, slice.data, slice.length);
}

void companion_digest_init(struct companion_digest *digest) {
        digest->has_any = false;
}

void companion_digest_add(struct companion_digest *digest, struct slice name, struct slice value) {
        uint8_t lengths[2 * sizeof(uint64_t)], label[sizeof(uint64_t)];

        if (slice_starts_with(name, SLICE_LITERAL(COMPANION_PROPERTY)))
                return;
        if (!digest->has_any) {
                crypto_generichash_init(&digest->state, NULL, 0, COMPANION_DIGEST_SIZE);
                put_number(label, LABEL_PROPERTIES);
                crypto_generichash_update(&digest->state, label, sizeof(label));
                digest->has_any = true;
        }
        put_number(put_number(lengths, name.length), value.length);
        crypto_generichash_update(&digest->state, lengths, sizeof(lengths));
        add(&digest->state, name);
        add(&digest->state, value);
}

void companion_digest_finish(struct companion_digest *digest, uint8_t ret_digest[COMPANION_DIGEST_SIZE]) {
        if (digest->has_any)
                crypto_generichash_final(&digest->state, ret_digest, COMPANION_DIGEST_SIZE);
        else
                memset(ret_digest, 0, COMPANION_DIGEST_SIZE);
}

/* All lengths precede the parts, so that different requests give different MAC inputs. */
static void compute_mac(const struct companion_request *request, const uint8_t key[COMPANION_KEY_SIZE],
                        uint8_t ret_mac[COMPANION_MAC_SIZE]) {
        uint8_t head[8 * sizeof(uint64_t) + COMPANION_DIGEST_SIZE], *at = head;
        crypto_generichash_state state;

        at = put_number(at, LABEL_REQUEST);
        at = put_number(at, request->connection);
        at = put_number(at, request->sequence);
        at = put_length(at, request->client_id);
        at = put_length(at, request->username);
        at = put_length(at, request->response_topic);
        at = put_length(at, request->correlation_data);
        at = put_number(at, request->payload.length);
        memcpy(at, request->properties, COMPANION_DIGEST_SIZE);

        crypto_generichash_init(&state, key, COMPANION_KEY_SIZE, COMPANION_MAC_SIZE);
        crypto_generichash_update(&state, head, sizeof(head));
        add(&state, request->client_id);
        add(&state, request->username);
        add(&state, request->response_topic);
        add(&state, request->correlation_data);
        add(&state, request->payload);
        crypto_generichash_final(&state, ret_mac, COMPANION_MAC_SIZE);
}

struct companion_proof companion_proof(const struct companion_request *request,
                                       const uint8_t key[COMPANION_KEY_SIZE]) {
        struct companion_pair numbers = companion_pair(request->connection, request->sequence);
        struct companion_proof proof = { .length = numbers.length };
        uint8_t mac[COMPANION_MAC_SIZE];

        compute_mac(request, key, mac);
        memcpy(proof.text, numbers.text, numbers.length);
        proof.text[proof.length++] = ':';
        sodium_bin2hex(proof.text + proof.length, sizeof(proof.text) - proof.length, mac, sizeof(mac));
        proof.length += 2 * sizeof(mac);
        return proof;
}

static struct slice numbers_of(struct slice proof) {
        return (struct slice){ proof.data, proof.length - 2 * COMPANION_MAC_SIZE - 1 };
}

int companion_proof_read(struct slice proof, struct companion_request *request) {
        if (proof.length <= 2 * COMPANION_MAC_SIZE || proof.data[numbers_of(proof).length] != ':')
                return -EINVAL;
        return companion_pair_read(numbers_of(proof), &request->connection, &request->sequence);
}

bool companion_proof_is_valid(struct slice proof, const struct companion_request *request,
                              const uint8_t key[COMPANION_KEY_SIZE]) {
        struct companion_proof right = companion_proof(request, key);

        return proof.length == right.length && sodium_memcmp(proof.data, right.text, right.length) == 0;
}

void companion_hello_key(const uint8_t secret[COMPANION_KEY_SIZE], struct slice correlation_data,
                         uint8_t ret_key[COMPANION_KEY_SIZE]) {
        uint8_t label[sizeof(uint64_t)];
        crypto_generichash_state state;

        put_number(label, LABEL_HELLO);
        crypto_generichash_init(&state, secret, COMPANION_KEY_SIZE, COMPANION_KEY_SIZE);
        crypto_generichash_update(&state, label, sizeof(label));
        add(&state, correlation_data);
        crypto_generichash_final(&state, ret_key, COMPANION_KEY_SIZE);
}

void companion_box_seal(struct slice text, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_box) {
        randombytes_buf(ret_box, crypto_secretbox_NONCEBYTES);
        crypto_secretbox_easy(ret_box + crypto_secretbox_NONCEBYTES, text.data, text.length, ret_box, key);
}

int companion_box_open(struct slice box, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_text,
                       size_t *ret_length) {
        if (box.length < COMPANION_BOX_EXTRA ||
            crypto_secretbox_open_easy(ret_text, box.data + crypto_secretbox_NONCEBYTES,
                                       box.length - crypto_secretbox_NONCEBYTES, box.data, key) < 0)
                return -EBADMSG;

        *ret_length = box.length - COMPANION_BOX_EXTRA;
        return 0;
}
