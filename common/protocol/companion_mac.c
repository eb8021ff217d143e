/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/companion_mac.h"

#include <errno.h>
#include <string.h>

/* The length that stands for an absent slice. */
#define LENGTH_ABSENT UINT64_MAX

/* Write 8 bytes, little endian. Returns the address behind them. */
static uint8_t *write_number(uint8_t *at, uint64_t number) {
        for (size_t i = 0; i < sizeof(number); i++)
                *at++ = (uint8_t)(number >> (8 * i));
        return at;
}

static uint8_t *write_length(uint8_t *at, struct slice slice) {
        return write_number(at, slice.data ? slice.length : LENGTH_ABSENT);
}

void companion_digest_init(struct companion_digest *digest) {
        digest->has_any = false;
}

void companion_digest_add(struct companion_digest *digest, struct slice name, struct slice value) {
        uint8_t lengths[2 * sizeof(uint64_t)];

        if (slice_starts_with(name, SLICE_LITERAL(COMPANION_PROPERTY)))
                return;
        if (!digest->has_any) {
                crypto_generichash_init(&digest->state, NULL, 0, COMPANION_DIGEST_SIZE);
                digest->has_any = true;
        }
        write_number(write_number(lengths, name.length), value.length);
        crypto_generichash_update(&digest->state, lengths, sizeof(lengths));
        crypto_generichash_update(&digest->state, name.data, name.length);
        crypto_generichash_update(&digest->state, value.data, value.length);
}

void companion_digest_finish(struct companion_digest *digest, uint8_t ret_digest[COMPANION_DIGEST_SIZE]) {
        if (digest->has_any)
                crypto_generichash_final(&digest->state, ret_digest, COMPANION_DIGEST_SIZE);
        else
                memset(ret_digest, 0, COMPANION_DIGEST_SIZE);
}

/* As crypto_secretbox does: the first bytes of an XSalsa20 stream. */
static void derive_onetime_key(const struct companion_request *request,
                               const uint8_t key[COMPANION_KEY_SIZE],
                               uint8_t ret_key[crypto_onetimeauth_KEYBYTES]) {
        uint8_t nonce[crypto_stream_NONCEBYTES] = { 0 };

        write_number(write_number(nonce, request->connection), request->sequence);
        crypto_stream(ret_key, crypto_onetimeauth_KEYBYTES, nonce, key);
}

static void add(crypto_onetimeauth_state *state, struct slice slice) {
        crypto_onetimeauth_update(state, slice.data, slice.length);
}

/*
 * All lengths precede all parts, so that bytes cannot move from one part to the next without
 * changing the MAC.
 */
static void compute_tag(const struct companion_request *request, const uint8_t key[COMPANION_KEY_SIZE],
                        uint8_t ret_tag[COMPANION_MAC_SIZE]) {
        uint8_t onetime_key[crypto_onetimeauth_KEYBYTES];
        uint8_t head[5 * sizeof(uint64_t) + COMPANION_DIGEST_SIZE], *at = head;
        crypto_onetimeauth_state state;

        at = write_length(at, request->client_id);
        at = write_length(at, request->username);
        at = write_length(at, request->response_topic);
        at = write_length(at, request->correlation_data);
        at = write_number(at, request->payload.length);
        memcpy(at, request->properties, COMPANION_DIGEST_SIZE);

        derive_onetime_key(request, key, onetime_key);
        crypto_onetimeauth_init(&state, onetime_key);
        add(&state, (struct slice){ head, sizeof(head) });
        add(&state, request->client_id);
        add(&state, request->username);
        add(&state, request->response_topic);
        add(&state, request->correlation_data);
        add(&state, request->payload);
        crypto_onetimeauth_final(&state, ret_tag);
}

struct companion_mac companion_mac_compute(const struct companion_request *request,
                                           const uint8_t key[COMPANION_KEY_SIZE]) {
        struct companion_number_pair numbers = companion_number_pair(request->connection, request->sequence);
        struct companion_mac mac = { .length = numbers.length };
        uint8_t tag[COMPANION_MAC_SIZE];

        compute_tag(request, key, tag);
        memcpy(mac.text, numbers.text, numbers.length);
        mac.text[mac.length++] = ':';
        sodium_bin2hex(mac.text + mac.length, sizeof(mac.text) - mac.length, tag, sizeof(tag));
        mac.length += 2 * sizeof(tag);
        return mac;
}

static struct slice numbers_of(struct slice mac) {
        return (struct slice){ mac.data, mac.length - 2 * COMPANION_MAC_SIZE - 1 };
}

int companion_mac_read(struct slice mac, struct companion_request *request) {
        if (mac.length <= 2 * COMPANION_MAC_SIZE || mac.data[numbers_of(mac).length] != ':')
                return -EINVAL;
        return companion_number_pair_read(numbers_of(mac), &request->connection, &request->sequence);
}

bool companion_mac_is_valid(struct slice mac, const struct companion_request *request,
                            const uint8_t key[COMPANION_KEY_SIZE]) {
        struct companion_mac expected = companion_mac_compute(request, key);

        return mac.length == expected.length && sodium_memcmp(mac.data, expected.text, expected.length) == 0;
}
