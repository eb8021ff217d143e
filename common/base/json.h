/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Append a JSON object on one line to a buffer.
 *
 *     json_begin(&line);
 *     json_add_bytes(&line, "key", key, false);
 *     json_end(&line);
 *
 * Behind another object, as in an array, it begins with a comma.
 */
void json_begin(struct buf *line);
void json_end(struct buf *line); /* also appends a newline */

/*
 * Add bytes: as "name_hex" if hex is true, else as the string "name" if they are UTF-8, else as
 * "name_base64" (RFC 4648). Absent bytes are added as "name":null.
 */
void json_add_bytes(struct buf *line, const char *name, struct slice bytes, bool hex);

void json_add_bool(struct buf *line, const char *name, bool value);

void json_add_uint(struct buf *line, const char *name, uint64_t value);

/* Add a name. The caller appends its value, which is JSON, to the buffer. */
void json_add_name(struct buf *line, const char *name);

/* Append text as a quoted JSON string. text must be UTF-8. */
void json_append_string(struct buf *line, struct slice text);
