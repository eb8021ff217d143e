/* SPDX-License-Identifier: Apache-2.0 */

#include "http/process_usage.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t resident_bytes(void) {
        FILE *file = fopen("/proc/self/statm", "re");
        unsigned long n_pages = 0;

        if (!file)
                return 0;
        if (fscanf(file, "%*u %lu", &n_pages) != 1)
                n_pages = 0;
        fclose(file);
        return (uint64_t)n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_open_fds(void) {
        DIR *directory = opendir("/proc/self/fd");
        const struct dirent *entry;
        uint64_t n = 0;

        if (!directory)
                return 0;
        while ((entry = readdir(directory)))
                n += entry->d_name[0] != '.';
        closedir(directory);
        return n - (n > 0); /* without the descriptor of the directory itself */
}

static uint64_t to_ms(struct timeval time) {
        return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_usec / 1000;
}

/*
 * Field 22 of /proc/self/stat: clock ticks since boot. Field 2, the name, is in parentheses and may contain
 * blanks.
 */
static uint64_t started_at_s(void) {
        FILE *file = fopen("/proc/self/stat", "re");
        unsigned long long ticks = 0;
        struct timespec wall, boot;

        if (!file)
                return 0;
        if (fscanf(file,
                   "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                   "%*d %llu",
                   &ticks) != 1)
                ticks = 0;
        fclose(file);
        if (ticks == 0)
                return 0;

        clock_gettime(CLOCK_REALTIME, &wall);
        clock_gettime(CLOCK_BOOTTIME, &boot);
        return (uint64_t)(wall.tv_sec - boot.tv_sec) + ticks / (uint64_t)sysconf(_SC_CLK_TCK);
}

void process_usage_read(struct process_usage *ret_usage) {
        struct rlimit limit = { 0 };
        struct rusage usage = { 0 };

        getrlimit(RLIMIT_NOFILE, &limit);
        getrusage(RUSAGE_SELF, &usage);
        *ret_usage = (struct process_usage){
                .resident_bytes = resident_bytes(),
                .n_open_fds = count_open_fds(),
                .max_fds = limit.rlim_cur,
                .cpu_ms = to_ms(usage.ru_utime) + to_ms(usage.ru_stime),
                .started_at_s = started_at_s(),
        };
}
