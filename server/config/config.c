/* SPDX-License-Identifier: Apache-2.0 */

/* A configuration that was read: what it owns, and what a reload by SIGHUP changes. */

#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/endpoint.h"
#include "base/log.h"
#include "config/console_users.h"
#include "config/option.h"
#include "policy/policy.h"

bool config_has_default_port(const struct config *config) {
        size_t i = 0;

        while (strcmp(config_options[i].flag, "--port") != 0)
                i++;
        return !config->values[i];
}

/* Return whether only programs on this machine reach the address. */
static bool is_loopback(const struct endpoint *endpoint) {
        return strncmp(endpoint->host, "127.", 4) == 0 || strcmp(endpoint->host, "::1") == 0;
}

bool config_serves_console(const struct config *config) {
        return config->http_listen && (config->http_certificate || is_loopback(config->http_listen));
}

static void free_texts(struct config_text *texts) {
        while (texts) {
                struct config_text *next = texts->next;

                free(texts);
                texts = next;
        }
}

void config_deinit(struct config *config) {
        endpoints_free(config->endpoints, config->n_endpoints);
        endpoints_free(config->http_listen, config->http_listen ? 1 : 0);
        free(config->presence_filter);
        free(config->persist_property);
        free(config->etcd.endpoints_text);
        for (size_t i = 0; i < config->n_persist_rules; i++)
                free((void *)config->persist_rules[i].text.data);
        free(config->persist_rules);
        policy_free(config->policy);
        console_users_free(config->console_users);
        free_texts(config->file_texts);
        *config = (struct config){ 0 };
}

void config_reload(struct config *config, const struct config *fresh) {
        for (size_t i = 0; i < n_settings; i++) {
                const struct option *option = &config_options[i];
                bool is_changed = !option_same_value(config->values[i], fresh->values[i]);

                if (is_changed)
                        log_info("[%s] %s has changed from %s to %s%s", option->section, option->name,
                                 LOG_STRING(config->values[i] ?: "none"),
                                 LOG_STRING(fresh->values[i] ?: "none"),
                                 option->is_live ? "" : ": this needs a restart");
                if (!option->is_live)
                        continue;

                /*
                 * Also set unchanged options: the caller frees the former configuration, with its
                 * strings.
                 */
                config->values[i] = fresh->values[i];
                if (fresh->values[i])
                        option->set(config, option, fresh->values[i]);
                else if (is_changed && option->field)
                        *(const char **)((char *)config + option->field) = NULL;
        }
}
