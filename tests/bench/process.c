/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/fail.h"
#include "bench/stopwatch.h"

/* /proc/PID/NAME as text. */
static void read_file(uint64_t pid, const char *name, char *text, size_t size) {
        char path[64];
        size_t length;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%" PRIu64 "/%s", pid ? pid : (uint64_t)getpid(), name);
        file = fopen(path, "re");
        if (!file)
                fail("%s: %m", path);
        length = fread(text, 1, size - 1, file);
        text[length] = '\0';
        fclose(file);
}

int64_t process_cpu_ns(uint64_t pid) {
        clockid_t clock;

        if (clock_getcpuclockid((pid_t)pid, &clock) != 0)
                fail("process %" PRIu64 " does not exist", pid);
        return stopwatch_of(clock);
}

uint64_t process_resident_bytes(uint64_t pid) {
        unsigned long n_pages;
        char text[256];

        read_file(pid, "statm", text, sizeof(text));
        if (sscanf(text, "%*u %lu", &n_pages) != 1)
                fail("cannot parse /proc/%" PRIu64 "/statm", pid);
        return n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
