/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/companion_box.h"

#include <endian.h>
#include <errno.h>

int companion_box_init(void) {
        return sodium_init() < 0 ? -EIO : 0;
}

void companion_hello_key(const uint8_t secret[COMPANION_KEY_SIZE], uint64_t number,
                         uint8_t ret_key[COMPANION_KEY_SIZE]) {
        crypto_generichash(ret_key, COMPANION_KEY_SIZE, (const uint8_t *)&number, sizeof(number), secret,
                           COMPANION_KEY_SIZE);
}

void companion_frame_key(const uint8_t hello_key[COMPANION_KEY_SIZE], uint8_t ret_key[COMPANION_KEY_SIZE]) {
        static const uint8_t purpose[] = "frames to the store";

        crypto_generichash(ret_key, COMPANION_KEY_SIZE, purpose, sizeof(purpose) - 1, hello_key,
                           COMPANION_KEY_SIZE);
}

void companion_box_seal(struct slice text, const uint8_t key[COMPANION_KEY_SIZE],
                        const uint8_t nonce[COMPANION_NONCE_SIZE], uint8_t *ret_box) {
        memcpy(ret_box, nonce, COMPANION_NONCE_SIZE);
        crypto_secretbox_easy(ret_box + COMPANION_NONCE_SIZE, text.data, text.length, nonce, key);
}

int companion_box_open(struct slice box, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_text,
                       size_t *ret_length) {
        if (box.length < COMPANION_BOX_EXTRA ||
            crypto_secretbox_open_easy(ret_text, box.data + COMPANION_NONCE_SIZE,
                                       box.length - COMPANION_NONCE_SIZE, box.data, key) < 0)
                return -EBADMSG;

        *ret_length = box.length - COMPANION_BOX_EXTRA;
        return 0;
}

/* The frame's number, then zeros. */
static void write_nonce(const uint8_t number[sizeof(uint64_t)], uint8_t ret_nonce[COMPANION_NONCE_SIZE]) {
        memset(ret_nonce, 0, COMPANION_NONCE_SIZE);
        memcpy(ret_nonce, number, sizeof(uint64_t));
}

void companion_frame_seal(struct slice text, const uint8_t key[COMPANION_KEY_SIZE], uint64_t number,
                          uint8_t *ret_box) {
        uint8_t nonce[COMPANION_NONCE_SIZE];
        uint64_t big_endian = htobe64(number);

        memcpy(ret_box, &big_endian, sizeof(big_endian));
        write_nonce(ret_box, nonce);
        crypto_secretbox_easy(ret_box + sizeof(big_endian), text.data, text.length, nonce, key);
}

int companion_frame_open(struct slice box, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_text,
                         size_t *ret_length, uint64_t *ret_number) {
        uint8_t nonce[COMPANION_NONCE_SIZE];
        uint64_t big_endian;

        if (box.length < COMPANION_FRAME_EXTRA)
                return -EBADMSG;
        memcpy(&big_endian, box.data, sizeof(big_endian));
        write_nonce(box.data, nonce);
        box = slice_skip(box, sizeof(big_endian));
        if (crypto_secretbox_open_easy(ret_text, box.data, box.length, nonce, key) < 0)
                return -EBADMSG;

        *ret_length = box.length - crypto_secretbox_MACBYTES;
        *ret_number = be64toh(big_endian);
        return 0;
}
