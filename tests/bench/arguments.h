/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The command line of a benchmark: --name value, or --name for a switch. */

enum argument_type {
        ARGUMENT_NUMBER, /* uint64_t */
        ARGUMENT_TEXT,   /* const char *, borrowed */
        ARGUMENT_TEXTS,  /* struct argument_texts: one text per occurrence */
        ARGUMENT_SWITCH, /* bool */
};

#define ARGUMENT_TEXTS_MAX 8

struct argument_texts {
        const char *texts[ARGUMENT_TEXTS_MAX]; /* borrowed */
        size_t n_texts;
};

struct argument {
        const char *name;
        enum argument_type type;
        void *value; /* written if the option is given; initialize it with the default */
};

/* Parse the arguments. The table ends with a name of NULL. An unknown option ends the program. */
void arguments_read(int n_arguments, char *const *arguments, const struct argument *table);
