/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/bench_engine.h"

#include <stddef.h>
#include <string.h>

#include "base/allocator.h"
#include "base/array.h"
#include "bench/arguments.h"
#include "bench/fail.h"

static const struct {
        const char *name;
        void (*run)(uint64_t n_keys, uint64_t n_rounds);
} parts[] = {
        { "rates", engine_rates },   { "growth", engine_growth }, { "expiry", engine_expiry },
        { "memory", engine_memory }, { "policy", engine_policy },
};

int main(int n_arguments, char **arguments) {
        uint64_t n_keys = 1000000, n_rounds = 5;
        const char *part = "rates";

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "part", ARGUMENT_TEXT, &part },
                               { "keys", ARGUMENT_NUMBER, &n_keys },
                               { "rounds", ARGUMENT_NUMBER, &n_rounds },
                               { 0 },
                       });

        allocator_init();
        for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
                if (strcmp(part, parts[i].name) == 0) {
                        parts[i].run(n_keys, n_rounds);
                        return 0;
                }
        fail("--part %s: no such part", part);
}
