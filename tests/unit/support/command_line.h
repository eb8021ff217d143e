/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <criterion/criterion.h>

#include "config/reading.h"
#include "unit/support/capture.h"

/* statestored's configuration, read from arguments as a test gives them. */

#define N_ARGUMENTS_MAX 8

/* The arguments up to the first NULL, with the program's name before them. */
static inline enum config_result read_config(const char *const *arguments, struct config *ret_config) {
        char *all[N_ARGUMENTS_MAX + 1] = { (char *)"statestored" };
        int n = 1;

        for (; n <= N_ARGUMENTS_MAX && arguments[n - 1]; n++)
                all[n] = (char *)arguments[n - 1];
        return config_read(n, all, ret_config);
}

/* What it prints on this descriptor; freed by the caller. */
static inline char *printed_by(int fd, const char *const *arguments, enum config_result expected) {
        struct capture capture;
        struct config config;
        enum config_result result;
        char *printed;

        capture_start(&capture, fd);
        result = read_config(arguments, &config);
        printed = capture_end(&capture);
        cr_expect_eq(result, expected);
        config_deinit(&config);
        return printed;
}
