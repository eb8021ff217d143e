/* SPDX-License-Identifier: Apache-2.0 */

/* Build tool: prints the options of statestored as a table, for the manual pages. */

#include <stdio.h>
#include <stdlib.h>

#include "config/option_table.h"

int main(void) {
        for (size_t i = 0; i < n_options; i++)
                option_print(&options[i], "");
        return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
