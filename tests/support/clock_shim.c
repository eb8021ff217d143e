/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For LD_PRELOAD: clocks that a test controls. The environment variable STATESTORE_CLOCK names a
 * file with an int64_t: the number of milliseconds by which the wall clock is ahead. The test steps
 * the clock by writing to the file. If a second int64_t follows that is not 0, the wall clock has
 * stopped at this number of nanoseconds since the epoch. If a third one follows, it is the number of
 * milliseconds, in whole seconds, by which the monotonic clock is ahead.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct clock {
        int64_t ahead_ms, stopped_ns, monotonic_ahead_ms; /* 0 beyond the end of the file */
};
static const volatile struct clock *control;

__attribute__((constructor)) static void open_clock(void) {
        const char *path = getenv("STATESTORE_CLOCK");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*control), PROT_READ, MAP_SHARED, fd, 0);

        if (memory == MAP_FAILED)
                abort();
        control = memory;
        close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
        int r = (int)syscall(SYS_clock_gettime, clock, time);
        int64_t ms;

        if (r == 0 && clock == CLOCK_MONOTONIC && control)
                time->tv_sec += control->monotonic_ahead_ms / 1000; /* whole seconds */
        if (r < 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) || !control)
                return r;

        if (control->stopped_ns > 0) {
                time->tv_sec = control->stopped_ns / 1000000000;
                time->tv_nsec = control->stopped_ns % 1000000000;
                return 0;
        }
        ms = (int64_t)time->tv_sec * 1000 + time->tv_nsec / 1000000 + control->ahead_ms;
        if (ms < 0)
                ms = 0;
        time->tv_sec = ms / 1000;
        time->tv_nsec = ms % 1000 * 1000000 + time->tv_nsec % 1000000;
        return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
        struct timespec now;

        (void)zone;
        clock_gettime(CLOCK_REALTIME, &now);
        *time = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
        return 0;
}

time_t time(time_t *ret_time) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        if (ret_time)
                *ret_time = now.tv_sec;
        return now.tv_sec;
}
