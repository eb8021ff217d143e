/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * The parts of bench_engine. Each prints lines of a name and a value. Call at most one per process.
 */

void engine_rates(uint64_t n_keys, uint64_t n_rounds);
void engine_growth(uint64_t n_keys, uint64_t n_rounds);
void engine_expiry(uint64_t n_keys, uint64_t n_rounds);
void engine_memory(uint64_t n_keys, uint64_t n_rounds);
void engine_policy(uint64_t n_keys, uint64_t n_rounds);
