/* SPDX-License-Identifier: Apache-2.0 */

/* Every fault is said, the first ends nothing; and each source is read whole, so no order matters within it. */

#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/topics.h"
#include "config_arguments.h"
#include "config_file.h"
#include "config_reading.h"
#include "policy_file.h"

void config_wrong(struct config_reading *reading, const char *where, const char *what) {
        if (reading->is_reload)
                log_error("SIGHUP: %s: %s", where, what);
        else
                fprintf(stderr, "statestored: %s: %s%s\n", where, what, reading->hint);
        reading->is_wrong = true;
}

void config_set(struct config_reading *reading, const struct option *option, const char *value,
                const char *where) {
        char text[256];

        if (value && option->set(reading->config, option, value) == 0) {
                reading->config->values[option - options] = value;
                return;
        }

        snprintf(text, sizeof(text), "%s was expected%s%s%s", option->expected, value ? ", not \"" : "",
                 value ? LOG_TEXT(slice_from_string(value)) : "", value ? "\"" : "");
        config_wrong(reading, where, text);
}

static void set_defaults(struct config_reading *reading) {
        for (size_t i = 0; i < n_config_options; i++)
                if (options[i].initial)
                        config_set(reading, &options[i], options[i].initial, options[i].flag);
}

static void take_line(void *userdata, const struct option *option, const char *value, const char *where) {
        config_set(userdata, option, value, where);
}

static void take_fault(void *userdata, const char *where, const char *what) {
        config_wrong(userdata, where, what);
}

static void read_file(struct config_reading *reading, const char *name) {
        struct config_file_sink sink = { .option = take_line, .fault = take_fault, .userdata = reading };

        if (!name)
                name = getenv("STATESTORE_CONFIG");
        if (name)
                config_file_read(name, &reading->config->file_texts, &sink);
}

static bool is_option(struct slice variable) {
        for (size_t i = 0; i < n_config_options; i++)
                if (slice_equal(variable, slice_from_string(option_variable(&options[i]).name)))
                        return true;
        return false;
}

/* Whether it reads like an option of one of our sections; others may have variables of our name, too. */
static bool is_of_a_section(struct slice variable) {
        for (size_t i = 0; i < n_config_options; i++) {
                struct option_variable like = option_variable(&options[i]);
                size_t length = strlen(like.name) - strlen(options[i].name);

                if (slice_starts_with(variable, (struct slice){ (const uint8_t *)like.name, length }))
                        return true;
        }
        return false;
}

static void find_unknown_variables(struct config_reading *reading) {
        for (char *const *at = environ; at && *at; at++) {
                struct slice value, variable = slice_split(slice_from_string(*at), '=', &value);

                if (value.length > 0 && is_of_a_section(variable) && !is_option(variable))
                        config_wrong(reading, LOG_TEXT(variable), "no such option");
        }
}

