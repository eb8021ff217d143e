/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Prints the program's name and the text to stderr and ends with 1: a benchmark that goes wrong has no figure. */
__attribute__((noreturn, cold, format(printf, 1, 2))) void fail(const char *format, ...);
