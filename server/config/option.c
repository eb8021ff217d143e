/* SPDX-License-Identifier: Apache-2.0 */

#include "config/option.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "base/endpoint.h"
#include "base/log.h"
#include "base/parse.h"

/* 1. Values */

static void *option_field(void *config, const struct option *option) {
        return (char *)config + option->field;
}

static bool is_in_range(const struct option *option, uint64_t number) {
        return number >= option->min && (option->max == 0 || number <= option->max);
}

int option_set_text(void *config, const struct option *option, const char *value) {
        if (!*value)
                return -EINVAL;
        *(const char **)option_field(config, option) = value;
        return 0;
}

int option_set_number(void *config, const struct option *option, const char *value) {
        uint64_t number;

        if (parse_uint64(slice_from_string(value), &number) < 0 || !is_in_range(option, number))
                return -EINVAL;
        *(uint64_t *)option_field(config, option) = number;
        return 0;
}

int option_set_size(void *config, const struct option *option, const char *value) {
        uint64_t size;

        if (parse_size(slice_from_string(value), &size) < 0 || !is_in_range(option, size))
                return -EINVAL;
        *(uint64_t *)option_field(config, option) = size;
        return 0;
}

int option_set_port(void *config, const struct option *option, const char *value) {
        uint64_t port;

        if (parse_uint64(slice_from_string(value), &port) < 0 || port > UINT16_MAX ||
            !is_in_range(option, port))
                return -EINVAL;
        *(uint16_t *)option_field(config, option) = (uint16_t)port;
        return 0;
}

int option_set_hosts(void *config, const struct option *option, const char *value) {
        int r = endpoints_check(slice_from_string(value));

        if (r == 0)
                *(const char **)option_field(config, option) = value;
        return r;
}

int option_set_switch(void *config, const struct option *option, const char *value) {
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
                return -EINVAL;
        *(bool *)option_field(config, option) = strcmp(value, "on") == 0;
        return 0;
}

int option_set_duration(void *config, const struct option *option, const char *value) {
        int64_t duration_ms;

        if (parse_duration(slice_from_string(value), &duration_ms) < 0 ||
            !is_in_range(option, (uint64_t)duration_ms))
                return -EINVAL;
        *(int64_t *)option_field(config, option) = duration_ms;
        return 0;
}

int option_set_choice(void *config, const struct option *option, const char *value) {
        struct slice rest = slice_from_string(option->argument);

        for (unsigned int i = 0; rest.data; i++)
                if (slice_equal_string(slice_split(rest, '|', &rest), value)) {
                        *(unsigned int *)option_field(config, option) = i;
                        return 0;
                }
        return -EINVAL;
}

static bool may_lack_value(const struct option *option) {
        return option->argument &&
               slice_starts_with(slice_from_string(option->argument), SLICE_LITERAL("[="));
}

bool option_apply(const struct option *option, void *config, const char *value,
                  struct option_fault *ret_fault) {
        if ((value || may_lack_value(option)) && option->set(config, option, value) == 0)
                return true;

        snprintf(ret_fault->text, sizeof(ret_fault->text), "%s was expected%s%s%s", option->expected,
                 value ? ", not \"" : "", value ? LOG_STRING(value) : "", value ? "\"" : "");
        return false;
}

bool option_same_value(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

struct option_variable option_variable(const struct option *option) {
        struct option_variable variable = { "" };

        if (option->section)
                snprintf(variable.name, sizeof(variable.name), "STATESTORE_%s_%s", option->section,
                         option->name);
        else if (option->has_variable)
                snprintf(variable.name, sizeof(variable.name), "STATESTORE_%s", option->flag + 2);
        for (char *at = variable.name; *at; at++)
                *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
        return variable;
}

/* 2. Arguments */

/* A '-' and a digit begin a word, such as a value -5: no option begins with a digit. */
static bool is_word(const char *text) {
        return text[0] != '-' || text[1] == '\0' || (text[1] >= '0' && text[1] <= '9');
}

static const struct option *find_option(const struct arguments *arguments, struct slice name) {
        for (size_t i = 0; i < arguments->n_options; i++) {
                const struct option *option = &arguments->options[i];
                const uint8_t letter[] = { '-', (uint8_t)option->letter };

                if (slice_equal(name, slice_from_string(option->flag)) ||
                    (option->letter && slice_equal(name, (struct slice){ letter, 2 })))
                        return option;
        }
        return NULL;
}

/*
 * Skip the values after the option and return the first. Return NULL if a value is missing, or if
 * the value is optional: such a value must follow a '='.
 */
static const char *take_option_values(struct arguments *arguments, const struct option *option) {
        char *const *first = arguments->at;

        if (!option->argument)
                return "on";
        if (may_lack_value(option))
                return NULL;
        for (const char *word = option->argument; word; word = strchr(word + 1, ' ')) {
                if (arguments->at == arguments->end)
                        return NULL;
                arguments->at++;
        }
        return *first;
}

enum argument_kind arguments_next(struct arguments *arguments, struct argument *ret_argument) {
        const char *text;
        struct slice value;

        if (arguments->at == arguments->end)
                return ARGUMENT_END;
        text = *arguments->at++;
        if (arguments->has_words && !arguments->is_past_options && strcmp(text, "--") == 0) {
                arguments->is_past_options = true;
                return arguments_next(arguments, ret_argument);
        }

        *ret_argument = (struct argument){ .text = text, .values = arguments->at };
        if (arguments->is_past_options || is_word(text))
                return ARGUMENT_WORD;
        ret_argument->name = slice_split(slice_from_string(text), '=', &value);
        ret_argument->option = find_option(arguments, ret_argument->name);
        if (!ret_argument->option)
                return ARGUMENT_UNKNOWN;
        ret_argument->value =
                value.data ? (const char *)value.data : take_option_values(arguments, ret_argument->option);
        return ARGUMENT_OPTION;
}

/* 3. --help */

#define HELP_LINE_LENGTH_MAX 96

void help_append_row(struct buf *help, size_t column, const char *left, const char *right) {
        struct slice rest = slice_from_string(right);
        size_t length = strlen(left) < column ? column + 1 : HELP_LINE_LENGTH_MAX;

        buf_append_format(help, "  %-*s", (int)column - 1, left);
        while (rest.data) {
                struct slice word = slice_split(rest, ' ', &rest);

                length += 1 + word.length;
                if (length > HELP_LINE_LENGTH_MAX) {
                        buf_append_format(help, "\n%*s", (int)column + 1, "");
                        length = column + 2 + word.length;
                }
                buf_append_string(help, " ");
                buf_append_slice(help, word);
        }
        buf_append_string(help, "\n");
}

/*
 * The environment variable follows the help if the option has no section. With a section, the
 * variable follows from the section and the name.
 */
void help_append_option(struct buf *help, size_t column, const struct option *option) {
        char left[64] = "", right[512];

        if (option->letter)
                snprintf(left, sizeof(left), "-%c, ", option->letter);
        snprintf(left + strlen(left), sizeof(left) - strlen(left), "%s%s%s", option->flag,
                 option->argument && !may_lack_value(option) ? " " : "",
                 option->argument ? option->argument : "");

        snprintf(right, sizeof(right), "%s", option->help);
        if (option->has_variable)
                snprintf(right + strlen(right), sizeof(right) - strlen(right), " [%s]",
                         option_variable(option).name);
        if (option->default_value && option->argument)
                snprintf(right + strlen(right), sizeof(right) - strlen(right), " (%s)",
                         option->default_value);
        help_append_row(help, column, left, right);
}