static void read_environment(struct config_reading *reading) {
        find_unknown_variables(reading);
        for (size_t i = 0; i < n_config_options; i++) {
                struct option_variable variable = option_variable(&options[i]);
                const char *value = getenv(variable.name);

                if (value && *value)
                        config_set(reading, &options[i], value, variable.name);
        }
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

static bool is_same(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether the option says how to reach a broker, or what it is like. */
static bool is_of_a_broker(const struct option *option) {
        static const char *const flags[] = { "--host",    "--user",        "--password-file",
                                             "--tls",     "--tls-ca-file", "--tls-certificate",
                                             "--tls-key", "--tls-alpn",    "--presence-topic" };

        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
                if (strcmp(option->flag, flags[i]) == 0)
                        return true;
        return false;
}

/* What --dev leaves to be said of its broker. */
static void check_dev(struct config_reading *reading) {
        const struct config *config = reading->config;

        if (!config->dev && config->port == 0)
                config_wrong(reading, "--port", "0 is for --dev, which takes a port that is free");
        for (size_t i = 0; i < n_config_options; i++) {
                if (is_same(config->values[i], options[i].initial))
                        continue;
                if (config->dev && is_of_a_broker(&options[i]))
                        config_wrong(reading, options[i].flag,
                                     "--dev starts a broker of its own, which has none of this");
                if (!config->dev && strcmp(options[i].flag, "--dev-listen") == 0)
                        config_wrong(reading, options[i].flag, "it is for the broker that --dev starts");
        }
        if (!config->dev)
                return;

        for (const char *at = config->client_id; *at; at++)
                if (iscntrl((unsigned char)*at)) {
                        config_wrong(reading, "--client-id",
                                     "with --dev it may not have control characters");
                        return;
                }
}

/* Where the broker is, and whether it is to be trusted. */
static void complete_broker(struct config_reading *reading) {
        struct config *config = reading->config;

        if (config->tls_ca_file)
                config->tls = true;
        if (!config->dev && endpoints_parse(slice_from_string(config->hosts), config->port,
                                            &config->endpoints, &config->n_endpoints) < 0)
                config_wrong(reading, "--host", "out of memory");
}

/* What several options say together. */
static void complete(struct config_reading *reading) {
        struct config *config = reading->config;

        complete_broker(reading);
        check_dev(reading);
        if (config->control && config->data_dir)
                config_wrong(reading, "--control",
                             "not with --data-dir: whoever reaches the broker could wipe what is kept");
        if (!config->tls_certificate != !config->tls_key)
                config_wrong(reading, config->tls_key ? "--tls-key" : "--tls-certificate",
                             "certificate and key belong together; the other one is missing");
        if (config->tls_certificate && !config->tls)
                config_wrong(reading, "--tls-certificate",
                             "without --tls on or --tls-ca-file it is not used");
        if (config->password_file && !config->user)
                config_wrong(reading, "--password-file", "a password needs a --user");

        if (config->presence_topic) {
                config->presence_filter = presence_filter(config->presence_topic);
                if (!config->presence_filter)
                        config_wrong(reading, "--presence-topic", "out of memory");
        }
}

static void read_policy(struct config_reading *reading) {
        struct config *config = reading->config;
        struct policy_file_sink sink = { .fault = take_fault, .userdata = reading };

        if (!config->policy_file)
                return;
        reading->hint = "";
        config->policy = policy_file_read(config->policy_file, config->allow_unverified, &sink);
        if (!config->policy)
                reading->is_wrong = true;
}

static enum config_result read_all(int n_arguments, char *const *arguments, bool is_reload,
                                   struct config *ret_config) {
        struct config_reading reading = { .config = ret_config, .hint = "", .is_reload = is_reload };

        *ret_config = (struct config){ 0 };
        if (config_arguments_print(n_arguments, arguments))
                return CONFIG_DONE;

        set_defaults(&reading);
        read_file(&reading, config_arguments_file(n_arguments, arguments));
        read_environment(&reading);
        reading.hint = "; see --help";
        config_arguments_read(&reading, n_arguments, arguments);
        if (!reading.is_wrong)
                complete(&reading);
        read_policy(&reading);

        if (reading.is_wrong)
                return CONFIG_WRONG;
        if (!reading.check_only)
                return CONFIG_RUN;
        printf("the configuration can be used\n");
        return CONFIG_DONE;
}

enum config_result config_read(int n_arguments, char *const *arguments, struct config *ret_config) {
        return read_all(n_arguments, arguments, false, ret_config);
}

enum config_result config_read_again(int n_arguments, char *const *arguments, struct config *ret_config) {
        return read_all(n_arguments, arguments, true, ret_config);
}

enum config_result config_read_places(const char *file, struct config *ret_config) {
        struct config_reading reading = { .config = ret_config, .hint = "" };

        *ret_config = (struct config){ 0 };
        set_defaults(&reading);
        read_file(&reading, file);
        read_environment(&reading);
        if (!reading.is_wrong)
                complete_broker(&reading);
        return reading.is_wrong ? CONFIG_WRONG : CONFIG_RUN;
}

void config_deinit(struct config *config) {
        endpoints_free(config->endpoints, config->n_endpoints);
        endpoints_free(config->http_listen, config->http_listen ? 1 : 0);
        free(config->presence_filter);
        free(config->persist_property);
        policy_free(config->policy);
        config_file_texts_free(config->file_texts);
        *config = (struct config){ 0 };
}

void config_reload(struct config *config, const struct config *next) {
        for (size_t i = 0; i < n_config_options; i++) {
                const struct option *option = &options[i];
                bool is_changed = !is_same(config->values[i], next->values[i]);

                if (is_changed)
                        log_info("[%s] %s has changed%s", option->section, option->name,
                                 option->is_live ? "" : ": this needs a restart");
                if (!option->is_live)
                        continue;

                /* also what has not changed: the text that config borrows is about to go */
                config->values[i] = next->values[i];
                if (next->values[i])
                        option->set(config, option, next->values[i]);
                else if (is_changed && option->field)
                        *(const char **)((char *)config + option->field) = NULL;
        }
}
