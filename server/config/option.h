/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/*
 * The options of a program, one row each. The parser, the names of the environment variables, the
 * defaults, --help, the manual pages and the shell completions are all derived from the rows.
 */
struct option {
        const char *section;  /* in the configuration file; NULL: not an option of the file */
        const char *name;     /* in its section */
        const char *flag;     /* on the command line, with dashes */
        char letter;          /* short form of the flag; 0: none */
        bool has_variable;    /* has an environment variable although it has no section */
        bool is_live;         /* applied by a reload; other options need a restart */
        bool is_list;         /* may be given several times; set() adds a value */
        bool is_common;       /* accepted by every command, for a program with commands */
        const char *argument; /* placeholder of the value in --help; NULL: a switch; "[=VALUE]": optional */
        const char *default_value; /* passed to set() before the sources are read; NULL: none */
        const char *expected;      /* description of a valid value, for messages */
        const char *help;

        /*
         * Store the value, which is borrowed, in the configuration of the program. Returns 0,
         * -EINVAL or -ENOMEM.
         */
        int (*set)(void *config, const struct option *option, const char *value);
        size_t field;      /* offset in the configuration, for the functions below */
        uint64_t min, max; /* of a number, size, port or duration in milliseconds; max 0: of its type */
};

/*
 * Functions for `set`: each stores the value at the offset `field`. The comments name the type of
 * that field.
 */
int option_set_text(void *config, const struct option *option,
                    const char *value); /* const char *, not empty */
int option_set_number(void *config, const struct option *option, const char *value); /* uint64_t */
int option_set_size(void *config, const struct option *option, const char *value); /* uint64_t, with units */
int option_set_port(void *config, const struct option *option, const char *value); /* uint16_t */
int option_set_duration(void *config, const struct option *option, const char *value); /* int64_t */
int option_set_hosts(void *config, const struct option *option,
                     const char *value); /* const char *: a list for endpoints_parse() */
int option_set_switch(void *config, const struct option *option, const char *value); /* bool, on or off */

/* enum: `argument` lists the texts of its values in their order, separated by '|'. */
int option_set_choice(void *config, const struct option *option, const char *value);

struct option_fault {
        char text[512];
};

/*
 * Set the option. value NULL: the command line names the option without a value. Returns false if
 * the value is invalid or missing; *ret_fault says what was expected.
 */
bool option_apply(const struct option *option, void *config, const char *value,
                  struct option_fault *ret_fault);

/* Whether two values are the same. NULL: not set. */
bool option_same_value(const char *a, const char *b);

#define OPTION_VARIABLE_MAX 64
struct option_variable {
        char name[OPTION_VARIABLE_MAX];
};

/*
 * Return the name of the option's environment variable: STATESTORE_SECTION_NAME or, without a
 * section, STATESTORE_FLAG; "" if the option has no variable.
 */
struct option_variable option_variable(const struct option *option);

/* The arguments of a command line, parsed one by one. */
struct arguments {
        const struct option *options;
        size_t n_options;
        char *const *at;
        char *const *end;
        bool has_words; /* arguments that are not options are allowed; "--" may precede them */
        bool is_past_options;
};

enum argument_kind {
        ARGUMENT_END,
        ARGUMENT_WORD, /* not an option; a negative number is a word */
        ARGUMENT_OPTION,
        ARGUMENT_UNKNOWN, /* looks like an option, but is not one of the program */
};

struct argument {
        const char *text;            /* as given */
        struct slice name;           /* the part before '=' */
        const struct option *option; /* NULL: not an option */
        const char *value;           /* "on" for a switch; NULL: no value given */
        char *const *values;         /* the arguments after this one, for an option with several values */
};

/* Parse the next argument, with the values of its option. */
enum argument_kind arguments_next(struct arguments *arguments, struct argument *ret_argument);

/*
 * Append a row of --help: `left` at the start of the line, `right` at the given column. Wrap `right`
 * between its words.
 */
void help_append_row(struct buf *help, size_t column, const char *left, const char *right);

/* Append the row of --help for an option. */
void help_append_option(struct buf *help, size_t column, const struct option *option);
