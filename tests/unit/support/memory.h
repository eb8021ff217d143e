/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Replaces malloc(), calloc() and realloc() in a program linked with --wrap for each, and fails on
 * request.
 */

/*
 * Let n_failures allocations fail, beginning with the n-th from now (1: the next one). All others
 * succeed.
 */
void memory_starve(uint64_t n, uint64_t n_failures);

/* Let all allocations succeed again. Returns how many have failed since memory_starve(). */
uint64_t memory_stop_failing(void);

/*
 * Between these two calls no allocation is counted or fails: for the allocations of the test
 * itself. Returns the state before.
 */
bool memory_pause(void);
void memory_resume(bool before);
