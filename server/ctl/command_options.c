/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Set the defaults, then read the environment, then the command line; each overrides the one
 * before. Options are checked afterwards, because only then is the command known.
 */

#include "ctl/command_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/random.h"
#include "config/config.h"
#include "ctl/input.h"
#include "ctl/output.h"

#define WORD_ADVICE "; write -- before a word that begins with -"

struct parser {
        struct command_options *options;
        struct arguments arguments;
        uint64_t seen; /* bit N: the command line has the option of row N of the table */
};

/* Print an error. argument: the argument that is wrong. */
static enum options_result usage_error(const struct command_options *options, const char *argument,
                                       const char *what) {
        const char *command = options->command ? options->command->name : "";

        complain("%s: %s; see statestorectl %s%s--help", LOG_STRING(argument), what, command,
                 *command ? " " : "");
        return OPTIONS_INVALID;
}

/* Print an error about a command or an option that does not exist. kind: "command" or "option". */
static enum options_result complain_of_name(const struct command_options *options, const char *kind,
                                            const char *name) {
        bool is_letter = name[0] == '-' && name[1] && name[1] != '-';
        char text[96];

        snprintf(text, sizeof(text), "no such %s%s", kind, is_letter ? WORD_ADVICE : "");
        return usage_error(options, name, text);
}

static enum options_result set_option(struct command_options *options, const struct option *option,
                                      const char *name, const char *value) {
        struct option_fault fault;

        return option_apply(option, options, value, &fault) ? OPTIONS_RUN
                                                            : usage_error(options, name, fault.text);
}

static enum options_result read_environment(struct command_options *options) {
        enum options_result result = OPTIONS_RUN;

        for (size_t i = 0; i < n_ctl_options && result == OPTIONS_RUN; i++) {
                struct option_variable variable = option_variable(&ctl_options[i]);
                const char *value = *variable.name ? getenv(variable.name) : NULL;

                if (value && *value)
                        result = set_option(options, &ctl_options[i], variable.name, value);
        }
        return result;
}

/* The words after those of the command are a program, its arguments and its options. */
static bool begins_program(const struct command_options *options) {
        return options->command && options->command->needs & NEEDS_PROGRAM &&
               options->n_words == options->command->n_words_max;
}

static void add_word(struct parser *parser, const char *word) {
        struct command_options *options = parser->options;

        if (begins_program(options)) {
                options->program = parser->arguments.at - 1;
                parser->arguments.at = parser->arguments.end;
                return;
        }
        if (!options->command && options->n_words == 0) {
                for (size_t i = 0; i < n_commands; i++)
                        if (strcmp(word, commands[i].name) == 0)
                                options->command = &commands[i];
                if (options->command)
                        return;
        }
        options->words[options->n_words++] = word;
}

static enum options_result take_option(struct parser *parser, const struct argument *argument) {
        struct command_options *options = parser->options;
        char name[64];

        snprintf(name, sizeof(name), "%.*s", (int)(argument->name.length < 60 ? argument->name.length : 60),
                 (const char *)argument->name.data);
        if (!argument->option)
                return complain_of_name(options, "option", name);

        parser->seen |= UINT64_C(1) << (argument->option - ctl_options);
        return set_option(options, argument->option, name, argument->value);
}

static enum options_result read_arguments(struct parser *parser) {
        enum options_result result = OPTIONS_RUN;

        while (result == OPTIONS_RUN) {
                struct argument argument;

                switch (arguments_next(&parser->arguments, &argument)) {
                case ARGUMENT_END:
                        return OPTIONS_RUN;
                case ARGUMENT_WORD:
                        add_word(parser, argument.text);
                        break;
                default:
                        result = take_option(parser, &argument);
                }
        }
        return result;
}

/* Checks of the options together. */

static bool needs_broker(const struct command_options *options) {
        return !options->data_dir && !options->etcd &&
               (options->command->needs & (NEEDS_CLIENT | NEEDS_BROKER));
}

