/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/ready_file.h"

#include <stdio.h>

#include "bench/fail.h"

void ready_file_write(const char *name) {
        FILE *file;

        if (!name)
                return;

        file = fopen(name, "we");
        if (!file || fclose(file) != 0)
                fail("%s: %m", name);
}
