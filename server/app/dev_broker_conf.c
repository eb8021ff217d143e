/* SPDX-License-Identifier: Apache-2.0 */

#include "app/dev_broker_conf.h"

#include "mosquitto_conf.h"

static void append_line(struct buf *buf, const char *name, const char *value) {
        buf_append_string(buf, name);
        buf_append_string(buf, value);
        buf_append_string(buf, "\n");
}

static bool begins_with(const char *line, const char *name) {
        return strncmp(line, name, strlen(name)) == 0;
}

void broker_conf_append(struct buf *buf, const struct broker_conf *conf) {
        static const char *const lines[] = { MOSQUITTO_CONF_LINES };

        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
                if (begins_with(lines[i], "listener ")) {
                        buf_append_string(buf, "listener ");
                        buf_append_uint(buf, conf->port);
                        append_line(buf, " ", conf->address);
                } else if (begins_with(lines[i], "plugin ")) {
                        append_line(buf, "plugin ", conf->plugin);
                } else if (begins_with(lines[i], "plugin_opt_statestored_client_id ")) {
                        append_line(buf, "plugin_opt_statestored_client_id ", conf->client_id);
                } else {
                        append_line(buf, lines[i], "");
                }

        /* we read what it says until it serves; what clients do is not for a pipe that we may be slow to read */
        buf_append_string(buf, "log_dest stderr\n"
                               "log_timestamp false\n"
                               "log_type error\n"
                               "log_type warning\n"
                               "log_type information\n"
                               "connection_messages false\n");
        /* it would become a user who may not read our folder, and with it the plugin; the kernel's promise to end it with us goes too */
        if (conf->is_root)
                buf_append_string(buf, "user root\n");
}
