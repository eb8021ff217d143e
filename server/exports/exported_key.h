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
struct exported_key {
        struct buf key;
        struct buf value;
        struct buf version;  /* text of an HLC; empty: none */
        struct buf fence;    /* text of an HLC; empty: none */
        int64_t deadline_ms; /* EXPORTED_KEY_NO_DEADLINE: none */
        bool has_details;    /* the line has a deadline or a token, which may be null */
};

#define EXPORTED_KEY_NO_DEADLINE INT64_MAX

void exported_key_deinit(struct exported_key *exported);

/* Append the line, with its newline. It fails (buf_failed()) if a member of *exported has failed. */
void exported_key_write(const struct exported_key *exported, struct buf *line);

/*
 * Parse a line, which overwrites *exported. Returns 0, -ENOMEM, or -EBADMSG with
 * *ret_fault, which describes the fault.
 */
int exported_key_read(struct exported_key *exported, struct slice line, const char **ret_fault);

/* Like exported_key_read(), from a json_t of jansson. */
struct json_t;
int exported_key_read_object(struct exported_key *exported, const struct json_t *object,
                             const char **ret_fault);

/*
 * Return whether the object is meant as an exported key: it has a member for a key and a member for a
 * value, valid or not.
 */
bool exported_key_matches(const struct json_t *object);
