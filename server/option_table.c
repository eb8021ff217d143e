/* SPDX-License-Identifier: Apache-2.0 */

#include "option_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/hlc.h"
#include "common/parse.h"
#include "common/topics.h"

static int set_host(struct config *config, const char *value) {
        struct endpoint *endpoints;
        size_t n_endpoints;
        int r;

        /* the port may be given later: here it only matters whether the list can be read */
        r = endpoints_parse(slice_from_string(value), 1, &endpoints, &n_endpoints);
        if (r < 0)
                return r;

        endpoints_free(endpoints, n_endpoints);
        config->hosts = value;
        return 0;
}

static int set_port(struct config *config, const char *value) {
        uint64_t port;

        if (parse_uint64(slice_from_string(value), &port) < 0 || port < 1 || port > UINT16_MAX)
                return -EINVAL;
        config->port = (uint16_t)port;
        return 0;
}

static int set_client_id(struct config *config, const char *value) {
        config->client_id = value;
        return *value && strlen(value) <= UINT16_MAX && slice_is_utf8(slice_from_string(value)) ? 0
                                                                                                : -EINVAL;
}

static int set_text(const char **text, const char *value) {
        if (!*value)
                return -EINVAL;
        *text = value;
        return 0;
}

static int set_keepalive(struct config *config, const char *value) {
        int64_t keepalive_ms;

        if (parse_duration(slice_from_string(value), &keepalive_ms) < 0 || keepalive_ms % 1000 != 0 ||
            keepalive_ms < 5000 || keepalive_ms > UINT16_MAX * 1000)
                return -EINVAL;
        config->keepalive_s = (uint16_t)(keepalive_ms / 1000);
        return 0;
}

static int set_user(struct config *config, const char *value) {
        return set_text(&config->user, value);
}

static int set_password_file(struct config *config, const char *value) {
        return set_text(&config->password_file, value);
}

static int set_tls(struct config *config, const char *value) {
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
                return -EINVAL;
        config->tls = strcmp(value, "on") == 0;
        return 0;
}

static int set_tls_ca_file(struct config *config, const char *value) {
        return set_text(&config->tls_ca_file, value);
}

static int set_tls_certificate(struct config *config, const char *value) {
        return set_text(&config->tls_certificate, value);
}

static int set_tls_key(struct config *config, const char *value) {
        return set_text(&config->tls_key, value);
}

static int set_tls_alpn(struct config *config, const char *value) {
        return set_text(&config->tls_alpn, value);
}

static int set_presence_topic(struct config *config, const char *value) {
        struct slice client;

        /* a topic that reads like the pattern itself is one of its topics, if {client} stands in it */
        return topic_match_client(slice_from_string(value), slice_from_string(value), &client)
                       ? set_text(&config->presence_topic, value)
                       : -EINVAL;
}

static int set_node_id(struct config *config, const char *value) {
        config->node_id = value;
        return strlen(value) <= 256 && hlc_node_is_valid(slice_from_string(value)) ? 0 : -EINVAL;
}

static int set_dialect(struct config *config, const char *value) {
        if (strcmp(value, "sdk") == 0)
                config->dialect = DIALECT_SDK;
        else if (strcmp(value, "document") == 0)
                config->dialect = DIALECT_DOCUMENT;
        else
                return -EINVAL;
        return 0;
}

static int set_max_keys(struct config *config, const char *value) {
        return parse_uint64(slice_from_string(value), &config->max_keys);
}

static int set_max_bytes(struct config *config, const char *value) {
        return parse_size(slice_from_string(value), &config->max_bytes);
}

static int set_max_registrations(struct config *config, const char *value) {
        return parse_uint64(slice_from_string(value), &config->max_registrations);
}

static int set_max_remembered_bytes(struct config *config, const char *value) {
        return parse_size(slice_from_string(value), &config->max_remembered_bytes);
}

static int set_data_dir(struct config *config, const char *value) {
        return set_text(&config->data_dir, value);
}

static int set_persist(struct config *config, const char *value) {
        static const char *const names[] = {
                [PERSIST_ALL] = "all", [PERSIST_NONE] = "none", [PERSIST_CUSTOM] = "custom"
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(value, names[i]) == 0) {
                        config->persist = (enum persist)i;
                        return 0;
                }
        return -EINVAL;
}

static int set_persist_pattern(struct config *config, const char *value) {
        return set_text(&config->persist_pattern, value);
}

