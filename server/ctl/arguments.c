/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads defaults, environment and command line, each of which overrides the one before. Only then is the command known,
 * and with it which of the options it takes.
 */

#include "ctl/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "config/reading.h"
#include "ctl/help.h"
#include "ctl/input.h"
#include "ctl/option_table.h"
#include "ctl/output.h"
#include "ctl/store_config.h"

#define PASSWORD_LENGTH_MAX UINT16_MAX

struct parser {
        struct options *options;
        struct arguments arguments;
        uint64_t seen;     /* options that the command line has given, a bit for each row of the table */
        bool has_nex_word; /* the word at nex_word follows --nex: it may be its VALUE, or KEY or VALUE */
        size_t nex_word;
};

static enum options_result wrong(const struct options *options, const char *argument, const char *what) {
        const char *command = options->command ? options->command->name : "";

        complain("%s: %s; see statestorectl %s%s--help", LOG_TEXT(slice_from_string(argument)), what,
                 command, *command ? " " : "");
        return OPTIONS_WRONG;
}

static enum options_result set(struct options *options, const struct option *option, const char *name,
                               const char *value) {
        struct option_fault fault;

        return option_apply(option, options, value, &fault) ? OPTIONS_RUN : wrong(options, name, fault.text);
}

static enum options_result read_environment(struct options *options) {
        enum options_result result = OPTIONS_RUN;

        for (size_t i = 0; i < n_ctl_options && result == OPTIONS_RUN; i++) {
                struct option_variable variable = option_variable(&ctl_options[i]);
                const char *value = *variable.name ? getenv(variable.name) : NULL;

                if (value && *value)
                        result = set(options, &ctl_options[i], variable.name, value);
        }
        return result;
}

static void add_word(struct parser *parser, const char *word) {
        struct options *options = parser->options;

        if (!options->command && options->n_words == 0) {
                options->command = command_find(word);
                if (options->command)
                        return;
        }
        options->words[options->n_words++] = word;
}

static enum options_result take_option(struct parser *parser, const struct argument *argument) {
        const struct arguments *rest = &parser->arguments;
        struct options *options = parser->options;
        char name[64];

        /* without the value, which may be a URL with a password */
        snprintf(name, sizeof(name), "%.*s", (int)(argument->name.length < 60 ? argument->name.length : 60),
                 (const char *)argument->name.data);
        if (!argument->option)
                return wrong(options, name, "no such option");

        parser->seen |= UINT64_C(1) << (argument->option - ctl_options);
        if (!argument->value) {
                parser->has_nex_word =
                        options->command && rest->at < rest->end && argument_is_word(*rest->at);
                parser->nex_word = options->n_words;
        }
        return set(options, argument->option, name, argument->value);
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

/* What goes with what. */

static bool asks_pages(const struct options *options) {
        return options->command == &commands[COMMAND_STAT] || options->command == &commands[COMMAND_TOP];
}

bool options_ask_directory(const struct options *options) {
        return options->data_dir || options->command == &commands[COMMAND_CHECK] ||
               options->command == &commands[COMMAND_BACKUP];
}

/* The environment's URL may be another command's, and is left alone. */
static enum options_result check_url(const struct parser *parser) {
        const struct options *options = parser->options;
        bool is_for_pages = asks_pages(options);
        bool is_on_command_line = false;

        for (size_t i = 0; i < n_ctl_options; i++)
                if (parser->seen & UINT64_C(1) << i && strcmp(ctl_options[i].flag, "--url") == 0)
                        is_on_command_line = true;
        if (!is_on_command_line || is_for_pages == options->is_http_url_given)
                return OPTIONS_RUN;
        return wrong(options, "--url",
                     is_for_pages
                             ? "http://HOST:PORT was expected, where statestored serves its pages"
                             : "mqtt://[USER[:PASSWORD]@]HOST[:PORT] was expected: this command asks the "
                               "broker");
}

static enum options_result check_options(const struct parser *parser) {
        const struct options *options = parser->options;
        uint32_t command = OPTION_FOR(options->command - commands);

