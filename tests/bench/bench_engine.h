/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The parts of bench_engine. Each prints a name and a value a line, and may be run once in a process only. */

void engine_rates(uint64_t n_keys, uint64_t n_rounds);
void engine_growth(uint64_t n_keys, uint64_t n_rounds);
void engine_expiry(uint64_t n_keys, uint64_t n_rounds);
void engine_memory(uint64_t n_keys, uint64_t n_rounds);
void engine_policy(uint64_t n_keys, uint64_t n_rounds);
