/* SPDX-License-Identifier: Apache-2.0 */

#include "config/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "config/ini_file.h"
#include "config/option.h"

#define FAULTS_MAX 100 /* a file with more is probably no configuration file */

void config_report(struct config_reading *reading, const char *where, const char *what) {
        if (reading->n_faults++ == FAULTS_MAX)
                what = "further faults are not reported";
        else if (reading->n_faults > FAULTS_MAX)
                return;

        if (reading->is_reload)
                log_error("SIGHUP: %s: %s", where, what);
        else
                fprintf(stderr, "%s: %s: %s%s\n", reading->program, where, what, reading->hint);
}

void config_take_fault(void *userdata, const char *where, const char *what) {
        config_report(userdata, where, what);
}

const char *config_store_text(struct config_text **texts, const char *text) {
        size_t size = strlen(text) + 1;
        struct config_text *stored = malloc(sizeof(*stored) + size);

        if (!stored)
                return NULL;

        memcpy(stored->text, text, size);
        stored->next = *texts;
        *texts = stored;
        return stored->text;
}

/* Return the text of a list with this value at its end, or NULL without memory. */
static const char *extend_list(struct config *config, const char *list, const char *value) {
        CLEANUP(cleanup_free) char *text = NULL;

        if (!list)
                return value;
        return asprintf(&text, "%s, %s", list, value) < 0 ? NULL
                                                          : config_store_text(&config->file_texts, text);
}

void config_set(struct config_reading *reading, const struct option *option, const char *value,
                const char *where) {
        const char **text = &reading->config->values[option - config_options];
        struct option_fault fault;

        reading->lines[option - config_options] = 0;
        if (option_apply(option, reading->config, value, &fault))
                *text = option->is_list ? extend_list(reading->config, *text, value) : value;
        else
                config_report(reading, where, fault.text);
}

static const struct option *find_option_of_flag(const char *flag) {
        const struct option *option = config_options;

        while (strcmp(option->flag, flag) != 0)
                option++;
        return option;
}

void config_report_setting(struct config_reading *reading, const char *flag, const char *what) {
        const struct option *option = find_option_of_flag(flag);
        unsigned int line = reading->lines[option - config_options];
        char text[300];

        if (line == 0) {
                config_report(reading, flag, what);
                return;
        }
        snprintf(text, sizeof(text), "[%s] %s: %s", option->section, option->name, what);
        config_report(reading, ini_position(reading->file, line).text, text);
}

bool config_check_readable(struct config_reading *reading, const char *name) {
        int r = reading->is_reload ? regular_file_check(name, INI_FILE_LENGTH_MAX) : 0;

        if (r != 0)
                config_report(reading, name, regular_file_fault(r, INI_FILE_LENGTH_MAX).text);
        return r == 0;
}
