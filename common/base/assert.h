/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ASSERT(condition): states what only a bug of ours can break. It is on in every build, prints the condition
 * and its place to stderr and aborts. Never for what a peer, a file or a full memory can cause, and never
 * with side effects.
 */
#define ASSERT(condition) ((condition) ? (void)0 : assert_failed(#condition, __FILE__, __LINE__))

__attribute__((noreturn, cold)) void assert_failed(const char *condition, const char *file, int line);
