/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "base/bytes.h"

/*
 * Binds values to the parameters of a statement in their order. Bytes are borrowed until the
 * statement is bound again.
 *
 *     struct binder binder = { .statement = statement };
 *
 *     binder_add_number(&binder, 7);
 *     binder_add_bytes(&binder, key);
 *     return binder.code;
 */
struct binder {
        sqlite3_stmt *statement;
        int n_bound;
        int code; /* SQLITE_OK, or the first error: later values are not bound then */
};

void binder_add_number(struct binder *binder, int64_t number);
void binder_add_blob(struct binder *binder, struct slice bytes);

/* As TEXT if the bytes are UTF-8 without NUL, else as BLOB; as NULL if they are absent. */
void binder_add_bytes(struct binder *binder, struct slice bytes);

/* Return whether binder_add_bytes() binds these bytes as TEXT. */
bool bytes_are_text(struct slice bytes);
