/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Print the program's name and the text to stderr, and exit with status 1. */
__attribute__((noreturn, cold, format(printf, 1, 2))) void fail(const char *format, ...);
