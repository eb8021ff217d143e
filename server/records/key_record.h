/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * A key, its value and its metadata, as a line of JSON. statestorectl export writes such lines, and
 * import reads them.
 *
 *     {"key":"lock","value":"me","version":"...","deadline":1795219618274,"token":"..."}
 *
 * If a key or a value is not valid UTF-8, its member is "key_base64" or "value_base64". The
 * deadline is wall clock time in milliseconds since the Unix epoch. The version, the deadline and
 * the fencing token are optional. A deadline or token that is null says that the key has none.
 */
struct key_record {
        struct buf key;
        struct buf value;
        struct buf version;  /* text of an HLC; empty: none */
        struct buf fence;    /* text of an HLC; empty: none */
        int64_t deadline_ms; /* KEY_RECORD_NO_DEADLINE: none */
        bool has_details;    /* the line has a deadline or a token, which may be null */
};

#define KEY_RECORD_NO_DEADLINE INT64_MAX

void key_record_deinit(struct key_record *record);

/* Append the line, with its newline. */
void key_record_write(const struct key_record *record, struct buf *line);

/*
 * Parse a line into the record; overwrites the record. Returns 0, -ENOMEM, or -EBADMSG with
 * *ret_fault, which describes the fault.
 */
int key_record_read(struct key_record *record, struct slice line, const char **ret_fault);

/* Like key_record_read(), from a json_t of jansson. */
struct json_t;
int key_record_read_object(struct key_record *record, const struct json_t *object, const char **ret_fault);

/*
 * Return whether the object is meant as a record: it has a member for a key and a member for a
 * value, valid or not.
 */
bool key_record_matches(const struct json_t *object);
