/* SPDX-License-Identifier: Apache-2.0 */

#include "app/dev_broker_conf.h"

#include "base/array.h"
#include "mosquitto_conf.h"

static bool begins_with(const char *line, const char *name) {
        return strncmp(line, name, strlen(name)) == 0;
}

void dev_broker_conf_append(struct buf *buf, const struct dev_broker_conf *conf) {
        static const char *const lines[] = { MOSQUITTO_CONF_LINES };

        for (size_t i = 0; i < ARRAY_LENGTH(lines); i++)
                if (begins_with(lines[i], "listener "))
                        buf_append_format(buf, "listener %u %s\n", conf->port, conf->address);
                else if (begins_with(lines[i], "plugin "))
                        buf_append_format(buf, "plugin %s\n", conf->plugin);
                else
                        buf_append_format(buf, "%s\n", lines[i]);
        /*
         * The limits of conf/mosquitto.conf protect clients from each other. The clients of a test
         * double do not need that, and their tests may use larger bursts. The packet size stays: a
         * value that production refuses is refused here. mosquitto uses the last line of each option.
         */
        buf_append_string(buf, "max_queued_messages 1000000\n"
                               "max_queued_bytes 536870912\n");

        /*
         * The log goes to a pipe. Log only what this process needs: a pipe that is read slowly must
         * not block the broker.
         */
        buf_append_string(buf, "log_timestamp false\n"
                               "log_type error\n"
                               "log_type warning\n"
                               "log_type notice\n" /* read by the plugin: slow_watchers.c */
                               "log_type information\n"
                               "connection_messages false\n");
        /*
         * By default mosquitto drops root. It then might not be able to read the plugin, and the
         * kernel would no longer kill it with its parent.
         */
        if (conf->is_root)
                buf_append_string(buf, "user root\n");
}
