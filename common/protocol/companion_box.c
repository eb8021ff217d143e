/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/companion_box.h"

#include <errno.h>

#include "base/random.h"

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

void companion_box_seal(struct slice text, const uint8_t key[COMPANION_KEY_SIZE], uint8_t *ret_box) {
        random_fill(ret_box, crypto_secretbox_NONCEBYTES);
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
