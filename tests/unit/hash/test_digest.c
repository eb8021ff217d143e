/* SPDX-License-Identifier: Apache-2.0 */

/* Keyed hashes. */

#include <criterion/criterion.h>

#include "hash/hash.h"
#include "unit/support/secrets.h"
#include "unit/support/table.h"

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

static struct digest digest_of(const struct slice parts[N_PARTS]) {
        struct digest digests_of_parts[N_PARTS];

        return hash_parts(HASH_KEY(1), parts, N_PARTS, digests_of_parts);
}

Test(digest, depends_on_every_part_and_where_it_ends) {
        for (size_t i = 0; i < N_ROWS(digests); i++) {
                struct digest a = digest_of(digests[i].a);
                struct digest b = digest_of(digests[i].b);

                cr_expect_eq(memcmp(&a, &b, sizeof(a)) == 0, digests[i].is_same, ROW(digests, i));
        }
}

Test(digest, depends_on_the_key) {
        struct slice part = S("request");
        struct digest part_a, part_b;
        struct digest a = hash_parts(HASH_KEY(1), &part, 1, &part_a);
        struct digest b = hash_parts(HASH_KEY(2), &part, 1, &part_b);

        cr_expect_neq(memcmp(&a, &b, sizeof(a)), 0);
        cr_expect_neq(memcmp(&part_a, &part_b, sizeof(part_a)), 0);
}

Test(digest, of_a_part_depends_on_that_part_alone) {
        struct slice parts[] = { S("client"), S("request") }, other_parts[] = { S("client"), S("other") };
        struct digest digests_of_parts[2], digests_of_others[2];

        hash_parts(HASH_KEY(1), parts, 2, digests_of_parts);
        hash_parts(HASH_KEY(1), other_parts, 2, digests_of_others);
        cr_expect_eq(memcmp(&digests_of_parts[0], &digests_of_others[0], sizeof(struct digest)), 0);
        cr_expect_neq(memcmp(&digests_of_parts[1], &digests_of_others[1], sizeof(struct digest)), 0);
}

/* From the reference implementation: the key is 00 01 ... 0f, the input 00 01 ... 0e. */
Test(hash, is_siphash_2_4) {
        struct hash_key key;
        uint8_t input[15];

        for (uint8_t i = 0; i < sizeof(key); i++)
                key.bytes[i] = i;
        for (uint8_t i = 0; i < sizeof(input); i++)
                input[i] = i;
        cr_expect_eq(hash_bytes(&key, (struct slice){ input, sizeof(input) }), UINT64_C(0xa129ca6149be45e5));
}
