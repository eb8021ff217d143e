/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/*
 * The options of a program, one row each. The rows give the parser of arguments, the names of environment variables, the
 * defaults, --help, and the tables of which the build makes manual pages and completions.
 */
struct option {
        const char *section; /* in the configuration file; NULL: the option is not in the file */
        const char *name;    /* in its section */
        const char *flag;    /* on the command line, with its dashes */
        char letter;         /* of the flag's short form; 0: none */
        bool has_variable;   /* an option without a section has an environment variable, too */
        bool is_secret;      /* messages do not repeat its value */
        bool is_live;        /* a reload changes it; others need a restart */
        uint32_t commands;   /* the commands that take it, a bit each, for a program that has commands */
        const char *
                argument; /* what stands for its value in --help; NULL: a switch; "[VALUE]": may be absent */
        const char *initial;  /* set like any other value; NULL: none */
        const char *expected; /* what a value must be, for messages */
        const char *help;

        /* Writes the value, which is borrowed, to the program's configuration. Returns 0, -EINVAL or -ENOMEM. */
        int (*set)(void *config, const struct option *option, const char *value);
        size_t field; /* offset in the configuration, for the functions below */
};

/* Functions for `set`: they write the row's field, which has the type named here. */
int option_set_text(void *config, const struct option *option,
                    const char *value); /* const char *, not empty */
int option_set_number(void *config, const struct option *option, const char *value); /* uint64_t */
int option_set_size(void *config, const struct option *option, const char *value); /* uint64_t, with units */
int option_set_port(void *config, const struct option *option, const char *value); /* uint16_t */
int option_set_hosts(void *config, const struct option *option,
                     const char *value); /* const char *, as of common/base/endpoint.h */
int option_set_switch(void *config, const struct option *option, const char *value); /* bool, on or off */

struct option_fault {
        char text[512];
};

/* Sets the option; value NULL: it is missing. False: the value is wrong, and *ret_fault says what was expected. */
bool option_apply(const struct option *option, void *config, const char *value,
                  struct option_fault *ret_fault);

#define OPTION_VARIABLE_MAX 64
struct option_variable {
        char name[OPTION_VARIABLE_MAX];
};

/* Its environment variable, STATESTORE_SECTION_NAME or, without a section, STATESTORE_FLAG; "": it has none. */
struct option_variable option_variable(const struct option *option);

/* The arguments of a command line, read one by one. */
struct arguments {
        const struct option *options;
        size_t n_options;
        char *const *at;
        char *const *end;
        bool has_words; /* the program takes arguments that are not options, and "--" before them */
        bool is_past_options;
};

enum argument_kind {
        ARGUMENT_END,
        ARGUMENT_WORD, /* no option; a number with a minus sign is a word */
        ARGUMENT_OPTION,
        ARGUMENT_UNKNOWN, /* no such option */
};

struct argument {
        const char *text;            /* as given */
        struct slice name;           /* what stands before '=' */
        const struct option *option; /* NULL: not an option */
        const char *value;           /* "on": of a switch; NULL: missing, or the option may go without */
        char *const *values;         /* where an option's argument has several words: one for each */
};

/* Reads an argument and moves past it and the values of its option. */
enum argument_kind arguments_next(struct arguments *arguments, struct argument *ret_argument);

/* Whether the text stands for itself, and for no option. */
bool argument_is_word(const char *text);

/* A line of --help: what is explained, then, from the column on, the explanation. It has no end of line. */
void help_append_row(struct buf *help, size_t column, const char *left, const char *right);

/* The lines of --help about an option. */
void help_append_option(struct buf *help, size_t column, const struct option *option);

#define HELP_LINE_LENGTH_MAX 96

/*
 * For the build: prints an option as a line of fields separated by tabs: "option", flag without dashes, letter, argument,
 * variable, default, help, the commands, section, name, what is expected, "live" or "restart".
 */
void option_print(const struct option *option, const char *commands);
