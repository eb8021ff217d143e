/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/* What a storage holds, as text, a line for each row: to be compared, and shown where it differs. */

struct line {
        char *name; /* of the row: what replaces it has the same */
        char *text;
};

/* Lines, one a name, in the order of names. */
struct content {
        struct line *lines;
        size_t n_lines, capacity;
};

/* An entry, but for its version. */
struct setting {
        struct slice key, value;
        int64_t deadline_ns; /* 0: never */
        struct hlc fence;    /* node absent: none */
        bool is_transient;   /* not persistent */
};

bool content_has_entry(const struct content *content, struct slice key);
void content_remove_entry(struct content *content, struct slice key);
void content_put_entry(struct content *content, const struct setting *setting, struct version version);

/* user: NULL where it is registered no more. */
void content_put_registration(struct content *content, struct slice client, struct slice key,
                              const struct slice *user, uint64_t connection);

void content_put_answer(struct content *content, uint32_t slot, const struct digest *digest,
                        struct remembered_answer answer, int64_t deadline_ns);

bool content_equal(const struct content *a, const struct content *b);
void content_copy(struct content *to, const struct content *from);
void content_reset(struct content *content);
void content_deinit(struct content *content);
