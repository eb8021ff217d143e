/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/binder.h"

#include <limits.h>

void binder_add_number(struct binder *binder, int64_t number) {
        if (binder->code == SQLITE_OK)
                binder->code = sqlite3_bind_int64(binder->statement, ++binder->n_bound, number);
}

static void add(struct binder *binder, struct slice bytes, bool is_text) {
        if (binder->code == SQLITE_OK && bytes.length > INT_MAX)
                binder->code = SQLITE_TOOBIG;
        if (binder->code != SQLITE_OK)
                return;
        binder->n_bound++;
        binder->code =
                is_text ? sqlite3_bind_text(binder->statement, binder->n_bound, (const char *)bytes.data,
                                            (int)bytes.length, SQLITE_STATIC)
                        : sqlite3_bind_blob(binder->statement, binder->n_bound, bytes.data,
                                            (int)bytes.length, SQLITE_STATIC);
}

void binder_add_blob(struct binder *binder, struct slice bytes) {
        add(binder, bytes, false);
}

void binder_add_bytes(struct binder *binder, struct slice bytes) {
        add(binder, bytes, bytes_are_text(bytes));
}

bool bytes_are_text(struct slice bytes) {
        return !(bytes.length && memchr(bytes.data, 0, bytes.length)) && slice_is_utf8(bytes);
}
