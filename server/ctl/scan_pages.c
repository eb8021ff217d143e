/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/scan_pages.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "protocol/resp3.h"

static bool is_scan(struct slice verb) {
        return slice_equal(verb, SLICE_LITERAL("SCAN"));
}

bool page_is_continued(struct slice verb, struct slice payload) {
        struct resp3_item item;

        return is_scan(verb) && resp3_read(&payload, &item) == 0 && item.type == RESP3_ARRAY &&
               item.number == 3;
}

static bool take_array(struct slice *rest, size_t *ret_n_items) {
        struct resp3_item item;

        if (resp3_read(rest, &item) < 0 || item.type != RESP3_ARRAY || item.number < 0)
                return false;
        *ret_n_items = (size_t)item.number;
        return true;
}

static int compare_keys(const void *a, const void *b) {
        return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Reads the keys of a page that has as many. False: it has not. */
static bool read_keys(struct slice rest, struct slice *keys, size_t n_keys) {
        struct resp3_item item;

        for (size_t i = 0; i < n_keys; i++) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB)
                        return false;
                keys[i] = item.text;
        }
        qsort(keys, n_keys, sizeof(*keys), compare_keys);
        return true;
}

static bool have_same_keys(struct slice a, struct slice b, size_t n_keys) {
        CLEANUP(cleanup_free) struct slice *keys = NULL;

        if (n_keys == 0)
                return true;
        /* a key takes more bytes than none: so this is bounded by what was received */
        if (n_keys > a.length || n_keys > b.length)
                return false;
        keys = calloc(2 * n_keys, sizeof(*keys));
        if (!keys || !read_keys(a, keys, n_keys) || !read_keys(b, keys + n_keys, n_keys))
                return false;
        for (size_t i = 0; i < n_keys; i++)
                if (!slice_equal(keys[i], keys[n_keys + i]))
                        return false;
        return true;
}

bool pages_are_same(struct slice verb, struct slice a, struct slice b) {
        size_t n_parts, n_parts_b, n_keys, n_keys_b;

        if (slice_equal(a, b))
                return true;
        if (!is_scan(verb) || !take_array(&a, &n_parts) || !take_array(&b, &n_parts_b) ||
            n_parts != n_parts_b)
                return false;
        if (n_parts == 2)
                return true;
        return take_array(&a, &n_keys) && take_array(&b, &n_keys_b) && n_keys == n_keys_b &&
               have_same_keys(a, b, n_keys);
}
