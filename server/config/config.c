/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Report all faults, not only the first. Checks that concern several options run after all sources
 * are read, so the order of options does not matter.
 */

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/regular_file.h"
#include "config/ini_file.h"
#include "config/policy_file.h"
#include "protocol/topics.h"

#define HELP_COLUMN 32
#define FAULTS_MAX  100 /* a file with more is probably no configuration file */

struct config_text {
        struct config_text *next;
        char text[];
};

struct config_reading {
        struct config *config;
        const char *program;
        const char *hint; /* suffix of fault messages */
        bool is_reload;   /* faults are logged, not printed */
        bool is_invalid;
        unsigned int n_faults;
        unsigned int source;                           /* number of the present source */
        unsigned int list_sources[CONFIG_OPTIONS_MAX]; /* source of each list; 0: none */
        const char *file;                              /* name of the configuration file */
        bool is_client_variable[CONFIG_OPTIONS_MAX];   /* the value is that of a variable of statestorectl */
        unsigned int lines[CONFIG_OPTIONS_MAX]; /* line of each value in the file; 0: not from the file */
};

/* 1. Sources */

/* Report a fault on a line of its own, unless there were many before it. */
static void config_report(struct config_reading *reading, const char *where, const char *what) {
        reading->is_invalid = true;
        if (reading->n_faults++ == FAULTS_MAX)
                what = "further faults are not reported";
        else if (reading->n_faults > FAULTS_MAX)
                return;

        if (reading->is_reload)
                log_error("SIGHUP: %s: %s", where, what);
        else
                fprintf(stderr, "%s: %s: %s%s\n", reading->program, where, what, reading->hint);
}

static void config_take_fault(void *userdata, const char *where, const char *what) {
        config_report(userdata, where, what);
}

static const char *store_text(struct config_text **texts, const char *text) {
        size_t size = strlen(text) + 1;
        struct config_text *stored = malloc(sizeof(*stored) + size);

        if (!stored)
                return NULL;

        memcpy(stored->text, text, size);
        stored->next = *texts;
        *texts = stored;
        return stored->text;
}

/*
 * Prepare the next value of a list, and return the text of the list with it. A source replaces the
 * list of the sources before it. Returns NULL without memory.
 */
static const char *extend_list(struct config_reading *reading, const struct option *option,
                               const char *value) {
        size_t i = (size_t)(option - config_options);
        CLEANUP(cleanup_free) char *text = NULL;

        if (reading->list_sources[i] != reading->source) {
                reading->list_sources[i] = reading->source;
                option->set(reading->config, option, NULL);
                return value;
        }
        if (asprintf(&text, "%s, %s", reading->config->values[i] ?: "", value) < 0)
                return NULL;
        return store_text(&reading->config->file_texts, text);
}

static void config_set(struct config_reading *reading, const struct option *option, const char *value,
                       const char *where) {
        const char *text = option->is_list && value ? extend_list(reading, option, value) : value;
        struct option_fault fault;

        reading->is_client_variable[option - config_options] = false;
        reading->lines[option - config_options] = 0;
        if (option_apply(option, reading->config, value, &fault))
                reading->config->values[option - config_options] = text;
        else
                config_report(reading, where, fault.text);
}

static void set_defaults(struct config_reading *reading) {
        for (size_t i = 0; i < n_settings; i++)
                if (config_options[i].default_value)
                        config_set(reading, &config_options[i], config_options[i].default_value,
                                   config_options[i].flag);
}

static const struct option *find_setting(const char *section, const char *name) {
        for (size_t i = 0; i < n_settings; i++)
                if (strcmp(config_options[i].section, section) == 0 &&
                    strcmp(config_options[i].name, name) == 0)
                        return &config_options[i];
        return NULL;
}

static const struct option *find_flag(const char *flag) {
        const struct option *option = config_options;

        while (strcmp(option->flag, flag) != 0)
                option++;
        return option;
}

/* Report a fault of a setting at its line in the file, if its value is from there. */
static void report_setting(struct config_reading *reading, const char *flag, const char *what) {
        const struct option *option = find_flag(flag);
        unsigned int line = reading->lines[option - config_options];
        char text[300];

        if (line == 0) {
                config_report(reading, flag, what);
                return;
        }
        snprintf(text, sizeof(text), "[%s] %s: %s", option->section, option->name, what);
        config_report(reading, ini_position(reading->file, line).text, text);
}

