/* SPDX-License-Identifier: Apache-2.0 */

#include "config/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/ini_file.h"
#include "config/option.h"

static const struct option *find_setting(const char *section, const char *name) {
        for (size_t i = 0; i < n_settings; i++)
                if (strcmp(config_options[i].section, section) == 0 &&
                    strcmp(config_options[i].name, name) == 0)
                        return &config_options[i];
        return NULL;
}

static bool is_section(const char *section) {
        for (size_t i = 0; i < n_settings; i++)
                if (strcmp(config_options[i].section, section) == 0)
                        return true;
        return false;
}

static void config_file_on_section(void *userdata, const char *section, unsigned int line) {
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

static void config_file_on_value(void *userdata, const char *section, const char *name, const char *value,
                                 unsigned int line) {
        struct config_reading *reading = userdata;
        struct ini_position where = ini_position(reading->file, line);
        const struct option *option = find_setting(section, name);
        unsigned int *first = option ? &reading->lines[option - config_options] : NULL;
        char text[300];

        if (*section && !is_section(section))
                return; /* config_file_on_section() has reported it */
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

        value = config_store_text(&reading->config->file_texts, value);
        if (value)
                config_set(reading, option, value, where.text);
        else
                config_report(reading, where.text, "out of memory");
        *first = line;
}

void config_read_file(struct config_reading *reading, const char *name) {
        struct ini_sink sink = { .section = config_file_on_section,
                                 .value = config_file_on_value,
                                 .fault = config_take_fault,
                                 .userdata = reading };

        reading->file = name ? name : getenv("STATESTORE_CONFIG");
        if (reading->file && *reading->file && config_check_readable(reading, reading->file))
                ini_file_read(reading->file, &sink);
}
