/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Append a JSON object on one line to a buffer.
 *
 *     json_begin(&line);
 *     json_add_bytes(&line, "key", key, false);
 *     json_end(&line);
 */
void json_begin(struct buf *line);
void json_end(struct buf *line); /* appends a newline, too */

/*
 * Add bytes as "name" with a string if they are UTF-8, otherwise as "name_base64" (RFC 4648). If hex is true, add them as
 * "name_hex" instead. Absent bytes are added as "name":null.
 */
void json_add_bytes(struct buf *line, const char *name, struct slice bytes, bool hex);

void json_add_bool(struct buf *line, const char *name, bool value);

void json_add_uint(struct buf *line, const char *name, uint64_t value);

/* Add a value that is already JSON. */
void json_add_raw(struct buf *line, const char *name, const char *value);

/* Append text as a quoted JSON string. text must be UTF-8. */
void json_append_string(struct buf *line, struct slice text);
