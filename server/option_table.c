/* SPDX-License-Identifier: Apache-2.0 */

#include "option_table.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>

#include "option_values.h"

#define NUMBER "a number"
#define SIZE   "a size, such as 1048576, 64MiB or 1GiB"

/* Whether a reload changes it. */
#define LIVE    true
#define RESTART false

#define FIELD(name) offsetof(struct config, name)

const struct option options[] = {
        { "broker", "host", "--host", "HOST[,HOST]", "127.0.0.1",
          "names, addresses or socket paths, each with :PORT or without",
          "the broker; several are tried in turn", set_host, 0, RESTART },
        { "broker", "port", "--port", "PORT", "1883", "a port from 0 to 65535",
          "the broker's port; 0, with --dev: one that is free", set_port, 0, RESTART },
        { "broker", "dev", "--dev", NULL, "off", "on or off",
          "start a mosquitto of our own, for tests, and print where", set_switch, FIELD(dev), RESTART },
        { "broker", "dev-listen", "--dev-listen", "ADDRESS", "127.0.0.1",
          "an IPv4 address, or 0.0.0.0 for all of this machine's",
          "where that mosquitto listens; it lets everyone in", set_dev_listen, 0, RESTART },
        { "broker", "client-id", "--client-id", "ID", "statestored", "1 to 65535 bytes of UTF-8",
          "our MQTT client id", set_client_id, 0, RESTART },
        { "broker", "keepalive", "--keepalive", "DURATION", "20s", "whole seconds from 5s to 65535s",
          "a connection that is silent this long is asked, then given up", set_keepalive, 0, RESTART },
        { "broker", "user", "--user", "NAME", NULL, "a name", "our user name at the broker", set_text,
          FIELD(user), RESTART },
        { "broker", "password-file", "--password-file", "FILE", NULL, "a file name",
          "its first line is our password; read for each connection", set_text, FIELD(password_file),
          RESTART },
        { "broker", "tls", "--tls", "on|off", "off", "on or off",
          "encrypt; on trusts the system's authorities", set_switch, FIELD(tls), RESTART },
        { "broker", "tls-ca-file", "--tls-ca-file", "FILE", NULL, "a file name",
          "trust these instead; switches TLS on", set_text, FIELD(tls_ca_file), RESTART },
        { "broker", "tls-certificate", "--tls-certificate", "FILE", NULL, "a file name", "our certificate",
          set_text, FIELD(tls_certificate), RESTART },
        { "broker", "tls-key", "--tls-key", "FILE", NULL, "a file name", "its key", set_text, FIELD(tls_key),
          RESTART },
        { "broker", "tls-alpn", "--tls-alpn", "NAME", NULL, "a name", "the protocol to ask for by ALPN",
          set_text, FIELD(tls_alpn), RESTART },
        { "broker", "presence-topic", "--presence-topic", "PATTERN", NULL,
          "a topic in which one level reads {client}", "where a broker without our plugin says who left",
          set_presence_topic, FIELD(presence_topic), RESTART },
        { "store", "node-id", "--node-id", "ID", "StateStore", "1 to 256 bytes of UTF-8 without ':'",
          "who gives the versions; no client may have the same", set_node_id, 0, RESTART },
        { "store", "dialect", "--dialect", "DIALECT", "sdk", "sdk or document",
          "sdk: what the published clients parse; document: the published page", set_dialect, 0, RESTART },
        { "store", "max-keys", "--max-keys", "N", "1000000", NUMBER, "keys stored at most", set_number,
          FIELD(max_keys), LIVE },
        { "store", "max-bytes", "--max-bytes", "SIZE", "1GiB", SIZE,
          "memory for keys, values and registrations", set_size, FIELD(max_bytes), LIVE },
        { "store", "max-registrations", "--max-registrations", "N", "100000", NUMBER,
          "KEYNOTIFY registrations at most", set_number, FIELD(max_registrations), LIVE },
        { "store", "max-remembered-bytes", "--max-remembered-bytes", "SIZE", "32MiB", SIZE,
          "memory for answers to requests that may come twice", set_size, FIELD(max_remembered_bytes),
          LIVE },
        { "store", "seed", "--seed", "FILE", NULL, "a file name",
          "set the keys in here that are not there yet, before anything is served", set_text,
          FIELD(seed_file), RESTART },
        { "storage", "data-dir", "--data-dir", "DIR", NULL, "a directory",
          "keep what is stored here; without it, in memory only", set_text, FIELD(data_dir), RESTART },
        { "storage", "persist", "--persist", "all|none|custom", "all", "all, none or custom",
          "which keys are kept in the data directory", set_persist, 0, RESTART },
        { "storage", "persist-pattern", "--persist-pattern", "GLOB", NULL, "a pattern",
          "custom: keys that match it", set_text, FIELD(persist_pattern), RESTART },
        { "storage", "persist-property", "--persist-property", "NAME=VALUE", "aio-persistence=true",
          "NAME=VALUE or off", "custom: keys whose SET bears this user property", set_persist_property, 0,
          RESTART },
        { "policy", "file", "--policy", "FILE", NULL, "a file name",
          "who may do what; without it everybody may do everything", set_text, FIELD(policy_file), LIVE },
        { "policy", "allow-unverified", "--allow-unverified", "on|off", "off", "on or off",
          "the policy grants to clients that no broker vouches for, too", set_switch,
          FIELD(allow_unverified), LIVE },
        { "http", "listen", "--http-listen", "[ADDRESS:]PORT", NULL,
          "[ADDRESS:]PORT, such as 127.0.0.1:9464,", "serve /metrics, /healthz, /readyz and /version here",
          set_http_listen, 0, RESTART },
        { "process", "record", "--record", "FILE", NULL, "a file name",
          "append every request and its answer, as lines of JSON", set_text, FIELD(record_file), RESTART },
        { "process", "ready-file", "--ready-file", "FILE", NULL, "a file name",
          "is written when requests are served", set_text, FIELD(ready_file), RESTART },
        { "process", "exit-with-parent", "--exit-with-parent", NULL, "off", "on or off",
          "stop when who started us, or stdin if that is a pipe, ends", set_switch, FIELD(exit_with_parent),
          RESTART },
        { "process", "control", "--control", NULL, "off", "on or off",
          "tests may empty the store, move its clock and have it misbehave", set_switch, FIELD(control),
          RESTART },
        { "log", "level", "--log-level", "LEVEL", "info", "error, warning, info or debug",
          "what is logged on stderr", set_log_level, 0, LIVE },
        { "log", "format", "--log-format", "text|json", "text", "text or json",
          "how: key=value, or an object of JSON a line", set_log_format, 0, LIVE },
};
#define N_OPTIONS (sizeof(options) / sizeof(options[0]))
_Static_assert(N_OPTIONS <= CONFIG_OPTIONS_MAX, "struct config keeps a value for each");

const size_t n_config_options = N_OPTIONS;

struct option_variable option_variable(const struct option *option) {
        struct option_variable variable;

        snprintf(variable.name, sizeof(variable.name), "STATESTORE_%s_%s", option->section, option->name);
        for (char *at = variable.name; *at; at++)
                *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
        return variable;
}