        for (size_t i = 0; i < n_ctl_options; i++)
                if (parser->seen & UINT64_C(1) << i && !(ctl_options[i].commands & command))
                        return wrong(options, ctl_options[i].flag, "not an option of this command");
        if (options->nx && options->nex)
                return wrong(options, "--nx", "does not go with --nex");
        return OPTIONS_RUN;
}

static enum options_result check_words(struct parser *parser) {
        struct options *options = parser->options;
        size_t n_files = (options->key_file != NULL) + (size_t)(options->value_file != NULL);
        size_t n_min = options->command->n_words_min - n_files;
        size_t n_max = options->command->n_words_max - n_files;
        char text[128];

        if (parser->has_nex_word && options->n_words == n_max + 1) {
                const char **word = &options->words[parser->nex_word];

                options->nex_value = *word;
                options->n_words--;
                memmove(word, word + 1, (options->n_words - parser->nex_word) * sizeof(*word));
        }
        if (options->n_words >= n_min && options->n_words <= n_max)
                return OPTIONS_RUN;

        snprintf(text, sizeof(text), "too %s arguments: %s was expected%s",
                 options->n_words < n_min ? "few" : "many",
                 *options->command->synopsis ? options->command->synopsis : "none",
                 n_files > 0 ? ", less what comes from a file" : "");
        return wrong(options, options->command->name, text);
}

static enum options_result check_stdin(const struct options *options) {
        const char *const others[] = { options->key_file, options->value_file, options->nex_value };
        /* a pattern is text as it stands */
        size_t n = 0, n_words = options->command == &commands[COMMAND_SCAN] ? 0 : options->n_words;

        for (size_t i = 0; i < n_words; i++)
                n += input_is_stdin(options->words[i]);
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                n += others[i] && input_is_stdin(others[i]);
        return n <= 1 ? OPTIONS_RUN : wrong(options, "-", "stdin cannot be read twice");
}

static enum options_result read_password(struct options *options) {
        CLEANUP(buf_deinit) struct buf password = { 0 };
        size_t length;

        if (options->password_file) {
                if (input_read_file(options->password_file, PASSWORD_LENGTH_MAX, &password) < 0)
                        return OPTIONS_WRONG;
                length = password.length;
                length -= length > 0 && password.data[length - 1] == '\n';
                length -= length > 0 && password.data[length - 1] == '\r';
                password.length = length;
        } else if (options->url.password) {
                buf_append_string(&password, options->url.password);
        } else {
                return OPTIONS_RUN;
        }

        if (!options->user)
                return wrong(options, "--password-file", "a password needs a user: --user");
        if (password.length > 0 && memchr(password.data, '\0', password.length))
                return wrong(options, "--password-file", "the password has a NUL in it");
        buf_append(&password, "", 1);
        options->password = (char *)take_ptr(&password.data);
        return options->password ? OPTIONS_RUN : OPTIONS_WRONG;
}

static enum options_result check_files(const struct credentials *tls) {
        const char *unreadable = credentials_unreadable_file(tls);

        if (!unreadable)
                return OPTIONS_RUN;

        complain("cannot read %s: %s", LOG_TEXT(slice_from_string(unreadable)), strerror(errno));
        return OPTIONS_WRONG;
}

static enum options_result check_tls(struct options *options) {
        struct credentials *tls = &options->tls;

