/* SPDX-License-Identifier: Apache-2.0 */

/* A command line with one argument per line, then an empty line and a configuration file. */

#include <stdlib.h>

#include "base/cleanup.h"
#include "config/config.h"
#include "fuzz/fuzz.h"

#define N_ARGUMENTS_MAX 40

static void check(const struct config *config) {
        ASSERT(config->dev ? config->n_endpoints == 0
                           : config->n_endpoints > 0 && config->n_endpoints < 10000);
        for (size_t i = 0; i < config->n_endpoints; i++)
                ASSERT(config->endpoints[i].host[0] != '\0');
        ASSERT((config->dev || config->port > 0) && config->keepalive_ms >= 5000);
        ASSERT(!config->client_id ||
               (slice_is_utf8(slice_from_string(config->client_id)) && config->client_id[0] != '\0'));
        ASSERT(hlc_node_is_valid(slice_from_string(config->node_id)) && strlen(config->node_id) <= 256);
        ASSERT(!config->credentials.tls_certificate == !config->credentials.tls_key);
        ASSERT(config->dialect == DIALECT_SDK || config->dialect == DIALECT_DOCUMENT);
        ASSERT(config->persist <= PERSIST_CUSTOM && config->log_level <= LOG_DEBUG);
        if (config->persist_property)
                ASSERT(config->persist_property[0] != '\0' &&
                       config->persist_property_value ==
                               config->persist_property + strlen(config->persist_property) + 1);
        for (const char *text = config->presence_topic; text && *text; text++)
                ASSERT(*text != '\n');
}

/*
 * Return the lines before the empty line as arguments, each in its own allocation, and the rest as
 * the file.
 */
static int split(struct slice input, char **arguments, struct slice *ret_file) {
        int n = 1;

        while (input.data && n < N_ARGUMENTS_MAX) {
                struct slice line = slice_split(input, '\n', &input);

                if (line.length == 0)
                        break;
                if (slice_starts_with(line, SLICE_LITERAL("--config")))
                        continue; /* no other file may be read */
                arguments[n] = strndup((const char *)line.data, line.length);
                ASSERT(arguments[n++]);
        }
        *ret_file = input;
        return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char program[] = "statestored", config_flag[] = "--config";
        char *arguments[N_ARGUMENTS_MAX + 3] = { program };
        struct config config;
        struct slice file;
        int n_owned, n;

        log_set_level(LOG_ERROR);
        n = n_owned = split((struct slice){ data, size }, arguments, &file);
        if (file.data) {
                arguments[n++] = config_flag;
                arguments[n++] = input_file(file);
        }

        if (config_read(n, arguments, false, &config) == CONFIG_RUN)
                check(&config);
        config_deinit(&config);
        while (n_owned > 1)
                free(arguments[--n_owned]);
        return 0;
}
