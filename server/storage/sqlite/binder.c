/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/binder.h"

#include <limits.h>

void binder_add_number(struct binder *binder, int64_t number) {
        if (binder->code == SQLITE_OK)
                binder->code = sqlite3_bind_int64(binder->statement, ++binder->n_bound, number);
}

static void binder_add(struct binder *binder, struct slice bytes, bool is_text) {
        const void *data = bytes.length ? (const void *)bytes.data : "";

        if (binder->code == SQLITE_OK && bytes.length > INT_MAX)
                binder->code = SQLITE_TOOBIG;
        if (binder->code != SQLITE_OK)
                return;
        binder->n_bound++;
        binder->code = is_text ? sqlite3_bind_text(binder->statement, binder->n_bound, data,
                                                   (int)bytes.length, SQLITE_STATIC)
                               : sqlite3_bind_blob(binder->statement, binder->n_bound, data,
                                                   (int)bytes.length, SQLITE_STATIC);
}

void binder_add_blob(struct binder *binder, struct slice bytes) {
        binder_add(binder, bytes, false);
}

void binder_add_bytes(struct binder *binder, struct slice bytes) {
        binder_add(binder, bytes, bytes_are_text(bytes));
}

static void add_null(struct binder *binder) {
        if (binder->code == SQLITE_OK)
                binder->code = sqlite3_bind_null(binder->statement, ++binder->n_bound);
}

void binder_add_optional(struct binder *binder, struct slice bytes) {
        if (bytes.data)
                binder_add_bytes(binder, bytes);
        else
                add_null(binder);
}

void binder_add_optional_number(struct binder *binder, bool is_present, int64_t number) {
        if (is_present)
                binder_add_number(binder, number);
        else
                add_null(binder);
}

bool bytes_are_text(struct slice bytes) {
        return !(bytes.length && memchr(bytes.data, 0, bytes.length)) && slice_is_utf8(bytes);
}