static bool needs_etcd(const struct command_options *options) {
        return options->etcd || options->command->needs & NEEDS_ETCD;
}

/* Check the options of the command line. Those of the environment may be for other commands. */
static enum options_result check_options(const struct parser *parser) {
        const struct command_options *options = parser->options;

        for (size_t i = 0; i < n_ctl_options; i++)
                if (parser->seen & UINT64_C(1) << i &&
                    !command_has_option(options->command, &ctl_options[i]))
                        return usage_error(options, ctl_options[i].flag,
                                           "not an option of this command" WORD_ADVICE);
        if (options->nx && options->nex)
                return usage_error(options, "--nx", "not together with --nex");
        if (options->etcd && options->data_dir)
                return usage_error(options, "--etcd", "not together with --data-dir");
        return OPTIONS_RUN;
}

static enum options_result check_pattern(const struct command_options *options) {
        bool has_pattern = options->command->needs & NEEDS_PATTERN && options->n_words > 0;
        enum glob_fault fault = has_pattern ? glob_check(slice_from_string(options->words[0])) : GLOB_VALID;

        return fault == GLOB_VALID ? OPTIONS_RUN
                                   : usage_error(options, options->words[0], glob_fault_text(fault));
}

static enum options_result check_words(const struct command_options *options) {
        size_t n_min = options->command->n_words_min, n_max = options->command->n_words_max;
        bool lacks_program = options->command->needs & NEEDS_PROGRAM && !options->program;
        char text[128];

        if (options->n_words >= n_min && options->n_words <= n_max && !lacks_program)
                return OPTIONS_RUN;

        snprintf(text, sizeof(text), "too %s arguments: %s was expected",
                 options->n_words < n_min || lacks_program ? "few" : "many",
                 *options->command->synopsis ? options->command->synopsis : "none");
        return usage_error(options, options->command->name, text);
}

static enum options_result check_stdin(const struct command_options *options) {
        size_t n = options->nex_value && input_is_stdin(options->nex_value);

        for (size_t i = 0; i < options->n_words; i++)
                n += input_is_stdin(options->words[i]);
        return n <= 1 ? OPTIONS_RUN : usage_error(options, "-", "stdin can be read only once");
}

static enum options_result check_credentials(struct command_options *options) {
        struct credentials *credentials = &options->credentials;
        struct credentials_fault fault;
        const char *problem, *flag;

        problem = credentials_check_options(credentials, &flag);
        if (problem)
                return usage_error(options, flag, problem);
        if (credentials_check_password_file(credentials, &fault) == 0 &&
            credentials_check_tls_files(credentials, &fault) == 0)
                return OPTIONS_RUN;
        complain("%s", fault.text);
        return OPTIONS_INVALID;
}

static void make_client_id(struct command_options *options) {
        char random[16 + 1];

        if (options->client_id)
                return;
        random_hex(random, sizeof(random));
        snprintf(options->client_id_buffer, sizeof(options->client_id_buffer), "statestorectl-%s", random);
        options->client_id = options->client_id_buffer;
}

/*
 * Read the configuration of a store on this machine: the file of --config, and the variables of
 * statestored.
 */
static enum options_result read_store_config(struct command_options *options) {
        options->store_config = calloc(1, sizeof(*options->store_config));
        if (!options->store_config)
                return usage_error(options, "--config", "out of memory");
        return config_read_addresses(options->config_file, options->store_config) == CONFIG_RUN
                       ? OPTIONS_RUN
                       : OPTIONS_INVALID;
}

static enum options_result take_etcd_of_store(struct command_options *options) {
        if (read_store_config(options) != OPTIONS_RUN)
                return OPTIONS_INVALID;
        return options->store_config->etcd.n_endpoints > 0
                       ? OPTIONS_RUN
                       : usage_error(options, "--config",
                                     "a configuration with the endpoints of etcd was expected");
}

/*
 * Without --host, use the address of the store's broker and the TLS options that concern the broker,
 * but not the credentials of the store: user name, password and client certificate.
 */
