/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/topics.h"
#include "config_file.h"
#include "option_table.h"

#ifndef STATESTORED_VERSION
#error "the build says which version this is"
#endif

static void print_help(void) {
        printf("Usage: statestored [OPTION]...\n"
               "A state store beside an MQTT 5 broker, for clients of the Azure IoT Operations state store\n"
               "protocol: it keeps keys, values, locks and who wants to be notified.\n"
               "\n"
               "  --config FILE                   read options from here\n");
        for (size_t i = 0; i < N_OPTIONS; i++) {
                int width = printf("  %s %s", options[i].flag, options[i].argument);

                printf("%*s%s", width < 34 ? 34 - width : 1, "", options[i].help);
                if (options[i].initial)
                        printf(" (%s)", options[i].initial);
                printf("\n");
        }
        printf("  --check-config                  say whether all this can be used, and do nothing\n"
               "  --version                       print the version\n"
               "  --help                          print this\n"
               "\n"
               "A flag beats its environment variable, that beats the file, and that the default in "
               "parentheses.\n"
               "See statestored.conf for the names in file and environment.\n"
               "\n"
               "It runs until SIGINT or SIGTERM, then answers what it has been asked and exits with 0. Exit "
               "1: the\n"
               "broker refuses it at start, or what is stored cannot be used; 2: a wrong option.\n");
}

/* What is being read: every fault is said, the first does not end it. */
struct reading {
        struct config *config;
        const char *hint; /* ends what is said of a fault */
        bool check_only, is_wrong;
};

static void wrong(struct reading *reading, const char *where, const char *what) {
        fprintf(stderr, "statestored: %s: %s%s\n", where, what, reading->hint);
        reading->is_wrong = true;
}

static void set(struct reading *reading, const struct option *option, const char *value, const char *where) {
        char text[256];

        if (value && option->set(reading->config, value) == 0) {
                reading->config->values[option - options] = value;
                return;
        }

        snprintf(text, sizeof(text), "%s was expected%s%s%s", option->expected, value ? ", not \"" : "",
                 value ? LOG_TEXT(slice_from_string(value)) : "", value ? "\"" : "");
        wrong(reading, where, text);
}

static const struct option *find_flag(struct slice flag) {
        for (size_t i = 0; i < N_OPTIONS; i++)
                if (slice_equal(flag, slice_from_string(options[i].flag)))
                        return &options[i];
        return NULL;
}

/* The value of the flag at arguments[*at], which may stand behind it; moves *at past both. NULL: there is none. */
static const char *take_value(int n_arguments, char *const *arguments, int *at, struct slice *ret_flag) {
        struct slice value;

        *ret_flag = slice_split(slice_from_string(arguments[(*at)++]), '=', &value);
        if (value.data)
                return (const char *)value.data;
        return *at < n_arguments ? arguments[(*at)++] : NULL;
}

static void read_flag(struct reading *reading, int n_arguments, char *const *arguments, int *at) {
        const char *argument = arguments[*at];
        const struct option *option;
        const char *value;
        struct slice flag;

        if (strcmp(argument, "--check-config") == 0) {
                reading->check_only = true;
                (*at)++;
                return;
        }

        flag = slice_split(slice_from_string(argument), '=', &(struct slice){ 0 });
        option = find_flag(flag);
        if (!option && !slice_equal(flag, SLICE_LITERAL("--config"))) {
                wrong(reading, LOG_TEXT(slice_from_string(argument)),
                      strncmp(argument, "--", 2) == 0 ? "no such option" : "not an option");
                (*at)++;
                if (argument[0] == '-' && !strchr(argument, '=') && *at < n_arguments &&
                    arguments[*at][0] != '-')
                        (*at)++; /* most likely its value */
                return;
        }

        value = take_value(n_arguments, arguments, at, &flag);
        if (option)
                set(reading, option, value, LOG_TEXT(slice_from_string(argument)));
}

static const char *environment_value(const struct option *option, char name[64]) {
        snprintf(name, 64, "STATESTORE_%s_%s", option->section, option->name);
        for (char *at = name; *at; at++)
                *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
        return getenv(name);
}

static void read_environment(struct reading *reading) {
        char name[64];

        for (size_t i = 0; i < N_OPTIONS; i++) {
                const char *value = environment_value(&options[i], name);

                if (value && *value)
                        set(reading, &options[i], value, name);
        }
}

