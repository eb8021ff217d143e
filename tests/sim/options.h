/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The command line of a simulation: [--seed N] [--runs M] [--trace] [--plant FAULT] | --planted */
struct simulation_options {
        uint64_t seed, n_runs;
        size_t fault; /* its index in the names; 0: none is planted */
};

/*
 * Read the options. fault_names: the faults that can be planted, from index 1 on. --trace sets
 * check_is_traced. --planted prints the names and exits with 0; a wrong option prints the usage and
 * exits with 2.
 */
struct simulation_options simulation_options_read(int n_arguments, char *const *arguments,
                                                  const char *const *fault_names, size_t n_fault_names);
