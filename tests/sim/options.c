/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "sim/check.h"

static _Noreturn void print_usage(const char *program) {
        fprintf(stderr,
                "usage: %s [--seed N] [--runs M] [--trace] [--plant FAULT] | --planted\n"
                "\n"
                "Simulates M runs with the seeds N, N + 1 ..., and prints the first seed that violates a "
                "guarantee.\n",
                program);
        exit(2);
}

struct simulation_options simulation_options_read(int n_arguments, char *const *arguments,
                                                  const char *const *fault_names, size_t n_fault_names) {
        struct simulation_options options = { .seed = 1, .n_runs = 1000 };

        for (int i = 1; i < n_arguments; i++) {
                const char *option = arguments[i], *value;
                bool is_valid = false;

                if (strcmp(option, "--planted") == 0) {
                        for (size_t fault = 1; fault < n_fault_names; fault++)
                                printf("%s\n", fault_names[fault]);
                        exit(0);
                }
                if (strcmp(option, "--trace") == 0) {
                        check_is_traced = true;
                        continue;
                }
                value = ++i < n_arguments ? arguments[i] : "";
                if (strcmp(option, "--seed") == 0)
                        is_valid = parse_uint64(slice_from_string(value), &options.seed) == 0;
                else if (strcmp(option, "--runs") == 0)
                        is_valid = parse_uint64(slice_from_string(value), &options.n_runs) == 0;
                else if (strcmp(option, "--plant") == 0)
                        for (size_t fault = 1; fault < n_fault_names && !is_valid; fault++) {
                                options.fault = fault;
                                is_valid = strcmp(fault_names[fault], value) == 0;
                        }
                if (!is_valid)
                        print_usage(arguments[0]);
        }
        return options;
}
