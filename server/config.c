/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "common/hlc.h"
#include "common/parse.h"

#ifndef STATESTORED_VERSION
#error "the build says which version this is"
#endif

struct option {
        const char *name;
        const char *argument;
        const char *initial; /* read like any other value; NULL: none */
        const char *expected;
        const char *help;
        int (*set)(struct config *config, const char *value); /* 0 or -EINVAL */
};

static int set_host(struct config *config, const char *value) {
        config->host = value;
        return *value ? 0 : -EINVAL;
}

static int set_port(struct config *config, const char *value) {
        uint64_t port;

        if (parse_uint64(slice_from_string(value), &port) < 0 || port < 1 || port > UINT16_MAX)
                return -EINVAL;
        config->port = (uint16_t)port;
        return 0;
}

static int set_client_id(struct config *config, const char *value) {
        config->client_id = value;
        return *value && strlen(value) <= UINT16_MAX && slice_is_utf8(slice_from_string(value)) ? 0
                                                                                                : -EINVAL;
}

static int set_node_id(struct config *config, const char *value) {
        config->node_id = value;
        return strlen(value) <= 256 && hlc_node_is_valid(slice_from_string(value)) ? 0 : -EINVAL;
}

static int set_dialect(struct config *config, const char *value) {
        if (strcmp(value, "sdk") == 0)
                config->dialect = DIALECT_SDK;
        else if (strcmp(value, "document") == 0)
                config->dialect = DIALECT_DOCUMENT;
        else
                return -EINVAL;
        return 0;
}

static int set_max_keys(struct config *config, const char *value) {
        return parse_uint64(slice_from_string(value), &config->max_keys);
}

static int set_max_bytes(struct config *config, const char *value) {
        return parse_size(slice_from_string(value), &config->max_bytes);
}

static int set_max_registrations(struct config *config, const char *value) {
        return parse_uint64(slice_from_string(value), &config->max_registrations);
}

static int set_max_remembered_bytes(struct config *config, const char *value) {
        return parse_size(slice_from_string(value), &config->max_remembered_bytes);
}

static int set_ready_file(struct config *config, const char *value) {
        config->ready_file = value;
        return *value ? 0 : -EINVAL;
}

static int set_log_level(struct config *config, const char *value) {
        return log_level_from_string(value, &config->log_level);
}

#define NUMBER "a number"
#define SIZE   "a size, such as 1048576, 64MiB or 1GiB"

static const struct option options[] = {
        { "host", "HOST", "127.0.0.1", "a name or an address", "the broker", set_host },
        { "port", "PORT", "1883", "a port from 1 to 65535", "the broker's port", set_port },
        { "client-id", "ID", "statestored", "1 to 65535 bytes of UTF-8", "our MQTT client id",
          set_client_id },
        { "node-id", "ID", "StateStore", "1 to 256 bytes of UTF-8 without ':'",
          "who gives the versions; no client may have the same", set_node_id },
        { "dialect", "DIALECT", "sdk", "sdk or document",
          "sdk: what the published clients parse; document: the published page", set_dialect },
        { "max-keys", "N", "1000000", NUMBER, "keys stored at most", set_max_keys },
        { "max-bytes", "SIZE", "1GiB", SIZE, "memory for keys, values and registrations", set_max_bytes },
        { "max-registrations", "N", "100000", NUMBER, "KEYNOTIFY registrations at most",
          set_max_registrations },
        { "max-remembered-bytes", "SIZE", "64MiB", SIZE,
          "memory for answers to requests that may come twice", set_max_remembered_bytes },
        { "ready-file", "FILE", NULL, "a file name", "is written when requests are served", set_ready_file },
        { "log-level", "LEVEL", "info", "error, warning, info or debug", "what is logged on stderr",
          set_log_level },
};
#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static void print_help(void) {
        printf("Usage: statestored [OPTION]...\n"
               "A state store beside an MQTT 5 broker, for clients of the Azure IoT Operations state store\n"
               "protocol. It keeps keys, values, locks and who wants to be notified, in memory.\n"
               "\n");
        for (size_t i = 0; i < N_OPTIONS; i++) {
                int width = printf("  --%s %s", options[i].name, options[i].argument);

                printf("%*s%s", width < 32 ? 32 - width : 1, "", options[i].help);
                if (options[i].initial)
                        printf(" (%s)", options[i].initial);
                printf("\n");
        }
        printf("  --version                     print the version\n"
               "  --help                        print this\n"
               "\n"
               "It runs until SIGINT or SIGTERM, then answers what it has been asked and exits with 0. Exit "
               "1:\n"
               "the broker refuses it at start; 2: a wrong option.\n");
}

static const struct option *find_option(struct slice name) {
        for (size_t i = 0; i < N_OPTIONS; i++)
                if (slice_equal(name, slice_from_string(options[i].name)))
                        return &options[i];
        return NULL;
}

static enum config_result wrong(const char *argument, const char *what) {
        fprintf(stderr, "statestored: %s: %s; see --help\n", LOG_TEXT(slice_from_string(argument)), what);
        return CONFIG_WRONG;
}

/* Reads the option at arguments[*at] and moves *at past it. */
static enum config_result read_option(int n_arguments, char *const *arguments, int *at,
                                      struct config *config) {
        const char *argument = arguments[(*at)++];
        const struct option *option;
        struct slice value_slice;
        const char *value;
        char text[256];

        if (strncmp(argument, "--", 2) != 0)
                return wrong(argument, "not an option");

        option = find_option(slice_split(slice_from_string(argument + 2), '=', &value_slice));
        if (!option)
                return wrong(argument, "no such option");

        value = (const char *)value_slice.data;
        if (!value && *at < n_arguments)
                value = arguments[(*at)++];
        if (value && option->set(config, value) == 0)
                return CONFIG_RUN;

        snprintf(text, sizeof(text), "%s was expected%s%s%s", option->expected, value ? ", not \"" : "",
                 value ? LOG_TEXT(slice_from_string(value)) : "", value ? "\"" : "");
        return wrong(argument, text);
}

enum config_result config_read(int n_arguments, char *const *arguments, struct config *ret_config) {
        struct config config = { 0 };
        enum config_result result = CONFIG_RUN;

        for (size_t i = 0; i < N_OPTIONS; i++)
                if (options[i].initial)
                        options[i].set(&config, options[i].initial);

        for (int at = 1; at < n_arguments && result == CONFIG_RUN;) {
                if (strcmp(arguments[at], "--help") == 0) {
                        print_help();
                        return CONFIG_DONE;
                }
                if (strcmp(arguments[at], "--version") == 0) {
                        printf("statestored %s\n", STATESTORED_VERSION);
                        return CONFIG_DONE;
                }
                result = read_option(n_arguments, arguments, &at, &config);
        }

        *ret_config = config;
        return result;
}