static bool is_section(const char *section) {
        for (size_t i = 0; i < n_settings; i++)
                if (strcmp(config_options[i].section, section) == 0)
                        return true;
        return false;
}

static void config_take_section(void *userdata, const char *section, unsigned int line) {
        struct config_reading *reading = userdata;
        const char *listed = "";
        char text[300];

        if (is_section(section))
                return;
        snprintf(text, sizeof(text), "no such section: [%.60s]; the sections are", section);
        for (size_t i = 0; i < n_settings; i++) {
                if (strcmp(config_options[i].section, listed) == 0)
                        continue;
                listed = config_options[i].section;
                snprintf(text + strlen(text), sizeof(text) - strlen(text), " [%s]", listed);
        }
        config_report(reading, ini_position(reading->file, line).text, text);
}

static void config_take_line(void *userdata, const char *section, const char *name, const char *value,
                             unsigned int line) {
        struct config_reading *reading = userdata;
        struct ini_position where = ini_position(reading->file, line);
        const struct option *option = find_setting(section, name);
        unsigned int *first = option ? &reading->lines[option - config_options] : NULL;
        char text[300];

        if (*section && !is_section(section))
                return; /* config_take_section() has reported it */
        if (!option) {
                if (*section)
                        snprintf(text, sizeof(text), "no such option: [%.60s] %.60s", section, name);
                else
                        snprintf(text, sizeof(text),
                                 "\"%.60s\" is in no section; write a line such as [broker] above it", name);
                config_report(reading, where.text, text);
                return;
        }
        if (*first > 0 && !option->is_list) {
                snprintf(text, sizeof(text), "[%s] %s is given twice, first in line %u", section, name,
                         *first);
                config_report(reading, where.text, text);
                return;
        }

        value = store_text(&reading->config->file_texts, value);
        if (value)
                config_set(reading, option, value, where.text);
        else
                config_report(reading, where.text, "out of memory");
        *first = line;
}

/*
 * Return whether the file may be read; if not, report why. At the start the file may be a pipe, as
 * in --policy <(generate-policy). A reload does not read pipes: it must not wait for a writer, and
 * the start has read the pipe to its end.
 */
static bool check_readable(struct config_reading *reading, const char *name) {
        int r = reading->is_reload ? regular_file_check(name, INI_FILE_LENGTH_MAX) : 0;

        if (r != 0)
                config_report(reading, name, regular_file_fault(r, INI_FILE_LENGTH_MAX).text);
        return r == 0;
}

static void read_file(struct config_reading *reading, const char *name) {
        struct ini_sink sink = { .section = config_take_section,
                                 .value = config_take_line,
                                 .fault = config_take_fault,
                                 .userdata = reading };

        reading->file = name ? name : getenv("STATESTORE_CONFIG");
        if (reading->file && *reading->file && check_readable(reading, reading->file))
                ini_file_read(reading->file, &sink);
}

static bool is_variable_of_setting(struct slice variable) {
        for (size_t i = 0; i < n_settings; i++)
                if (slice_equal(variable, slice_from_string(option_variable(&config_options[i]).name)))
                        return true;
        return false;
}

/* Return whether the name consists of STATESTORE_, a section, and any suffix. */
static bool begins_with_section(struct slice variable) {
        for (size_t i = 0; i < n_settings; i++) {
                struct option_variable known = option_variable(&config_options[i]);
                size_t length = strlen(known.name) - strlen(config_options[i].name);

                if (slice_starts_with(variable, (struct slice){ (const uint8_t *)known.name, length }))
                        return true;
        }
        return false;
}

/*
 * Return the option that a name without a section probably means, as STATESTORE_DATA_DIR does, or
 * NULL. Names without a section of options for the broker are those of statestorectl.
 */
static const struct option *find_without_section(struct slice variable) {
        for (size_t i = 0; i < n_settings; i++) {
                struct option option = config_options[i];

                option.section = NULL;
                option.has_variable = true;
                if (strcmp(config_options[i].section, "broker") != 0 &&
                    slice_equal(variable, slice_from_string(option_variable(&option).name)))
                        return &config_options[i];
        }
        return NULL;
}

