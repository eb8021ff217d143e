/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A request has exactly one encoding. So a decoded payload must encode to the same payload, and an
 * encoded request must be accepted by the decoder.
 */

#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "protocol/resp3.h"

#define N_WORDS_MAX 8

static void append_request(struct buf *payload, const struct slice *words, size_t n_words) {
        resp3_append_array(payload, n_words);
        for (size_t i = 0; i < n_words; i++)
                resp3_append_blob(payload, words[i]);
}

static bool is_within(struct slice part, struct slice whole) {
        return part.data >= whole.data && part.data + part.length <= whole.data + whole.length;
}

static void read_and_write(struct slice payload) {
        CLEANUP(buf_deinit) struct buf written = { 0 };
        struct slice words[N_WORDS_MAX];
        size_t n_words = 0;

        if (resp3_read_request(payload, words, N_WORDS_MAX, &n_words) < 0)
                return;

        ASSERT(n_words > 0);
        for (size_t i = 0; i < n_words && i < N_WORDS_MAX; i++)
                ASSERT(is_within(words[i], payload));
        if (n_words > N_WORDS_MAX)
                return;
        append_request(&written, words, n_words);
        ASSERT(slice_equal(buf_slice(&written), payload));
}

static void write_and_read(struct slice input) {
        CLEANUP(buf_deinit) struct buf written = { 0 };
        struct slice words[N_WORDS_MAX], read[N_WORDS_MAX];
        size_t n_words = 1 + input_below(&input, N_WORDS_MAX), n_read, n_kept;
        CLEANUP(text_free) struct slice payload = { 0 };

        for (size_t i = 0; i < n_words; i++)
                words[i] = input_text(&input);
        append_request(&written, words, n_words);

        payload = text_copy(buf_slice(&written));
        /* if possible, leave no room for the last word: it is counted but not stored */
        n_kept = n_words > 2 ? n_words - 1 : n_words;
        ASSERT(resp3_read_request(payload, read, n_kept, &n_read) == 0);
        ASSERT(n_read == n_words);
        for (size_t i = 0; i < n_kept; i++)
                ASSERT(slice_equal(read[i], words[i]));

        /* the whole payload must be consumed */
        payload.length--;
        ASSERT(resp3_read_request(payload, read, n_kept, &n_read) < 0);
}

/* Items of all types in sequence, as a client decodes replies. */
static void read_items(struct slice payload) {
        struct resp3_item item;
        size_t before;

        do {
                before = payload.length;
                if (resp3_read(&payload, &item) < 0) {
                        ASSERT(payload.length == before);
                        return;
                }
                ASSERT(payload.length < before);
                if (item.type == RESP3_ARRAY || item.type == RESP3_BLOB)
                        ASSERT(item.number >= 0);
                if (item.type == RESP3_BLOB)
                        ASSERT((uint64_t)item.number == item.text.length);
        } while (payload.length > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = { data, size };

        read_and_write(input);
        read_items(input);
        write_and_read(input);
        return 0;
}
