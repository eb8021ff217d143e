/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/keyspace.h"
#include "engine/scan_token.h"
#include "policy/policy.h"

/*
 * List keys in pages (PROTOCOL.md "Listing keys"). Pages follow the order of the keys' hashes. It
 * never changes: the table key is stored with the data. Therefore a key that exists throughout is
 * listed exactly once, even if other keys are set or deleted meanwhile, or the store restarts.
 * Exception: of two keys with the same 64-bit hash, the first may be listed twice; clients cannot
 * find such keys without the table key.
 */

/*
 * Limits of a page, so that a SCAN does not delay other requests: a page takes about 1 ms. The
 * first key of a page may exceed the limit of bytes. A key is not listed if the policy decision for
 * it and its match together take more steps than a page allows. If neither the policy nor the
 * pattern has a character class such as [a-z], this happens only for keys of several hundred bytes,
 * or if many patterns of the policy apply to the client.
 */
#define SCAN_PAGE_KEYS_MAX  2000         /* keys visited */
#define SCAN_PAGE_BYTES_MAX (256 * 1024) /* bytes of keys listed */
#define SCAN_PAGE_STEPS_MAX (100 * 1000) /* matching steps, about 8 ns each */
#define SCAN_KEY_STEPS      25           /* cost of visiting a key, in matching steps */

struct scan_page {
        struct entry **entries; /* one reference each */
        size_t n_entries, capacity;
        bool has_next;
        char token[SCAN_TOKEN_LENGTH]; /* of the next page */
};

/* Accepts NULL, returns NULL. */
struct scan_page *scan_page_free(struct scan_page *page);

/* The parameters of a SCAN. Borrowed for the call. */
struct scan_query {
        struct slice pattern;
        struct slice token; /* absent for the first page */
        const struct token_key *token_key;
        int64_t now_ns;
        const struct policy *policy; /* skip keys that the origin may not read; NULL: skip none */
        struct request_origin origin;
        uint64_t max_payload_bytes; /* of the reply; 0: no limit */
};

/*
 * Make the next page. Skips expired entries and keys that are not UTF-8. Policy decisions count as
 * matching steps, so a policy with many patterns makes pages shorter. A pattern that is not UTF-8
 * matches nothing. Returns 0; -EINVAL for an empty or invalid pattern (base/glob.h) or a token that
 * this store did not make; -EMSGSIZE if the first key of the page
 * does not fit into the reply; or -ENOMEM.
 */
int scan_page_new(struct scan_page **ret_page, const struct keyspace *keyspace,
                  const struct scan_query *query);
