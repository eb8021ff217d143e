/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/command_options.h"
#include "ctl/samples.h"

/* One line for a person: the URL, the cause, and what to do. */
struct store_metrics_problem {
        char text[512];
};

/*
 * Read the store's metrics from options->metrics_url. Replaces *samples. Returns 0; -EIO if the
 * page cannot be read; or -EBADMSG if it is not a page of statestored, or memory is exhausted.
 * *ret_problem is written on error only.
 */
int store_metrics_read(const struct command_options *options, struct samples *samples,
                       struct store_metrics_problem *ret_problem);
