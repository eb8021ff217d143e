/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What the kernel says of a process; one that is not there ends the program. pid 0: this one. */

/* Computed so far by all of its threads, in nanoseconds. */
int64_t process_cpu_ns(uint64_t pid);

/* Resident memory in bytes. */
uint64_t process_resident_bytes(uint64_t pid);
