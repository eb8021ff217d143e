/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Figures of a process from the kernel. A process that does not exist ends the program. pid 0: this
 * process.
 */

/* CPU time of all threads in nanoseconds. */
int64_t process_cpu_ns(uint64_t pid);

/* Resident memory in bytes. */
uint64_t process_resident_bytes(uint64_t pid);
