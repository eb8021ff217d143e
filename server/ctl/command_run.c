/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/command_run.h"

#include "base/json.h"

const char *command_run_pattern(const struct command_run *run) {
        return run->options->n_words > 0 ? run->options->words[0] : "*";
}

void json_add_key_details(struct buf *line, const struct store_reply *reply) {
        struct key_details details;

        if (!store_reply_details(reply, &details))
                return;
        if (details.expires_in_ms > 0)
                json_add_uint(line, "expires_in_ms", details.expires_in_ms);
        else
                json_add_bytes(line, "expires_in_ms", (struct slice){ 0 }, false);
        json_add_bytes(line, "token", details.fence, false);
}

enum exit_code command_exit_code(const struct command *command, enum exit_code code) {
        if (code == EXIT_DONE || !command || !(command->needs & NEEDS_PROGRAM))
                return code;
        return EXIT_BESIDE_PROGRAM + (code == EXIT_TOO_LARGE ? EXIT_STORE_ERROR : code);
}
