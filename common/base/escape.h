/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/* The characters that a terminal or a viewer of logs does not show as themselves, and their escapes. */

/*
 * Return the length of the UTF-8 sequence at the beginning of text; 0 if it is invalid, or not
 * shown as itself by a terminal: a control character, a line separator, a direction mark, or an
 * invisible character. text is not empty.
 */
size_t printable_length(struct slice text);

/*
 * Write the escape sequence that the first character of text has in a JSON string, with a NUL; the empty
 * string if it needs none. Not printable characters have one, too: JSON does not require it. JSON has none
 * for a byte that is not UTF-8: it becomes \\xNN, which JSON decodes to the text \xNN. Returns the length
 * of the character. text is not empty.
 */
#define ESCAPED_SIZE sizeof("\\u0000")
size_t escape_character(struct slice text, char ret_escaped[ESCAPED_SIZE]);
