/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdlib.h>

/*
 * CLEANUP(function): call function with the variable's address when the variable goes out of scope.
 *
 *     CLEANUP(cleanup_free) char *text = malloc(n);
 *     ...
 *     *ret_text = take_ptr(&text);      the caller owns the text; nothing is freed here
 */
#define CLEANUP(function) __attribute__((cleanup(function)))

/* Define `name` for CLEANUP: it calls function(variable), unless the variable is NULL. */
#define CLEANUP_FUNCTION(name, type, function)                                                              \
        static inline void name(type *variable) {                                                           \
                if (*variable)                                                                              \
                        function(*variable);                                                                \
        }

/* Return the pointer's value and set the pointer to NULL, to pass ownership on. */
#define take_ptr(pointer)                                                                                   \
        ({                                                                                                  \
                __typeof__(*(pointer)) taken_ = *(pointer);                                                 \
                *(pointer) = NULL;                                                                          \
                taken_;                                                                                     \
        })

/* For CLEANUP: free the memory that a pointer variable of any type points to. */
static inline void cleanup_free(void *pointer_to_pointer) {
        free(*(void **)pointer_to_pointer);
}
