/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * JSON on one line, appended to a buffer.
 *
 *     json_begin(&line);
 *     json_add_bytes(&line, "key", key, false);
 *     json_end(&line);
 */
void json_begin(struct buf *line);
void json_end(struct buf *line); /* with the line's end */

/*
 * "name": the bytes as a string where they are UTF-8; else "name_base64", RFC 4648; "name_hex" where hex is
 * asked for. Absent bytes are "name": null.
 */
void json_add_bytes(struct buf *line, const char *name, struct slice bytes, bool hex);

void json_add_bool(struct buf *line, const char *name, bool value);

void json_add_uint(struct buf *line, const char *name, uint64_t value);

/* For a value that is JSON already. */
void json_add_raw(struct buf *line, const char *name, const char *value);

/* text must be UTF-8. With its quotes. */
void json_append_string(struct buf *line, struct slice text);
