/* SPDX-License-Identifier: Apache-2.0 */

#include "config/reading.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "config/config.h"
#include "config/option.h"

#define HELP_COLUMN 32

/*
 * Read the four arguments of --explain CLIENT USER VERB KEY. The form --explain=CLIENT is a fault.
 */
static void take_explain(struct config_reading *reading, const struct argument *argument) {
        if (argument->value && argument->value == *argument->values)
                reading->config->explain = (const char *const *)argument->values;
        else
                config_report(reading, "--explain", "CLIENT USER VERB KEY was expected");
}

static bool is_explain(const struct option *option) {
        return strcmp(option->flag, "--explain") == 0;
}

/*
 * Report an argument that is not an option. Skips the argument after it if that is probably its
 * value.
 */
static void report_unknown(struct config_reading *reading, struct arguments *arguments, const char *text) {
        config_report(reading, LOG_STRING(text),
                      strncmp(text, "--", 2) == 0 ? "no such option" : "not an option");
        if (text[0] == '-' && !strchr(text, '=') && arguments->at < arguments->end && **arguments->at != '-')
                arguments->at++;
}

static struct arguments arguments_of(int n_arguments, char *const *argv) {
        return (struct arguments){
                .options = config_options,
                .n_options = n_config_options,
                .at = argv + (n_arguments > 0), /* skip the program name */
                .end = argv + n_arguments,
        };
}

void config_read_arguments_first(struct config_reading *reading, int n_arguments, char *const *argv) {
        struct arguments arguments = arguments_of(n_arguments, argv);
        struct argument argument;
        struct option_fault fault;
        enum argument_kind kind;

        while ((kind = arguments_next(&arguments, &argument)) != ARGUMENT_END)
                if (kind == ARGUMENT_OPTION && !argument.option->section)
                        option_apply(argument.option, reading->config, argument.value, &fault);
}

void config_read_arguments(struct config_reading *reading, int n_arguments, char *const *argv) {
        struct arguments arguments = arguments_of(n_arguments, argv);
        struct argument argument;
        enum argument_kind kind;

        while ((kind = arguments_next(&arguments, &argument)) != ARGUMENT_END) {
                if (kind != ARGUMENT_OPTION)
                        report_unknown(reading, &arguments, argument.text);
                else if (is_explain(argument.option))
                        take_explain(reading, &argument);
                else
                        config_set(reading, argument.option, argument.value, LOG_STRING(argument.text));
        }
}

void config_print_help(void) {
        CLEANUP(buf_deinit) struct buf help = { 0 };

        for (size_t i = 0; i < n_config_options; i++)
                help_append_option(&help, HELP_COLUMN, &config_options[i]);
        printf("Usage: statestored [OPTION]...\n"
               "A state store beside an MQTT 5 broker, for clients of the Azure IoT Operations state store\n"
               "protocol. It stores keys, values and locks, and notifies clients of changes.\n"
               "\n"
               "%.*s"
               "\n"
               "Precedence: command line, environment, file, default (in parentheses).\n"
               "For the names in the file and the environment see statestored.conf(5).\n"
               "\n"
               "statestored runs until SIGINT or SIGTERM, then replies to the received requests and\n"
               "exits with 0.\n"
               "Exit status 1: the broker refused the connection at start, or the stored data cannot be\n"
               "used.\n"
               "Exit status 2: an option is wrong.\n",
               (int)help.length, (const char *)help.data);
}
