/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Keeps the text on its line and a terminal as it is: text that is UTF-8 without control characters stays as
 * it is, in other text every control character, every byte outside ASCII and every backslash is escaped
 * (\n, \\, \x1B). keep_lines: line ends and tabs count as plain.
 */
void append_printable(struct buf *buf, struct slice text, bool keep_lines);
bool is_printable(struct slice text, bool keep_lines);