static void report_unknown_variables(struct config_reading *reading) {
        for (char *const *at = environ; at && *at; at++) {
                struct slice value, variable = slice_split(slice_from_string(*at), '=', &value);
                const struct option *meant;
                char text[128] = "no such option";

                if (value.length == 0 || !slice_starts_with(variable, SLICE_LITERAL("STATESTORE_")) ||
                    is_variable_of_setting(variable))
                        continue;
                meant = find_without_section(variable);
                if (meant)
                        snprintf(text, sizeof(text), "no such option; did you mean %s?",
                                 option_variable(meant).name);
                if (meant || begins_with_section(variable))
                        config_report(reading, LOG_TEXT(variable), text);
        }
}

static void config_read_environment(struct config_reading *reading) {
        report_unknown_variables(reading);
        for (size_t i = 0; i < n_settings; i++) {
                struct option_variable variable = option_variable(&config_options[i]);
                const char *value = getenv(variable.name);

                if (value && *value)
                        config_set(reading, &config_options[i], value, variable.name);
        }
}

static void set_from_client_variable(struct config_reading *reading, const char *flag, const char *value,
                                     const char *variable) {
        const struct option *option = find_flag(flag);

        config_set(reading, option, value, variable);
        reading->is_client_variable[option - config_options] = true;
}

/* Without user and password: the store has other options for its own. */
static void take_client_url(struct config_reading *reading, const char *variable, const char *url) {
        struct slice rest, text = slice_from_string(url);
        bool is_tls = slice_starts_with(text, SLICE_LITERAL("mqtts://"));
        CLEANUP(cleanup_free) char *host = NULL;
        const char *stored;

        if ((!is_tls && !slice_starts_with(text, SLICE_LITERAL("mqtt://"))) || strpbrk(url, "@?#,")) {
                config_report(reading, variable, "mqtt[s]://HOST[:PORT] was expected");
                return;
        }

        text = slice_split(slice_skip(text, strlen("mqtt://") + is_tls), '/', &rest);
        host = rest.length == 0 ? strndup((const char *)text.data, text.length) : strdup("");
        stored = host ? store_text(&reading->config->file_texts, host) : NULL;
        if (!stored) {
                config_report(reading, variable, "out of memory");
                return;
        }
        set_from_client_variable(reading, "--host", stored, variable);
        if (is_tls)
                set_from_client_variable(reading, "--tls", "on", variable);
}

/* The variables of statestorectl that name the broker. */
static void read_client_variables(struct config_reading *reading) {
        const char *host = getenv("STATESTORE_HOST");
        const char *port = getenv("STATESTORE_PORT");
        const char *url = getenv("STATESTORE_URL");

        if (host && *host)
                set_from_client_variable(reading, "--host", host, "STATESTORE_HOST");
        else if (url && *url)
                take_client_url(reading, "STATESTORE_URL", url);
        /* Kubernetes sets STATESTORE_PORT to a URL for a service with the name statestore. */
        if (port && *port && !strstr(port, "://"))
                set_from_client_variable(reading, "--port", port, "STATESTORE_PORT");
}

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

