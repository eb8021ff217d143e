/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What statestorectl tells the shell. Commands return these; --help explains them. */
enum exit_code {
        EXIT_DONE = 0,
        EXIT_NOT_MET = 1,     /* not found, or the condition was not met: nothing was changed */
        EXIT_USAGE = 2,       /* the command line, or a file that it names */
        EXIT_NO_ANSWER = 3,   /* no broker, no store, or not in time */
        EXIT_STORE_ERROR = 4, /* the store answered with an error */
};
