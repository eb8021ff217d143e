/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Counts malloc(), calloc() and realloc() in a program linked with --wrap of each. */
extern uint64_t n_allocations;