static void config_read_arguments(struct config_reading *reading, int n_arguments, char *const *argv) {
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

/*
 * Read --help, --version and --config: they decide whether other sources are read, and which file.
 * config_read_arguments() reports faults.
 */
static void config_read_arguments_first(struct config_reading *reading, int n_arguments, char *const *argv) {
        struct arguments arguments = arguments_of(n_arguments, argv);
        struct argument argument;
        struct option_fault fault;
        enum argument_kind kind;

        while ((kind = arguments_next(&arguments, &argument)) != ARGUMENT_END)
                if (kind == ARGUMENT_OPTION && !argument.option->section)
                        option_apply(argument.option, reading->config, argument.value, &fault);
}

static void config_print_help(void) {
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

/* 2. Checks of several options together */

static char *presence_filter(const char *presence_topic) {
        CLEANUP(buf_deinit) struct buf filter = { 0 };

        topic_append_filter(&filter, slice_from_string(presence_topic));
        return buf_text(&filter) ? (char *)take_ptr(&filter.data) : NULL;
}

static bool is_same_text(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Return whether the option is about the broker or its connection, so that --dev excludes it. */
static bool describes_broker(const struct option *option) {
        static const char *const flags[] = { "--host",    "--user",        "--password-file",
                                             "--tls",     "--tls-ca-file", "--tls-certificate",
                                             "--tls-key", "--tls-alpn",    "--presence-topic" };

        for (size_t i = 0; i < ARRAY_LENGTH(flags); i++)
                if (strcmp(option->flag, flags[i]) == 0)
                        return true;
        return false;
}

/* Check the options that --dev excludes or requires. */
static void check_dev(struct config_reading *reading) {
        struct config *config = reading->config;

        if (!config->dev && config->port == 0)
                report_setting(reading, "--port", "0 means any free port, and is only valid with --dev");
        for (size_t i = 0; i < n_settings; i++) {
                if (is_same_text(config->values[i], config_options[i].default_value))
                        continue;
                if (config->dev && describes_broker(&config_options[i]) && reading->is_client_variable[i]) {
                        config_options[i].set(config, &config_options[i], config_options[i].default_value);
                        continue;
                }
                if (config->dev && describes_broker(&config_options[i]))
                        report_setting(reading, config_options[i].flag,
                                       "not with --dev, which starts a private broker without this option");
                if (!config->dev && strcmp(config_options[i].flag, "--dev-listen") == 0)
                        report_setting(reading, config_options[i].flag, "only with --dev");
        }
}

bool config_has_default_port(const struct config *config) {
        for (size_t i = 0; i < n_settings; i++)
                if (config->values[i] == config_options[i].default_value &&
                    strcmp(config_options[i].flag, "--port") == 0)
                        return true;
        return false;
}

/* Derive the endpoints, whether to use TLS, and the port. */
static void config_complete_broker(struct config_reading *reading) {
        struct config *config = reading->config;

        if (config->credentials.tls_ca_file)
                config->credentials.tls = true;
        if (config_has_default_port(config))
                config->port = credentials_default_port(&config->credentials);
        if (!config->dev && endpoints_parse(slice_from_string(config->hosts), config->port,
                                            &config->endpoints, &config->n_endpoints) < 0)
                config_report(reading, "--host", "out of memory");
}

/* Derive values from the options, and check options that depend on each other. */
static void config_complete(struct config_reading *reading) {
        struct config *config = reading->config;
        const char *fault, *flag;

        check_dev(reading);
        config_complete_broker(reading);
        if (config->control && config_stores_data(config))
                report_setting(reading, "--control",
                               "not with --data-dir: any client of the broker could delete the stored data");
        fault = credentials_check_options(&config->credentials, &flag);
        if (fault)
                report_setting(reading, flag, fault);

        if (config->presence_topic) {
                config->presence_filter = presence_filter(config->presence_topic);
                if (!config->presence_filter)
                        config_report(reading, "--presence-topic", "out of memory");
        }
}

/* Return whether the directory that contains the file exists. */
static bool has_parent(const char *file) {
        CLEANUP(buf_deinit) struct buf parent = { 0 };
        const char *slash = strrchr(file, '/');

        if (!slash)
                return true;
        buf_append(&parent, file, (size_t)(slash - file) + 1);
        return buf_text(&parent) && access(buf_text(&parent), X_OK) == 0;
}

/*
 * Checks for --check-config only. The reading of options does not look at files, so that a reload
 * does not fail because of them: the store may start with such options, but probably does not do
 * what the operator expects.
 */
static void check_plausibility(struct config_reading *reading) {
        const struct config *config = reading->config;
        struct stat status;

        if (config->data_dir && *config->data_dir != '/')
                report_setting(reading, "--data-dir",
                               "a path that begins with '/' was expected: a service does "
                               "not start in this directory");
        else if (config->data_dir && !has_parent(config->data_dir))
                report_setting(reading, "--data-dir", "the directory above it does not exist");
        else if (config->data_dir && stat(config->data_dir, &status) == 0 && !S_ISDIR(status.st_mode))
                report_setting(reading, "--data-dir", "this is not a directory");
        if (config->ready_file && !has_parent(config->ready_file))
                report_setting(reading, "--ready-file", "the directory above it does not exist");
        if (config->persist == PERSIST_CUSTOM && !config_stores_data(config))
                report_setting(reading, "--persist", "custom is not used without --data-dir");
}

static void read_policy(struct config_reading *reading) {
        struct config *config = reading->config;
        struct policy_file_sink sink = { .fault = config_take_fault, .userdata = reading };

        reading->hint = "";
        if (!config->policy_file || !check_readable(reading, config->policy_file))
                return;
        config->policy = policy_file_read(config->policy_file, config->allow_unverified, &sink);
        if (!config->policy)
                reading->is_invalid = true;
}

enum config_result config_read(int n_arguments, char *const *argv, bool is_reload,
                               struct config *ret_config) {
        struct config_reading reading = {
                .config = ret_config, .program = "statestored", .hint = "", .is_reload = is_reload
        };

        *ret_config = (struct config){ 0 };
        config_read_arguments_first(&reading, n_arguments, argv);
        if (ret_config->help)
                config_print_help();
        else if (ret_config->version)
                printf("statestored %s\n", STATESTORED_VERSION);
        if (ret_config->help || ret_config->version)
                return CONFIG_DONE;

        set_defaults(&reading);
        reading.source++;
        read_file(&reading, ret_config->file);
        reading.source++;
        read_client_variables(&reading);
        config_read_environment(&reading);
        reading.source++;
        reading.hint = "; see --help";
        config_read_arguments(&reading, n_arguments, argv);
        if (!reading.is_invalid)
                config_complete(&reading);
        read_policy(&reading);
        if (ret_config->check_only)
                check_plausibility(&reading);

        if (reading.is_invalid)
                return CONFIG_INVALID;
        if (!ret_config->check_only)
                return CONFIG_RUN;
        printf("the configuration is valid\n");
        if (ret_config->data_dir && access(ret_config->data_dir, F_OK) < 0)
                printf("the data directory \"%s\" does not exist: the store creates it\n",
                       LOG_STRING(ret_config->data_dir));
        return CONFIG_DONE;
}

enum config_result config_read_broker(const char *file, struct config *ret_config) {
        struct config_reading reading = { .config = ret_config, .program = "statestorectl", .hint = "" };

        *ret_config = (struct config){ 0 };
        set_defaults(&reading);
        reading.source++;
        read_file(&reading, file);
        reading.source++;
        config_read_environment(&reading);
        if (!reading.is_invalid)
                config_complete_broker(&reading);
        return reading.is_invalid ? CONFIG_INVALID : CONFIG_RUN;
}

static void free_texts(struct config_text *texts) {
        while (texts) {
                struct config_text *next = texts->next;

                free(texts);
                texts = next;
        }
}

void config_deinit(struct config *config) {
        endpoints_free(config->endpoints, config->n_endpoints);
        endpoints_free(config->http_listen, config->http_listen ? 1 : 0);
        free(config->presence_filter);
        free(config->persist_property);
        for (size_t i = 0; i < config->n_persist_rules; i++)
                free((void *)config->persist_rules[i].text.data);
        free(config->persist_rules);
        policy_free(config->policy);
        free_texts(config->file_texts);
        *config = (struct config){ 0 };
}

void config_reload(struct config *config, const struct config *fresh) {
        for (size_t i = 0; i < n_settings; i++) {
                const struct option *option = &config_options[i];
                bool is_changed = !is_same_text(config->values[i], fresh->values[i]);

                if (is_changed)
                        log_info("[%s] %s has changed from %s to %s%s", option->section, option->name,
                                 LOG_STRING(config->values[i] ?: "none"),
                                 LOG_STRING(fresh->values[i] ?: "none"),
                                 option->is_live ? "" : ": this needs a restart");
                if (!option->is_live)
                        continue;

                /*
                 * Also set unchanged options: the caller frees the former configuration, with its
                 * strings.
                 */
                config->values[i] = fresh->values[i];
                if (fresh->values[i])
                        option->set(config, option, fresh->values[i]);
                else if (is_changed && option->field)
                        *(const char **)((char *)config + option->field) = NULL;
        }
}
