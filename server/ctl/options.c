/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Defaults, environment, command line, each over what the one before has left. Only then is it known which
 * command this is, and what of all that goes with it.
 */

#include "ctl/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/assert.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "config.h"
#include "ctl/help.h"
#include "ctl/input.h"
#include "ctl/option_table.h"
#include "ctl/output.h"
#include "ctl/store_config.h"

#define PASSWORD_LENGTH_MAX UINT16_MAX

struct parser {
        struct options *options;
        char *const *arguments; /* those that are left, NULL-terminated */
        uint64_t seen;          /* rows of the table that the command line has used, a bit each */
        bool has_nex_word;      /* the word at nex_word stands behind --nex: its VALUE, or KEY, or VALUE */
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
        char text[512];

        if (option->set(options, value) == 0)
                return OPTIONS_RUN;

        /* a URL may have a password in it */
        snprintf(text, sizeof(text), "%s was expected%s%s%s",
                 option->expected ? option->expected : "mqtt://[USER[:PASSWORD]@]HOST[:PORT]",
                 option->expected ? ", not \"" : "",
                 option->expected ? LOG_TEXT(slice_from_string(value)) : "", option->expected ? "\"" : "");
        return wrong(options, name, text);
}

static enum options_result read_environment(struct options *options) {
        enum options_result result = OPTIONS_RUN;

        for (size_t i = 0; i < n_options && result == OPTIONS_RUN; i++) {
                const char *name = option_table[i].environment;
                const char *value = name ? getenv(name) : NULL;

                if (value && *value)
                        result = set(options, &option_table[i], name, value);
        }
        return result;
}

/* The command line. */

/* No option begins with a digit: -90s is a duration, -5 a value. */
static bool is_word(const char *argument) {
        return argument[0] != '-' || argument[1] == '\0' || (argument[1] >= '0' && argument[1] <= '9');
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

/* argument begins with one dash or two; value is what stands behind its '=', or NULL. */
static enum options_result read_option(struct parser *parser, struct slice name, const char *value,
                                       const struct option *option) {
        struct options *options = parser->options;
        char shown[64];

        snprintf(shown, sizeof(shown), "%.*s", (int)(name.length < 60 ? name.length : 60),
                 (const char *)name.data);
        if (!option)
                return wrong(options, shown, "no such option");

        parser->seen |= UINT64_C(1) << (option - option_table);
        if (!option->argument && value)
                return wrong(options, shown, "takes no value");

        if (option->argument && option->argument[0] == '[') {
                parser->has_nex_word =
                        !value && options->command && *parser->arguments && is_word(*parser->arguments);
                parser->nex_word = options->n_words;
        } else if (option->argument && !value) {
                value = *parser->arguments;
                if (!value) {
                        char text[128];

                        snprintf(text, sizeof(text), "%s was expected behind it",
                                 option->expected ? option->expected : "a URL");
                        return wrong(options, shown, text);
                }
                parser->arguments++;
        }
        return set(options, option, shown, value);
}

static enum options_result read_argument(struct parser *parser) {
        const char *argument = *parser->arguments++;
        struct slice text = slice_from_string(argument), name, value;

        if (is_word(argument)) {
                add_word(parser, argument);
                return OPTIONS_RUN;
        }
        if (strcmp(argument, "--") == 0) {
                while (*parser->arguments)
                        add_word(parser, *parser->arguments++);
                return OPTIONS_RUN;
        }

        name = slice_split(text, '=', &value);
        if (argument[1] == '-')
                return read_option(parser, name, (const char *)value.data,
                                   option_find((struct slice){ name.data + 2, name.length - 2 }));
        return read_option(parser, name, (const char *)value.data,
                           name.length == 2 ? option_find_letter(argument[1]) : NULL);
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
        bool is_on_command_line =
                parser->seen & UINT64_C(1) << (option_find(SLICE_LITERAL("url")) - option_table);

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

        for (size_t i = 0; i < n_options; i++) {
                char name[64];

                if (!(parser->seen & UINT64_C(1) << i) || option_table[i].commands & command)
                        continue;
                snprintf(name, sizeof(name), "--%s", option_table[i].name);
                return wrong(options, name, "not an option of this command");
        }
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

/* Where it is, and as whom we come to it. */
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

        /* whoever asks no broker needs none of what leads to one: it may be another's, and not to be read here */
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
        struct parser parser = { .options = options, .arguments = arguments + (n_arguments > 0) };
        enum options_result result;

        *options = (struct options){ 0 };
        options->words = calloc((size_t)n_arguments + 1, sizeof(*options->words));
        if (!options->words)
                return wrong(options, "memory", "out of it");

        for (size_t i = 0; i < n_options; i++)
                if (option_table[i].initial)
                        option_table[i].set(options, option_table[i].initial);
        options->is_url_given = false;
        options->is_tls_given = false;

        result = read_environment(options);
        while (result == OPTIONS_RUN && *parser.arguments)
                result = read_argument(&parser);
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
