/* SPDX-License-Identifier: Apache-2.0 */

#include "config/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "config/config.h"
#include "config/option.h"
#include "config/reading.h"

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

void config_read_environment(struct config_reading *reading) {
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
        const struct option *option = config_find_flag(flag);

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
        stored = host ? config_store_text(&reading->config->file_texts, host) : NULL;
        if (!stored) {
                config_report(reading, variable, "out of memory");
                return;
        }
        set_from_client_variable(reading, "--host", stored, variable);
        if (is_tls)
                set_from_client_variable(reading, "--tls", "on", variable);
}

void config_read_client_variables(struct config_reading *reading) {
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
