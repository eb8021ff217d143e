/* SPDX-License-Identifier: Apache-2.0 */

#include "option_values.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/hlc.h"
#include "common/parse.h"
#include "common/topics.h"

static void *field_of(struct config *config, const struct option *option) {
        return (char *)config + option->field;
}

int set_text(struct config *config, const struct option *option, const char *value) {
        if (!*value)
                return -EINVAL;
        *(const char **)field_of(config, option) = value;
        return 0;
}

int set_number(struct config *config, const struct option *option, const char *value) {
        return parse_uint64(slice_from_string(value), field_of(config, option));
}

int set_size(struct config *config, const struct option *option, const char *value) {
        return parse_size(slice_from_string(value), field_of(config, option));
}

int set_switch(struct config *config, const struct option *option, const char *value) {
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
                return -EINVAL;
        *(bool *)field_of(config, option) = strcmp(value, "on") == 0;
        return 0;
}

int set_host(struct config *config, const struct option *option, const char *value) {
        int r = endpoints_check(slice_from_string(value));

        (void)option;
        if (r < 0)
                return r;

        config->hosts = value;
        return 0;
}

int set_port(struct config *config, const struct option *option, const char *value) {
        uint64_t port;

        (void)option;
        if (parse_uint64(slice_from_string(value), &port) < 0 || port > UINT16_MAX)
                return -EINVAL;
        config->port = (uint16_t)port;
        return 0;
}

int set_dev_listen(struct config *config, const struct option *option, const char *value) {
        struct in_addr address;

        (void)option;
        config->dev_listen = value;
        return inet_pton(AF_INET, value, &address) == 1 ? 0 : -EINVAL;
}

int set_client_id(struct config *config, const struct option *option, const char *value) {
        (void)option;
        config->client_id = value;
        return *value && strlen(value) <= UINT16_MAX && slice_is_utf8(slice_from_string(value)) ? 0
                                                                                                : -EINVAL;
}

int set_keepalive(struct config *config, const struct option *option, const char *value) {
        int64_t keepalive_ms;

        (void)option;
        if (parse_duration(slice_from_string(value), &keepalive_ms) < 0 || keepalive_ms % 1000 != 0 ||
            keepalive_ms < 5000 || keepalive_ms > UINT16_MAX * 1000)
                return -EINVAL;
        config->keepalive_s = (uint16_t)(keepalive_ms / 1000);
        return 0;
}

int set_presence_topic(struct config *config, const struct option *option, const char *value) {
        struct slice client;

        /* a topic that reads like the pattern itself is one of its topics, if {client} stands in it */
        return topic_match_client(slice_from_string(value), slice_from_string(value), &client)
                       ? set_text(config, option, value)
                       : -EINVAL;
}

int set_node_id(struct config *config, const struct option *option, const char *value) {
        (void)option;
        config->node_id = value;
        return strlen(value) <= 256 && hlc_node_is_valid(slice_from_string(value)) ? 0 : -EINVAL;
}

int set_dialect(struct config *config, const struct option *option, const char *value) {
        (void)option;
        if (strcmp(value, "sdk") == 0)
                config->dialect = DIALECT_SDK;
        else if (strcmp(value, "document") == 0)
                config->dialect = DIALECT_DOCUMENT;
        else
                return -EINVAL;
        return 0;
}

int set_persist(struct config *config, const struct option *option, const char *value) {
        static const char *const names[] = {
                [PERSIST_ALL] = "all", [PERSIST_NONE] = "none", [PERSIST_CUSTOM] = "custom"
        };

        (void)option;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(value, names[i]) == 0) {
                        config->persist = (enum persist)i;
                        return 0;
                }
        return -EINVAL;
}

int set_persist_property(struct config *config, const struct option *option, const char *value) {
        const char *equals = strchr(value, '=');

        (void)option;
        free(config->persist_property);
        config->persist_property = NULL;
        if (strcmp(value, "off") == 0)
                return 0;
        if (!equals || equals == value)
                return -EINVAL;

        config->persist_property = strdup(value);
        if (!config->persist_property)
                return -ENOMEM;
        config->persist_property[equals - value] = '\0';
        config->persist_property_value = config->persist_property + (equals - value) + 1;
        return 0;
}

int set_http_listen(struct config *config, const struct option *option, const char *value) {
        char loopback[sizeof("127.0.0.1:65535")];
        struct endpoint *endpoints;
        size_t n_endpoints;
        uint64_t port;

        (void)option;
        if (parse_uint64(slice_from_string(value), &port) == 0 && port >= 1 && port <= UINT16_MAX) {
                snprintf(loopback, sizeof(loopback), "127.0.0.1:%u", (unsigned int)port);
                value = loopback;
        }
        if (endpoints_parse(slice_from_string(value), 0, &endpoints, &n_endpoints) < 0)
                return -EINVAL;
        if (n_endpoints != 1 || endpoints->port == 0) {
                endpoints_free(endpoints, n_endpoints);
                return -EINVAL;
        }

        endpoints_free(config->http_listen, config->http_listen ? 1 : 0);
        config->http_listen = endpoints;
        return 0;
}

int set_log_format(struct config *config, const struct option *option, const char *value) {
        (void)option;
        return log_format_from_string(value, &config->log_format);
}

int set_log_level(struct config *config, const struct option *option, const char *value) {
        (void)option;
        return log_level_from_string(value, &config->log_level);
}
