/* SPDX-License-Identifier: Apache-2.0 */

/* The commands check, backup and restore: on the data directory of a store. */

#include <inttypes.h>

#include "base/log.h"
#include "ctl/command_run.h"
#include "storage/sqlite/maintenance.h"

/* Print what was verified. r: the result of the function that has verified it. */
static enum exit_code report_census(struct command_run *run, int r, const char *name,
                                    const struct storage_census *census) {
        if (r < 0)
                return EXIT_STORE_ERROR;

        buf_append_format(&run->output,
                          "%s: %" PRIu64 " keys, %" PRIu64 " registrations, %" PRIu64
                          " remembered replies, %" PRIu64 " pending notifications: no damage found\n",
                          LOG_STRING(name), census->n_entries, census->n_registrations, census->n_replies,
                          census->n_notifications);
        return EXIT_DONE;
}

enum exit_code command_check(struct command_run *run) {
        const char *name = run->options->words[0];
        struct storage_census census;

        return report_census(run, storage_sqlite_check(name, &census), name, &census);
}

enum exit_code command_backup(struct command_run *run) {
        const char **words = run->options->words;
        struct storage_census census;

        return report_census(run, storage_sqlite_backup(words[0], words[1], &census), words[1], &census);
}

enum exit_code command_restore(struct command_run *run) {
        const char **words = run->options->words;
        struct storage_census census;

        return report_census(run, storage_sqlite_restore(words[0], words[1], &census), words[1], &census);
}
