/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/arguments.h"

#include "base/bytes.h"
#include "bench/fail.h"

static const struct argument *find(const struct argument *table, const char *text) {
        if (strncmp(text, "--", 2) == 0)
                for (; table->name; table++)
                        if (strcmp(table->name, text + 2) == 0)
                                return table;
        fail("%s: no such option", text);
}

static void add_text(const struct argument *argument, const char *text) {
        struct argument_texts *texts = argument->value;

        if (texts->n_texts == ARGUMENT_TEXTS_MAX)
                fail("--%s: more than %d", argument->name, ARGUMENT_TEXTS_MAX);
        texts->texts[texts->n_texts++] = text;
}

void arguments_read(int n_arguments, char *const *arguments, const struct argument *table) {
        for (int i = 1; i < n_arguments; i++) {
                const struct argument *argument = find(table, arguments[i]);

                if (argument->type == ARGUMENT_SWITCH) {
                        *(bool *)argument->value = true;
                        continue;
                }
                if (++i == n_arguments)
                        fail("--%s: a value was expected", argument->name);
                if (argument->type == ARGUMENT_TEXT)
                        *(const char **)argument->value = arguments[i];
                else if (argument->type == ARGUMENT_TEXTS)
                        add_text(argument, arguments[i]);
                else if (parse_uint64(slice_from_string(arguments[i]), argument->value) < 0)
                        fail("--%s: a number was expected, not \"%s\"", argument->name, arguments[i]);
        }
}
