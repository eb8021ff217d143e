/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "option_table.h"

/* Options from an INI file. */

struct config_file_text;

struct config_file_sink {
        /* An option's value, in the order of the file; it lives as long as the texts. where is FILE:LINE. */
        void (*option)(void *userdata, const struct option *option, const char *value, const char *where);

        /* What is wrong and what was expected: a line that is none, no such option, one given twice, no such file. */
        void (*fault)(void *userdata, const char *where, const char *what);
        void *userdata;
};

/* *texts: what the values are kept in, added to; freed with config_file_texts_free(). */
void config_file_read(const char *name, struct config_file_text **texts,
                      const struct config_file_sink *sink);

/* Accepts NULL. */
void config_file_texts_free(struct config_file_text *texts);