static const char *find_config_file(int n_arguments, char *const *arguments) {
        const char *name = getenv("STATESTORE_CONFIG");

        for (int at = 1; at < n_arguments;) {
                struct slice flag;
                const char *value;

                if (strncmp(arguments[at], "--config", strlen("--config")) != 0) {
                        at++;
                        continue;
                }
                value = take_value(n_arguments, arguments, &at, &flag);
                if (slice_equal(flag, SLICE_LITERAL("--config")))
                        name = value ? value : "";
        }
        return name;
}

static void take_line(void *userdata, const struct option *option, const char *value, const char *where) {
        set(userdata, option, value, where);
}

static void take_fault(void *userdata, const char *where, const char *what) {
        wrong(userdata, where, what);
}

static void read_file(struct reading *reading, const char *name) {
        struct config_file_sink sink = { .option = take_line, .fault = take_fault, .userdata = reading };

        if (name)
                config_file_read(name, &reading->config->file_texts, &sink);
}

static char *presence_filter(const char *presence_topic) {
        struct buf filter = { 0 };

        topic_append_filter(&filter, slice_from_string(presence_topic));
        buf_append(&filter, "", 1);
        if (!buf_failed(&filter))
                return (char *)filter.data;

        buf_deinit(&filter);
        return NULL;
}

/* What several options say together. */
static void complete(struct reading *reading) {
        struct config *config = reading->config;

        if (config->tls_ca_file)
                config->tls = true;
        if (!config->tls_certificate != !config->tls_key)
                wrong(reading, config->tls_key ? "--tls-key" : "--tls-certificate",
                      "certificate and key belong together; the other one is missing");
        if (config->tls_certificate && !config->tls)
                wrong(reading, "--tls-certificate", "without --tls on or --tls-ca-file it is not used");
        if (config->password_file && !config->user)
                wrong(reading, "--password-file", "a password needs a --user");

        if (config->presence_topic) {
                config->presence_filter = presence_filter(config->presence_topic);
                if (!config->presence_filter)
                        wrong(reading, "--presence-topic", "out of memory");
        }
        if (endpoints_parse(slice_from_string(config->hosts), config->port, &config->endpoints,
                            &config->n_endpoints) < 0)
                wrong(reading, "--host", "out of memory");
}

enum config_result config_read(int n_arguments, char *const *arguments, struct config *ret_config) {
        struct reading reading = { .config = ret_config, .hint = "" };

        *ret_config = (struct config){ 0 };
        for (int at = 1; at < n_arguments; at++) {
                if (strcmp(arguments[at], "--help") == 0) {
                        print_help();
                        return CONFIG_DONE;
                }
                if (strcmp(arguments[at], "--version") == 0) {
                        printf("statestored %s\n", STATESTORED_VERSION);
                        return CONFIG_DONE;
                }
        }

        for (size_t i = 0; i < N_OPTIONS; i++)
                if (options[i].initial)
                        set(&reading, &options[i], options[i].initial, options[i].flag);
        read_file(&reading, find_config_file(n_arguments, arguments));
        read_environment(&reading);
        reading.hint = "; see --help";
        for (int at = 1; at < n_arguments;)
                read_flag(&reading, n_arguments, arguments, &at);
        if (!reading.is_wrong)
                complete(&reading);

        if (reading.is_wrong)
                return CONFIG_WRONG;
        if (!reading.check_only)
                return CONFIG_RUN;
        printf("the configuration can be used\n");
        return CONFIG_DONE;
}

void config_deinit(struct config *config) {
        endpoints_free(config->endpoints, config->n_endpoints);
        endpoints_free(config->http_listen, config->http_listen ? 1 : 0);
        free(config->presence_filter);
        free(config->persist_property);
        config_file_texts_free(config->file_texts);
        *config = (struct config){ 0 };
}

static bool is_same(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

void config_reload(struct config *config, const struct config *next) {
        for (size_t i = 0; i < N_OPTIONS; i++) {
                const struct option *option = &options[i];
                bool is_changed = !is_same(config->values[i], next->values[i]);

                if (is_changed)
                        log_info("[%s] %s has changed%s", option->section, option->name,
                                 option->is_live ? "" : ": this needs a restart");
                if (!option->is_live)
                        continue;

                config->values[i] = next->values[i];
                if (is_changed)
                        option->set(config, next->values[i]);
        }
}
