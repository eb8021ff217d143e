/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/options.h"

#include <errno.h>
#include <stdlib.h>

#include "base/parse.h"
#include "plugin/broker.h"
#include "plugin/internal.h"

/* Upper limits that keep calculations in range: a year, and the address space of small machines. */
#define WAIT_S_MAX      UINT64_C(31536000)
#define QUEUE_BYTES_MAX UINT64_C(2147483647)

static int set_string(char **option, const char *value) {
        char *copy;

        if (value[0] == '\0')
                return -EINVAL;
        copy = strdup(value);
        if (!copy)
                return -ENOMEM;

        free(*option);
        *option = copy;
        return 0;
}

static int set_undecided(struct plugin_load *load, const char *value) {
        if (strcmp(value, "allow") == 0)
                load->undecided = UNDECIDED_ALLOW;
        else if (strcmp(value, "deny") == 0)
                load->undecided = UNDECIDED_DENY;
        else
                return -EINVAL;
        return 0;
}

static int set_number(uint64_t *option, const char *value, uint64_t max) {
        return parse_uint64(slice_from_string(value), option) < 0 || *option > max ? -EINVAL : 0;
}

static int set_reply_prefix(struct plugin *plugin, const char *value) {
        if (value[0] == '$' || strpbrk(value, "+#"))
                return -EINVAL;
        return set_string(&plugin->reply_prefix, value);
}

static int set_option(struct plugin_load *load, const char *key, const char *value) {
        if (!value)
                return -EINVAL;
        if (strcmp(key, "statestored_username") == 0)
                return set_string(&load->username, value);
        if (strcmp(key, "undecided") == 0)
                return set_undecided(load, value);
        if (strcmp(key, "statestored_wait") == 0)
                return set_number(&load->plugin->wait_s, value, WAIT_S_MAX);
        if (strcmp(key, "statestored_queue_bytes") == 0)
                return set_number(&load->plugin->queue_bytes_max, value, QUEUE_BYTES_MAX);
        if (strcmp(key, "statestored_reply_prefix") == 0)
                return set_reply_prefix(load->plugin, value);
        return -EINVAL;
}

int options_set(struct plugin_load *load, const struct mosquitto_opt *options, int n_options) {
        int r;

        for (int i = 0; i < n_options; i++) {
                r = set_option(load, options[i].key, options[i].value);
                if (r == -EINVAL)
                        mosquitto_log_printf(
                                MOSQ_LOG_ERR,
                                "statestore: invalid option: plugin_opt_%s %s; valid options are "
                                "plugin_opt_statestored_username NAME, "
                                "plugin_opt_statestored_wait SECONDS, "
                                "plugin_opt_statestored_queue_bytes BYTES, "
                                "plugin_opt_statestored_reply_prefix TOPIC/ and "
                                "plugin_opt_undecided allow or deny",
                                options[i].key, options[i].value ? options[i].value : "");
                if (r < 0)
                        return r;
        }
        return 0;
}
