/* SPDX-License-Identifier: Apache-2.0 */

#include "app/service_manager.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/system_clock.h"

#define STATUS_MAX 512

void service_say_status(const char *format, ...) {
        char status[STATUS_MAX];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(status, sizeof(status), format, arguments);
        va_end(arguments);

        status[strcspn(status, "\n")] = '\0'; /* a second line would be another assignment */
        sd_notifyf(0, "STATUS=%s", status);
}

void service_say_ready(void) {
        sd_notify(0, "READY=1");
}

void service_say_reloading(void) {
        sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)system_clock_mono_ns() / 1000);
}

void service_say_stopping(void) {
        sd_notify(0, "STOPPING=1");
}

void service_feed_watchdog(void) {
        sd_notify(0, "WATCHDOG=1");
}

int64_t service_watchdog_ms(void) {
        uint64_t interval_us;

        return sd_watchdog_enabled(0, &interval_us) > 0 ? (int64_t)(interval_us / 1000) : 0;
}
