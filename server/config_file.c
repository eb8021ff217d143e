/* SPDX-License-Identifier: Apache-2.0 */

#include "config_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ini_file.h"

struct config_file_text {
        struct config_file_text *next;
        char text[];
};

struct file {
        const char *name;
        unsigned int seen[CONFIG_OPTIONS_MAX]; /* the line in which each was given; 0: not yet */
        struct config_file_text **texts;
        const struct config_file_sink *sink;
};

static void say(void *userdata, const char *where, const char *what) {
        struct file *file = userdata;

        file->sink->fault(file->sink->userdata, where, what);
}

static const struct option *find(const char *section, const char *name) {
        for (size_t i = 0; i < n_config_options; i++)
                if (strcmp(options[i].section, section) == 0 && strcmp(options[i].name, name) == 0)
                        return &options[i];
        return NULL;
}

static const char *keep(struct config_file_text **texts, const char *text) {
        size_t size = strlen(text) + 1;
        struct config_file_text *kept = malloc(sizeof(*kept) + size);

        if (!kept)
                return NULL;

        memcpy(kept->text, text, size);
        kept->next = *texts;
        *texts = kept;
        return kept->text;
}

static void take(void *userdata, const char *section, const char *name, const char *value,
                 unsigned int line) {
        struct file *file = userdata;
        const struct option *option = find(section, name);
        struct ini_place where = ini_place(file->name, line);
        char text[300];

        if (!option) {
                snprintf(text, sizeof(text), "no such option: [%.60s] %.60s", section, name);
                say(file, where.text, text);
                return;
        }
        if (file->seen[option - options] > 0) {
                snprintf(text, sizeof(text), "[%s] %s is given twice, first in line %u", section, name,
                         file->seen[option - options]);
                say(file, where.text, text);
                return;
        }

        file->seen[option - options] = line;
        value = keep(file->texts, value);
        if (value)
                file->sink->option(file->sink->userdata, option, value, where.text);
        else
                say(file, where.text, "out of memory");
}

void config_file_read(const char *name, struct config_file_text **texts,
                      const struct config_file_sink *sink) {
        struct file file = { .name = name, .texts = texts, .sink = sink };
        struct ini_sink lines = { .value = take, .fault = say, .userdata = &file };

        ini_file_read(name, &lines);
}

void config_file_texts_free(struct config_file_text *texts) {
        while (texts) {
                struct config_file_text *next = texts->next;

                free(texts);
                texts = next;
        }
}