        if (tls->tls_ca_file)
                tls->tls = true;
        if (!tls->tls_certificate != !tls->tls_key)
                return wrong(options, tls->tls_key ? "--tls-key" : "--tls-certificate",
                             "certificate and key belong together; the other one is missing");
        if (tls->tls_certificate && !tls->tls)
                return wrong(options, "--tls-certificate",
                             "without --tls on or --tls-ca-file it is not used");
        return check_files(tls);
}

static void make_client_id(struct options *options) {
        uint64_t random;
        ssize_t n_random;

        if (options->client_id)
                return;
        n_random = getrandom(&random, sizeof(random), 0);
        ASSERT(n_random == sizeof(random)); /* never fails for so few bytes */
        snprintf(options->client_id_space, sizeof(options->client_id_space), "statestorectl-%016llx",
                 (unsigned long long)random);
        options->client_id = options->client_id_space;
}

static enum options_result find_broker(struct options *options) {
        enum options_result result = store_config_take_broker(options);
        const char *hosts = options->hosts ? options->hosts : options->url.host;
        uint16_t port = options->port ? options->port : options->url.port;

        if (result != OPTIONS_RUN)
                return result;
        if (endpoints_parse(slice_from_string(hosts), port, &options->endpoints, &options->n_endpoints) < 0)
                return wrong(options, "--url", "a host was expected");
        return OPTIONS_RUN;
}

/* Endpoint and credentials. */
static enum options_result settle_broker(struct options *options) {
        enum options_result result = find_broker(options);

        if (!options->user)
                options->user = options->url.user;
        if (result == OPTIONS_RUN)
                result = read_password(options);
        if (result == OPTIONS_RUN)
                result = check_tls(options);
        make_client_id(options);
        return result;
}

static enum options_result settle(struct parser *parser) {
        struct options *options = parser->options;
        enum options_result result;

        if (!options->command)
                return options->n_words == 0 ? wrong(options, "no command",
                                                     "get, set, scan, watch, stat or another was expected")
                                             : wrong(options, options->words[0], "no such command");

        result = check_options(parser);
        if (result == OPTIONS_RUN)
                result = check_url(parser);
        if (result == OPTIONS_RUN)
                result = check_words(parser);
        if (result == OPTIONS_RUN)
                result = check_stdin(options);

        /* a command that uses no broker must not read its credentials: the user may lack permission */
        if (result == OPTIONS_RUN && asks_pages(options))
                result = store_config_take_pages(options);
        else if (result == OPTIONS_RUN && !options_ask_directory(options))
                result = settle_broker(options);
        return result;
}

static enum options_result print_help(const struct options *options) {
        CLEANUP(buf_deinit) struct buf text = { 0 };

        if (options->help)
                help_append(&text, options->command);
        else
                buf_append_string(&text, "statestorectl " STATESTORED_VERSION "\n");
        output_write(&text);
        return OPTIONS_DONE;
}

enum options_result options_init(struct options *options, int n_arguments, char *const *arguments) {
        struct parser parser = {
                .options = options,
                .arguments = { .options = ctl_options,
                               .n_options = n_ctl_options,
                               .at = arguments + (n_arguments > 0), /* past the program's name */
                               .end = arguments + n_arguments,
                               .has_words = true },
        };
        enum options_result result = OPTIONS_RUN;

        *options = (struct options){ 0 };
        options->words = calloc((size_t)n_arguments + 1, sizeof(*options->words));
        if (!options->words)
                return wrong(options, "memory", "out of it");

        for (size_t i = 0; i < n_ctl_options && result == OPTIONS_RUN; i++)
                if (ctl_options[i].initial)
                        result = set(options, &ctl_options[i], ctl_options[i].flag, ctl_options[i].initial);
        options->is_url_given = false;
        options->is_tls_given = false;

        if (result == OPTIONS_RUN)
                result = read_environment(options);
        if (result == OPTIONS_RUN)
                result = read_arguments(&parser);
        if (result != OPTIONS_RUN)
                return result;
        return options->help || options->version ? print_help(options) : settle(&parser);
}

void options_deinit(struct options *options) {
        free(options->words);
        free(options->password);
        endpoints_free(options->endpoints, options->n_endpoints);
        if (options->store)
                config_deinit(options->store);
        free(options->store);
        url_deinit(&options->url);
}
