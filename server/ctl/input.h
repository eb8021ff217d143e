/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Keys and values as the user gives them: on the command line, in a file, on stdin.
 *
 * Append to *bytes, and say on stderr what is wrong. Return 0; -EINVAL for what is not hex; -EFBIG for more
 * than length_max; -errno of the file; -ENOMEM.
 */

/* What an MQTT packet can hold: no key and no value is longer. */
#define INPUT_LENGTH_MAX 268435455

/* "-": all of stdin; else the text itself, or what it spells in hex digits. */
int input_read_word(const char *word, bool hex, struct buf *bytes);

/* name "-": stdin. */
int input_read_file(const char *name, size_t length_max, struct buf *bytes);

/* True for "-". */
bool input_is_stdin(const char *word);
