/* SPDX-License-Identifier: Apache-2.0 */

/* What tells one request from all others. */

#include <criterion/criterion.h>
#define XXH_STATIC_LINKING_ONLY /* to see where the state keeps its seed */
#include <xxhash.h>

#include "core/dedup.h"
#include "unit/table.h"

#define S       SLICE_LITERAL
#define N_PARTS 3

static const struct {
        const char *name;
        struct slice a[N_PARTS], b[N_PARTS];
        bool is_same;
} digests[] = {
        { "the same", { S("a"), S("b"), S("c") }, { S("a"), S("b"), S("c") }, true },
        { "another part", { S("a"), S("b"), S("c") }, { S("a"), S("b"), S("d") }, false },
        { "another order", { S("a"), S("b"), S("c") }, { S("b"), S("a"), S("c") }, false },
        { "another boundary", { S("ab"), S("c"), S("") }, { S("a"), S("bc"), S("") }, false },
        { "a boundary at an empty part", { S("ab"), S(""), S("c") }, { S("ab"), S("c"), S("") }, false },
        { "a NUL more", { S("a"), S("b"), S("c") }, { S("a\0"), S("b"), S("c") }, false },
        { "a length in the text",
          { S("\1\0\0\0\0\0\0\0a"), S(""), S("") },
          { S(""), S("a"), S("") },
          false },
        { "none at all", { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } }, { S(""), S(""), S("") }, true },
};

Test(digest, depends_on_every_part_and_where_it_ends) {
        for (size_t i = 0; i < N_ROWS(digests); i++) {
                struct digest a = dedup_digest(1, digests[i].a, N_PARTS);
                struct digest b = dedup_digest(1, digests[i].b, N_PARTS);

                cr_expect_eq(memcmp(&a, &b, sizeof(a)) == 0, digests[i].is_same, ROW(digests, i));
        }
}

/* The seed wherever the hash's state may keep it, zeros where a pointer to a secret may be, and else nothing of use. */
static void __attribute__((noinline)) leave_on_the_stack(uint64_t seed) {
        volatile uint64_t words[1024];

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
                size_t offset = (uintptr_t)&words[i] % 64;

                words[i] = offset == offsetof(XXH3_state_t, seed) % 64        ? seed
                           : offset == offsetof(XXH3_state_t, extSecret) % 64 ? 0
                                                                              : i;
        }
}

Test(digest, does_not_depend_on_what_was_on_the_stack) {
        struct slice part =
                S("a part that is longer than any that is hashed without a secret: "
                  "two hundred and forty bytes, of which these are the first one hundred and more, "
                  "and what follows here is only there to make it so long, and longer, and yet longer, "
                  "until it is");
        struct digest a = dedup_digest(1, &part, 1), b;

        leave_on_the_stack(1);
        b = dedup_digest(1, &part, 1);
        cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
}

Test(digest, depends_on_the_seed) {
        struct slice part = S("request");
        struct digest a = dedup_digest(1, &part, 1), b = dedup_digest(2, &part, 1);

        cr_expect_neq(memcmp(&a, &b, sizeof(a)), 0);
}
