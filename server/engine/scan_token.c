/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The nonce is a keyed hash of the position, so that different positions have different nonces and
 * no key stream is reused.
 */

#include "engine/scan_token.h"

#include <errno.h>
#include <sodium.h>

#include "base/base16.h"
#include "base/cleanup.h"

struct token {
        uint8_t nonce[crypto_secretbox_NONCEBYTES];
        uint8_t box[crypto_secretbox_MACBYTES + sizeof(uint64_t)];
};
_Static_assert(SCAN_TOKEN_LENGTH == 2 * sizeof(struct token), "a token is written in base16");
_Static_assert(sizeof(((struct token_key *)NULL)->box_key) == crypto_secretbox_KEYBYTES, "a key of the box");
_Static_assert(sizeof(((struct token_key *)NULL)->nonce_key) == crypto_generichash_KEYBYTES,
               "a key of BLAKE2b");

int scan_token_write(const struct token_key *key, uint64_t position, char ret_text[SCAN_TOKEN_LENGTH]) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct token token;

        crypto_generichash(token.nonce, sizeof(token.nonce), (const uint8_t *)&position, sizeof(position),
                           key->nonce_key, sizeof(key->nonce_key));
        crypto_secretbox_easy(token.box, (const uint8_t *)&position, sizeof(position), token.nonce,
                              key->box_key);

        base16_append(&text, (struct slice){ (const uint8_t *)&token, sizeof(token) });
        if (buf_failed(&text))
                return -ENOMEM;
        memcpy(ret_text, text.data, SCAN_TOKEN_LENGTH);
        return 0;
}

int scan_token_read(const struct token_key *key, struct slice text, uint64_t *ret_position) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 };
        struct token token;
        uint64_t position;
        int r;

        if (text.length != SCAN_TOKEN_LENGTH)
                return -EINVAL;
        r = base16_append_decoded(&bytes, text);
        if (r < 0)
                return r;

        memcpy(&token, bytes.data, sizeof(token));
        if (crypto_secretbox_open_easy((uint8_t *)&position, token.box, sizeof(token.box), token.nonce,
                                       key->box_key) < 0)
                return -EINVAL;
        *ret_position = position;
        return 0;
}
