/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * A key, its value and its metadata, as a line of JSON. statestorectl export writes such lines, and import
 * reads them.
 *
 *     {"key":"lock","value":"me","version":"001795219608274:00000:StateStore","deadline":1795219618274,"token":"..."}
 *
 * Keys and values that are not valid UTF-8 are members "key_base64" and "value_base64". The members version,
 * deadline (wall clock, milliseconds since the Unix epoch) and token are left out if the key has none, or if
 * they are unknown.
 */
struct record {
        struct buf key;
        struct buf value;
        struct buf version; /* text of an HLC; empty: none. token likewise */
        struct buf token;
        int64_t deadline_ms; /* RECORD_NO_DEADLINE: none */
};

#define RECORD_NO_DEADLINE INT64_MAX

void record_deinit(struct record *record);

/* Append the line, with its newline. */
void record_write(const struct record *record, struct buf *line);

/*
 * Parse a line into the record; overwrites the record. Returns 0, -ENOMEM, or -EBADMSG with *ret_fault,
 * which describes the fault.
 */
int record_read(struct record *record, struct slice line, const char **ret_fault);

/* Likewise, from a json_t of jansson. */
struct json_t;
int record_read_object(struct record *record, const struct json_t *object, const char **ret_fault);

/* Whether the object has a key and a value, valid or not. */
bool record_is_one(const struct json_t *object);
