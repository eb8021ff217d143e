/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdlib.h>

/*
 * CLEANUP(function): the variable is handed, by its address, to function when it goes out of scope.
 *
 *     CLEANUP(cleanup_free) char *text = malloc(n);
 *     ...
 *     *ret_text = take_ptr(&text);      ownership moves on; nothing is freed here
 */
#define CLEANUP(function) __attribute__((cleanup(function)))

/* The pointer's value; the pointer itself becomes NULL. */
#define take_ptr(pointer)                                                                                   \
        ({                                                                                                  \
                __typeof__(*(pointer)) taken_ = *(pointer);                                                 \
                *(pointer) = NULL;                                                                          \
                taken_;                                                                                     \
        })

/* For CLEANUP: frees what a pointer of any type points to. */
static inline void cleanup_free(void *pointer_to_pointer) {
        free(*(void **)pointer_to_pointer);
}
