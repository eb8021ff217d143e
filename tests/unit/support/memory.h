/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Replaces malloc(), calloc() and realloc() in a program linked with --wrap for each, and fails on request.
 */

/* From the n-th allocation on (the first is 1) fails as many as n_failures says; the others succeed. */
void memory_starve(uint64_t n, uint64_t n_failures);

/* Fails no more. Returns how many have failed since memory_starve(). */
uint64_t memory_feed(void);

/* Between these two nothing is counted and nothing fails, for what the test itself needs. Returns the state before. */
bool memory_pause(void);
void memory_resume(bool before);
