/* SPDX-License-Identifier: Apache-2.0 */

#include "config/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "config/config.h"
#include "config/option.h"

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
