/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <criterion/criterion.h>

#include "config/config.h"
#include "unit/support/capture.h"

/* Reads the configuration of statestored from arguments. */

#define N_ARGUMENTS_MAX 8

/* Read the arguments, which NULL ends. */
static inline enum config_result read_config(const char *const *arguments, struct config *ret_config) {
        char *all[N_ARGUMENTS_MAX + 1] = { (char *)"statestored" };
        int n = 1;

        for (; n <= N_ARGUMENTS_MAX && arguments[n - 1]; n++)
                all[n] = (char *)arguments[n - 1];
        return config_read(n, all, false, ret_config);
}

/* Return what reading prints on this descriptor; the caller frees it. */
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
