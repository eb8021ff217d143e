/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/allocations.h"

#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *pointer, size_t size);

uint64_t n_allocations;

void *__wrap_malloc(size_t size) {
        n_allocations++;
        return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
        n_allocations++;
        return __real_calloc(n, size);
}

void *__wrap_realloc(void *pointer, size_t size) {
        n_allocations++;
        return __real_realloc(pointer, size);
}
