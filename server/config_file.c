/* SPDX-License-Identifier: Apache-2.0 */

#include "config_file.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"

struct config_file_text {
        struct config_file_text *next;
        char text[];
};

/* A file under reading. inih hands us sections, names and values; the lines we count as it asks for them. */
struct file {
        const char *name;
        FILE *stream;
        unsigned int line;
        unsigned int seen[CONFIG_OPTIONS_MAX]; /* the line in which each was given; 0: not yet */
        struct config_file_text **texts;
        const struct config_file_sink *sink;
};

static void fault(struct file *file, unsigned int line, const char *what) {
        char where[300];

        snprintf(where, sizeof(where), "%.250s:%u", file->name, line);
        file->sink->fault(file->sink->userdata, where, what);
}

static char *read_line(char *line, int size, void *userdata) {
        struct file *file = userdata;
        char *read = fgets(line, size, file->stream);

        if (!read)
                return NULL;

        file->line++;
        if (!strchr(line, '\n') && !feof(file->stream)) {
                fault(file, file->line, "the line is too long: fewer than 200 bytes were expected");
                while (!strchr(line, '\n') && fgets(line, size, file->stream))
                        ;
                snprintf(line, (size_t)size, "#\n");
        }
        return read;
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

static int take(void *userdata, const char *section, const char *name, const char *value) {
        struct file *file = userdata;
        const struct option *option = find(section, name);
        char text[300];

        if (!option) {
                snprintf(text, sizeof(text), "no such option: [%.60s] %.60s", section, name);
                fault(file, file->line, text);
                return 1;
        }
        if (file->seen[option - options] > 0) {
                snprintf(text, sizeof(text), "[%s] %s is given twice, first in line %u", section, name,
                         file->seen[option - options]);
                fault(file, file->line, text);
                return 1;
        }

        file->seen[option - options] = file->line;
        value = keep(file->texts, value);
        if (!value) {
                fault(file, file->line, "out of memory");
                return 1;
        }
        snprintf(text, sizeof(text), "%.250s:%u", file->name, file->line);
        file->sink->option(file->sink->userdata, option, value, text);
        return 1;
}

static void close_stream(FILE **stream) {
        if (*stream)
                fclose(*stream);
}

void config_file_read(const char *name, struct config_file_text **texts,
                      const struct config_file_sink *sink) {
        CLEANUP(close_stream) FILE *stream = fopen(name, "re");
        struct file file = { .name = name, .stream = stream, .texts = texts, .sink = sink };
        int line;

        if (!stream) {
                sink->fault(sink->userdata, *name ? name : "--config",
                            *name ? strerror(errno) : "a file was expected");
                return;
        }

        line = ini_parse_stream(read_line, &file, take, &file);
        if (line > 0)
                fault(&file, (unsigned int)line, "neither [section] nor name = value nor a comment");
        else if (line < 0 || ferror(stream))
                fault(&file, file.line, "cannot be read on");
}

void config_file_texts_free(struct config_file_text *texts) {
        while (texts) {
                struct config_file_text *next = texts->next;

                free(texts);
                texts = next;
        }
}