static enum options_result take_broker_of_store(struct command_options *options) {
        struct credentials *credentials = &options->credentials;
        const struct credentials *of_store;

        if (options->hosts)
                return OPTIONS_RUN;
        if (read_store_config(options) != OPTIONS_RUN)
                return OPTIONS_INVALID;

        of_store = &options->store_config->credentials;
        options->hosts = options->store_config->hosts;
        if (!options->port && !config_has_default_port(options->store_config))
                options->port = options->store_config->port;
        if (!options->is_tls_given)
                credentials->tls = of_store->tls;
        if (!credentials->tls_ca_file)
                credentials->tls_ca_file = of_store->tls_ca_file;
        return OPTIONS_RUN;
}

/* Determine the endpoints, the credentials and the client id. */
static enum options_result complete_broker(struct command_options *options) {
        uint16_t port;

        if (take_broker_of_store(options) != OPTIONS_RUN)
                return OPTIONS_INVALID;
        if (options->credentials.tls_ca_file)
                options->credentials.tls = true;
        port = options->port ?: credentials_default_port(&options->credentials);
        if (endpoints_parse(slice_from_string(options->hosts), port, &options->endpoints,
                            &options->n_endpoints) < 0)
                return usage_error(options, "--host", "out of memory");
        make_client_id(options);
        return check_credentials(options);
}

static enum options_result complete_options(struct parser *parser) {
        struct command_options *options = parser->options;
        enum options_result result;

        if (!options->command)
                return options->n_words == 0 ? usage_error(options, "no command",
                                                           "get, set, scan, watch or another was expected")
                                             : complain_of_name(options, "command", options->words[0]);

        result = check_options(parser) ?: check_words(options) ?: check_pattern(options);
        result = result ?: check_stdin(options);
        /* Do not read credentials that are not used: the user may lack permission. */
        if (result == OPTIONS_RUN && needs_broker(options))
                result = complete_broker(options);
        if (result == OPTIONS_RUN && needs_etcd(options))
                result = take_etcd_of_store(options);
        return result;
}

static enum options_result print_help(const struct command_options *options) {
        CLEANUP(buf_deinit) struct buf text = { 0 };

        if (options->help)
                help_append(&text, options->command);
        else
                buf_append_string(&text, "statestorectl " STATESTORED_VERSION "\n");
        output_write(&text);
        return OPTIONS_DONE;
}

enum options_result command_options_init(struct command_options *options, int n_arguments,
                                         char *const *arguments) {
        struct parser parser = {
                .options = options,
                .arguments = { .options = ctl_options,
                               .n_options = n_ctl_options,
                               .at = arguments + (n_arguments > 0), /* skip the program name */
                               .end = arguments + n_arguments,
                               .has_words = true },
        };
        enum options_result result = OPTIONS_RUN;

        *options = (struct command_options){ .wait_ms = -1 };
        options->words = calloc((size_t)n_arguments + 1, sizeof(*options->words));
        if (!options->words)
                return usage_error(options, "statestorectl", "out of memory");

        for (size_t i = 0; i < n_ctl_options && result == OPTIONS_RUN; i++)
                if (ctl_options[i].default_value)
                        result = set_option(options, &ctl_options[i], ctl_options[i].flag,
                                            ctl_options[i].default_value);
        result = result ?: read_environment(options) ?: read_arguments(&parser);
        if (result != OPTIONS_RUN)
                return result;
        if (options->version || (options->help && (options->command || options->n_words == 0)))
                return print_help(options);
        return complete_options(&parser);
}

void command_options_deinit(struct command_options *options) {
        free(options->words);
        endpoints_free(options->endpoints, options->n_endpoints);
        if (options->store_config)
                config_deinit(options->store_config);
        free(options->store_config);
}

int64_t command_options_share_ms(const struct command_options *options, size_t n_endpoints) {
        int64_t share_ms = options->timeout_ms / (int64_t)n_endpoints;

        return share_ms > 0 ? share_ms : 1;
}
