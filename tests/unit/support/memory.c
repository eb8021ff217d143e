/* SPDX-License-Identifier: Apache-2.0 */

#include "unit/support/memory.h"

#include <stddef.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *pointer, size_t size);

static bool is_active;
static uint64_t n_remaining;          /* allocations before the first failure */
static uint64_t n_failures_remaining; /* failures after that */
static uint64_t n_failed;

void memory_starve(uint64_t n, uint64_t n_failures) {
        n_remaining = n - 1;
        n_failures_remaining = n_failures;
        n_failed = 0;
        is_active = true;
}

uint64_t memory_stop_failing(void) {
        is_active = false;
        return n_failed;
}

bool memory_pause(void) {
        bool before = is_active;

        is_active = false;
        return before;
}

void memory_resume(bool before) {
        is_active = before;
}

static bool fails(void) {
        if (!is_active || n_failures_remaining == 0)
                return false;
        if (n_remaining > 0) {
                n_remaining--;
                return false;
        }
        n_failures_remaining--;
        n_failed++;
        return true;
}

void *__wrap_malloc(size_t size) {
        return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
        return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *pointer, size_t size) {
        return fails() ? NULL : __real_realloc(pointer, size);
}