static int set_persist_property(struct config *config, const char *value) {
        const char *equals = strchr(value, '=');

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

static int set_ready_file(struct config *config, const char *value) {
        return set_text(&config->ready_file, value);
}

static int set_http_listen(struct config *config, const char *value) {
        struct endpoint *endpoints;
        size_t n_endpoints;

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

static int set_log_level(struct config *config, const char *value) {
        return log_level_from_string(value, &config->log_level);
}

#define NUMBER "a number"
#define SIZE   "a size, such as 1048576, 64MiB or 1GiB"

/* Whether a reload changes it. */
#define LIVE    true
#define RESTART false

const struct option options[] = {
        { "broker", "host", "--host", "HOST[,HOST]", "127.0.0.1",
          "names, addresses or socket paths, each with :PORT or without",
          "the broker; several are tried in turn", set_host, RESTART },
        { "broker", "port", "--port", "PORT", "1883", "a port from 1 to 65535", "the broker's port",
          set_port, RESTART },
        { "broker", "client-id", "--client-id", "ID", "statestored", "1 to 65535 bytes of UTF-8",
          "our MQTT client id", set_client_id, RESTART },
        { "broker", "keepalive", "--keepalive", "DURATION", "20s", "whole seconds from 5s to 65535s",
          "a connection that is silent this long is asked, then given up", set_keepalive, RESTART },
        { "broker", "user", "--user", "NAME", NULL, "a name", "our user name at the broker", set_user,
          RESTART },
        { "broker", "password-file", "--password-file", "FILE", NULL, "a file name",
          "its first line is our password; read for each connection", set_password_file, RESTART },
        { "broker", "tls", "--tls", "on|off", "off", "on or off",
          "encrypt; on trusts the system's authorities", set_tls, RESTART },
        { "broker", "tls-ca-file", "--tls-ca-file", "FILE", NULL, "a file name",
          "trust these instead; switches TLS on", set_tls_ca_file, RESTART },
        { "broker", "tls-certificate", "--tls-certificate", "FILE", NULL, "a file name", "our certificate",
          set_tls_certificate, RESTART },
        { "broker", "tls-key", "--tls-key", "FILE", NULL, "a file name", "its key", set_tls_key, RESTART },
        { "broker", "tls-alpn", "--tls-alpn", "NAME", NULL, "a name", "the protocol to ask for by ALPN",
          set_tls_alpn, RESTART },
        { "broker", "presence-topic", "--presence-topic", "PATTERN", NULL,
          "a topic in which one level reads {client}", "where a broker without our plugin says who left",
          set_presence_topic, RESTART },
        { "store", "node-id", "--node-id", "ID", "StateStore", "1 to 256 bytes of UTF-8 without ':'",
          "who gives the versions; no client may have the same", set_node_id, RESTART },
        { "store", "dialect", "--dialect", "DIALECT", "sdk", "sdk or document",
          "sdk: what the published clients parse; document: the published page", set_dialect, RESTART },
        { "store", "max-keys", "--max-keys", "N", "1000000", NUMBER, "keys stored at most", set_max_keys,
          LIVE },
        { "store", "max-bytes", "--max-bytes", "SIZE", "1GiB", SIZE,
          "memory for keys, values and registrations", set_max_bytes, LIVE },
        { "store", "max-registrations", "--max-registrations", "N", "100000", NUMBER,
          "KEYNOTIFY registrations at most", set_max_registrations, LIVE },
        { "store", "max-remembered-bytes", "--max-remembered-bytes", "SIZE", "64MiB", SIZE,
          "memory for answers to requests that may come twice", set_max_remembered_bytes, LIVE },
        { "storage", "data-dir", "--data-dir", "DIR", NULL, "a directory",
          "keep what is stored here; without it, in memory only", set_data_dir, RESTART },
        { "storage", "persist", "--persist", "all|none|custom", "all", "all, none or custom",
          "which keys are kept in the data directory", set_persist, RESTART },
        { "storage", "persist-pattern", "--persist-pattern", "GLOB", NULL, "a pattern",
          "custom: keys that match it", set_persist_pattern, RESTART },
        { "storage", "persist-property", "--persist-property", "NAME=VALUE", "aio-persistence=true",
          "NAME=VALUE or off", "custom: keys whose SET bears this user property", set_persist_property,
          RESTART },
        { "http", "listen", "--http-listen", "ADDRESS:PORT", NULL, "a numeric address with a port",
          "serve /metrics, /healthz, /readyz and /version here", set_http_listen, RESTART },
        { "process", "ready-file", "--ready-file", "FILE", NULL, "a file name",
          "is written when requests are served", set_ready_file, RESTART },
        { "log", "level", "--log-level", "LEVEL", "info", "error, warning, info or debug",
          "what is logged on stderr", set_log_level, LIVE },
};
_Static_assert(N_OPTIONS <= CONFIG_OPTIONS_MAX, "struct config keeps a value for each");
_Static_assert(sizeof(options) / sizeof(options[0]) == N_OPTIONS, "N_OPTIONS counts the table");
