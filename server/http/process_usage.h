/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Resources that this process uses. A value is 0 if it cannot be determined. */
struct process_usage {
        uint64_t resident_bytes;
        uint64_t n_open_fds, max_fds;
        uint64_t cpu_ms;       /* user and system, all threads */
        uint64_t started_at_s; /* since the Unix epoch */
};
void process_usage_read(struct process_usage *ret_usage);
