/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/resp3.h"

/* A request's payload from its words. */

#define WORDS_MAX 9

/* The words up to the first that is absent, WORDS_MAX at most. */
static inline void append_words(struct buf *payload, const struct slice *words) {
        size_t n_words = 0;

        while (n_words < WORDS_MAX && words[n_words].data)
                n_words++;
        resp3_append_array(payload, n_words);
        for (size_t i = 0; i < n_words; i++)
                resp3_append_blob(payload, words[i]);
}
