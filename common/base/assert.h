/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ASSERT(condition): an invariant that only a bug in this project can violate. Enabled in every
 * build. On failure, prints the condition, the file and the line to stderr, and aborts. Do not use
 * it for errors that a peer, a file, or lack of memory can cause. The condition must have no side
 * effects.
 */
#define ASSERT(condition) ((condition) ? (void)0 : assert_failed(#condition, __FILE__, __LINE__))

__attribute__((noreturn, cold)) void assert_failed(const char *condition, const char *file, int line);
