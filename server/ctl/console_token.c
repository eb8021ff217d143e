/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "config/console_users.h"
#include "ctl/command_run.h"

/* The token goes to stderr, so that it does not get into the file to which stdout is appended. */
enum exit_code command_console_token(struct command_run *run) {
        const char *name = run->options->words[0];
        struct console_token token;

        if (!console_user_name_is_valid(name)) {
                complain("a name of at most 100 bytes was expected, without = and :, and not beginning with "
                         "[ # or ;");
                return EXIT_USAGE;
        }
        token = console_token_make();
        buf_append_format(&run->output, "%s = %s%s\n", name, token.hash,
                          run->options->is_operator ? " operator" : "");
        fprintf(stderr, "%s\n", token.token);
        return EXIT_DONE;
}
