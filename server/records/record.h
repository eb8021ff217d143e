/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * A key with all that belongs to it, as a line of JSON: what export writes and import reads.
 *
 *     {"key":"lock","value":"me","version":"001795219608274:00000:StateStore","deadline":1795219618274,"token":"..."}
 *
 * Keys and values that are no text stand as "key_base64" and "value_base64". version, deadline (wall clock, milliseconds
 * since the Unix epoch) and token are left out where there are none, or they are not known.
 */
struct record {
        struct buf key;
        struct buf value;
        struct buf version; /* text of an HLC; empty: none, as token */
        struct buf token;
        int64_t deadline_ms; /* RECORD_NO_DEADLINE: none */
};

#define RECORD_NO_DEADLINE INT64_MAX

void record_deinit(struct record *record);

/* Appends the line, with its end. */
void record_write(const struct record *record, struct buf *line);

/*
 * Reads a line into the record, in the place of what it held. Returns 0, -ENOMEM, or -EBADMSG with *ret_fault, which
 * says what is wrong with it.
 */
int record_read(struct record *record, struct slice line, const char **ret_fault);

/* The same of jansson's json_t. */
struct json_t;
int record_read_object(struct record *record, const struct json_t *object, const char **ret_fault);

/* Whether it has a key and a value, be they as they should be or not. */
bool record_is_one(const struct json_t *object);
