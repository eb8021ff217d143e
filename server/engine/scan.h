/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/scan_token.h"
#include "engine/store.h"
#include "policy/policy.h"

/*
 * Listing keys a page at a time (PROTOCOL.md "Listing keys"). Pages follow the order of the keys' hashes,
 * which never changes: a
 * key that is there throughout is listed exactly once, whatever else is set, deleted or grows meanwhile. (Of two keys with
 * one hash of 64 bits, which nobody without the table key can find, the first may be listed twice.)
 */

/*
 * Limits of a page, so that one SCAN cannot stall other requests: a page takes about 1 ms. Only a page's first key may go
 * over the bytes: its SET fitted into a packet, so does a page of it alone. A key that takes more steps than a page has is
 * not listed: it is at least 600 bytes long, and the pattern was made for it.
 */
#define SCAN_PAGE_KEYS_MAX  2000         /* looked at */
#define SCAN_PAGE_BYTES_MAX (256 * 1024) /* of keys listed */
#define SCAN_PAGE_STEPS_MAX (100 * 1000) /* of matching, at some 8 ns each */
#define SCAN_KEY_STEPS      25           /* finding one key costs as much as so many steps */

struct scan_page {
        struct entry **entries; /* one reference each */
        size_t n_entries, capacity;
        bool has_next;
        char token[SCAN_TOKEN_LENGTH]; /* of the next page */
};

/* Accepts NULL, returns NULL. */
struct scan_page *scan_page_free(struct scan_page *page);

/* What is asked. Borrowed for the call. */
struct scan_query {
        struct slice pattern;
        struct slice token; /* absent for the first page */
        const struct token_key *token_key;
        int64_t now_ns;
        const struct policy *policy; /* leaves out what the asker may not read; NULL: nothing */
        struct request_origin asker;
        uint64_t max_payload_bytes; /* of the reply; 0: no limit */
};

/*
 * Expired entries are left out, and keys that are not UTF-8. Deciding counts among the steps of matching: a page with a
 * policy of many patterns ends earlier, and so does one whose reply could take no more. Returns 0, -EINVAL for a token
 * that we did not make or an empty pattern, -EMSGSIZE where not even the page's first key fits into the reply, or -ENOMEM.
 */
int scan_page_new(struct scan_page **ret_page, const struct store *store, const struct scan_query *query);
