/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
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

static int set_username(struct plugin_load *load, const char *value) {
        return set_string(&load->username, value);
}

static int set_load_client_id(struct plugin_load *load, const char *value) {
        return set_string(&load->client_id, value);
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

static int set_wait(struct plugin_load *load, const char *value) {
        return set_number(&load->plugin->wait_s, value, WAIT_S_MAX);
}

static int set_queue_bytes(struct plugin_load *load, const char *value) {
        return set_number(&load->plugin->queue_bytes_max, value, QUEUE_BYTES_MAX);
}

static int set_reply_prefix(struct plugin_load *load, const char *value) {
        if (value[0] == '$' || strpbrk(value, "+#"))
                return -EINVAL;
        return set_string(&load->plugin->reply_prefix, value);
}

static const struct {
        const char *key;
        int (*set)(struct plugin_load *load, const char *value);
} options_table[] = {
        { "statestored_username", set_username },
        { "statestored_client_id", set_load_client_id },
        { "undecided", set_undecided },
        { "statestored_wait", set_wait },
        { "statestored_queue_bytes", set_queue_bytes },
        { "statestored_reply_prefix", set_reply_prefix },
};

static int set_plugin_option(struct plugin_load *load, const struct mosquitto_opt *option) {
        for (size_t i = 0; i < ARRAY_LENGTH(options_table); i++)
                if (strcmp(option->key, options_table[i].key) == 0)
                        return option->value ? options_table[i].set(load, option->value) : -EINVAL;
        return -EINVAL;
}

int options_set(struct plugin_load *load, const struct mosquitto_opt *options, int n_options) {
        int r;

        for (int i = 0; i < n_options; i++) {
                r = set_plugin_option(load, &options[i]);
                if (r == -EINVAL)
                        mosquitto_log_printf(
                                MOSQ_LOG_ERR,
                                "statestore: invalid option: plugin_opt_%s %s; valid options are "
                                "plugin_opt_statestored_username NAME, "
                                "plugin_opt_statestored_client_id ID, "
                                "plugin_opt_statestored_wait SECONDS, "
                                "plugin_opt_statestored_queue_bytes BYTES, "
                                "plugin_opt_statestored_reply_prefix TOPIC/ and "
                                "plugin_opt_undecided allow or deny",
                                options[i].key, options[i].value ? options[i].value : "");
                if (r < 0)
                        return r;
        }
        if (!load->username && !load->client_id) {
                r = set_string(&load->client_id, COMPANION_CLIENT_ID_DEFAULT);
                if (r < 0)
                        return r;
        }
        if (load->client_id)
                load->plugin->requires_client_id = true;
        return 0;
}
