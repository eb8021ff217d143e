/* SPDX-License-Identifier: Apache-2.0 */

#include "config/config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "base/time_units.h"
#include "election/election.h"
#include "protocol/companion.h"
#include "protocol/hlc.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

static int set_dev_listen(void *config, const struct option *option, const char *value) {
        struct in_addr address;

        return inet_pton(AF_INET, value, &address) == 1 ? option_set_text(config, option, value) : -EINVAL;
}

/* libmosquitto refuses control characters. */
static int set_client_id(void *config, const struct option *option, const char *value) {
        for (const char *at = value; *at; at++)
                if (iscntrl((unsigned char)*at))
                        return -EINVAL;
        return strlen(value) <= UINT16_MAX && slice_is_utf8(slice_from_string(value))
                       ? option_set_text(config, option, value)
                       : -EINVAL;
}

static int set_presence_topic(void *config, const struct option *option, const char *value) {
        struct slice client;

        /*
         * Match the pattern with itself as the topic: this succeeds only if a level of the pattern
         * is {client}.
         */
        return topic_match_client(slice_from_string(value), slice_from_string(value), &client)
                       ? option_set_text(config, option, value)
                       : -EINVAL;
}

static int set_node_id(void *config, const struct option *option, const char *value) {
        return strlen(value) <= NODE_ID_MAX && hlc_node_is_valid(slice_from_string(value))
                       ? option_set_text(config, option, value)
                       : -EINVAL;
}

static int set_persist_property(void *target, const struct option *option, const char *value) {
        struct config *config = target;
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

static int add_persist_rule(struct config *config, struct slice text, bool is_key) {
        struct persist_rule *rule;
        int r;

        r = array_reserve((void **)&config->persist_rules, &config->persist_rules_capacity,
                          config->n_persist_rules + 1, sizeof(*config->persist_rules));
        if (r < 0)
                return r;
        rule = &config->persist_rules[config->n_persist_rules];
        *rule = (struct persist_rule){ .is_key = is_key };
        rule->text = (struct slice){ malloc(text.length), text.length };
        if (!rule->text.data)
                return -ENOMEM;
        memcpy((void *)rule->text.data, text.data, text.length);
        config->n_persist_rules++;
        return 0;
}

static int set_persist_pattern(void *target, const struct option *option, const char *value) {
        struct slice text = slice_from_string(value);

        (void)option;
        return text.length > 0 && slice_is_utf8(text) && glob_check(text) == GLOB_VALID
                       ? add_persist_rule(target, text, false)
                       : -EINVAL;
}

#define BASE64_PREFIX "base64:"

static int set_persist_key(void *target, const struct option *option, const char *value) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 };
        struct slice text = slice_from_string(value);

        (void)option;
        if (slice_starts_with(text, SLICE_LITERAL(BASE64_PREFIX))) {
                int r = base64_append_decoded(&bytes, slice_skip(text, strlen(BASE64_PREFIX)));

                if (r < 0)
                        return r;
                text = buf_slice(&bytes);
        }
        return text.length > 0 ? add_persist_rule(target, text, true) : -EINVAL;
}

/* The address behind http:// or https://, without a path. */
static bool is_etcd_url(const char *url) {
        struct slice text = slice_from_string(url), address;

        if (slice_starts_with(text, SLICE_LITERAL("http://")))
                address = slice_skip(text, strlen("http://"));
        else if (slice_starts_with(text, SLICE_LITERAL("https://")))
                address = slice_skip(text, strlen("https://"));
        else
                return false;
        /* no user and password: they would be in the list of processes, and in the log */
        return !memchr(address.data, '/', address.length) && !memchr(address.data, '@', address.length) &&
               memchr(address.data, ':', address.length) && endpoints_check(address) == 0;
}

static int set_etcd(void *target, const struct option *option, const char *value) {
        struct config *config = target;
        struct etcd_options *etcd = &config->etcd;
        char *rest;

        (void)option;
        free(etcd->endpoints_text);
        etcd->n_endpoints = 0;
        etcd->endpoints_text = rest = strdup(value);
        if (!rest)
                return -ENOMEM;
        while (rest) {
                const char *url = strsep(&rest, ",");

                if (etcd->n_endpoints == ETCD_ENDPOINTS_MAX || !is_etcd_url(url))
                        return -EINVAL;
                etcd->endpoints[etcd->n_endpoints++] = url;
        }
        return 0;
}

static int set_etcd_prefix(void *config, const struct option *option, const char *value) {
        size_t length = strlen(value);

        return length > 0 && length <= ETCD_PREFIX_MAX && value[0] == '/' && value[length - 1] == '/'
                       ? option_set_text(config, option, value)
                       : -EINVAL;
}

static int set_member(void *config, const struct option *option, const char *value) {
        size_t length = strlen(value);

        return length > 0 && length <= ELECTION_NAME_MAX && slice_is_utf8(slice_from_string(value))
                       ? option_set_text(config, option, value)
                       : -EINVAL;
}

static int set_http_listen(void *target, const struct option *option, const char *value) {
        struct config *config = target;
        char loopback[sizeof("127.0.0.1:65535")];
        struct endpoint *endpoints;
        size_t n_endpoints;
        char text[300];
        bool is_any_port;
        uint64_t port;

        (void)option;
        if (parse_uint64(slice_from_string(value), &port) == 0 && port <= UINT16_MAX) {
                snprintf(loopback, sizeof(loopback), "127.0.0.1:%u", (unsigned int)port);
                value = loopback;
        }
        is_any_port = slice_ends_with(slice_from_string(value), SLICE_LITERAL(":0"));
        snprintf(text, sizeof(text), "%.*s%s", (int)(strlen(value) - (is_any_port ? 2 : 0)), value,
                 is_any_port ? ":1" : "");
        if (endpoints_parse(slice_from_string(text), 0, &endpoints, &n_endpoints) < 0)
                return -EINVAL;
        if (n_endpoints != 1 || endpoints->port == 0) {
                endpoints_free(endpoints, n_endpoints);
                return -EINVAL;
        }

        endpoints->port = is_any_port ? 0 : endpoints->port;
        endpoints_free(config->http_listen, config->http_listen ? 1 : 0);
        config->http_listen = endpoints;
        return 0;
}

/* `set` of --explain, whose four values take_explain() in command_line.c stores. */
static int set_nothing(void *config, const struct option *option, const char *value) {
        (void)config;
        (void)option;
        (void)value;
        return 0;
}

#define NUMBER "a number"
#define SIZE   "a size, such as 1048576, 64MiB or 1GiB"

/* Whether a reload applies the option. */
#define LIVE    true
#define RESTART false

#define FIELD(name) offsetof(struct config, name)

/*
 * A row of an option for the file, the environment and the command line. Further arguments are
 * initializers.
 */
#define SETTING(section_, name_, flag_, argument_, default_, expected_, help_, set_, field_, live_, ...)    \
        {                                                                                                   \
                .section = section_, .name = name_, .flag = flag_, .argument = argument_,                   \
                .default_value = default_, .expected = expected_, .help = help_, .set = set_,               \
                .field = field_, .is_live = live_, __VA_ARGS__                                              \
        }

#define SWITCH(section_, name_, flag_, argument_, help_, field_, live_)                                     \
        SETTING(section_, name_, flag_, argument_, "off", "on or off", help_, option_set_switch,            \
                FIELD(field_), live_)

/* A switch only on the command line. */
#define FLAG(flag_, letter_, help_, field_)                                                                 \
        {                                                                                                   \
                .flag = flag_, .letter = letter_, .expected = "on or off", .help = help_,                   \
                .set = option_set_switch, .field = FIELD(field_)                                            \
        }

/* A row of an option that may be given several times. It has no default, and needs a restart. */
#define LIST(section_, name_, flag_, argument_, expected_, help_, set_)                                     \
        {                                                                                                   \
                .section = section_, .name = name_, .flag = flag_, .argument = argument_,                   \
                .expected = expected_, .help = help_, .set = set_, .is_list = true                          \
        }

const struct option config_options[] = {
        SETTING("broker", "host", "--host", "HOST[,HOST]", "127.0.0.1",
                "a list of names, addresses or socket paths, each with or without :PORT,",
                "address of the broker; several are tried in turn", option_set_hosts, FIELD(hosts), RESTART),
        SETTING("broker", "port", "--port", "PORT", NULL, "a port from 0 to 65535",
                "port for hosts given without a port; default: 1883, with TLS 8883; with --dev, 0: any free "
                "port",
                option_set_port, FIELD(port), RESTART),
        SWITCH("broker", "dev", "--dev", NULL, "start a private mosquitto, for tests, and print its address",
               dev, RESTART),
        SETTING("broker", "dev-listen", "--dev-listen", "ADDRESS", "127.0.0.1",
                "an IPv4 address, or 0.0.0.0 for all addresses of this machine",
                "address of the private mosquitto", set_dev_listen, FIELD(dev_listen), RESTART),
        SETTING("broker", "client-id", "--client-id", "ID", NULL,
                "1 to 65535 bytes of UTF-8 without control characters",
                "MQTT client id of the store; default: random", set_client_id, FIELD(client_id), RESTART),
        SETTING("broker", "keepalive", "--keepalive", "DURATION", "20s", "a duration from 5s to 65535s",
                "MQTT keep alive interval", option_set_duration, FIELD(keepalive_ms), RESTART,
                .min = 5 * MS_PER_S, .max = UINT16_MAX * MS_PER_S),
        SETTING("broker", "user", "--user", "NAME", NULL, "a name", "MQTT user name of the store",
                option_set_text, FIELD(credentials.user), RESTART),
        SETTING("broker", "password-file", "--password-file", "FILE", NULL, "a file name",
                "file with the password in its first line", option_set_text,
                FIELD(credentials.password_file), RESTART),
        SWITCH("broker", "tls", "--tls", "on|off", "use TLS with the system's certificate authorities",
               credentials.tls, RESTART),
        SETTING("broker", "tls-ca-file", "--tls-ca-file", "FILE", NULL, "a file name",
                "trust these certificate authorities instead; enables TLS", option_set_text,
                FIELD(credentials.tls_ca_file), RESTART),
        SETTING("broker", "tls-certificate", "--tls-certificate", "FILE", NULL, "a file name",
                "client certificate of the store", option_set_text, FIELD(credentials.tls_certificate),
                RESTART),
        SETTING("broker", "tls-key", "--tls-key", "FILE", NULL, "a file name",
                "private key of the certificate", option_set_text, FIELD(credentials.tls_key), RESTART),
        SETTING("broker", "presence-topic", "--presence-topic", "PATTERN", NULL,
                "a topic in which one level reads {client}",
                "topic where a broker without the plugin announces disconnects", set_presence_topic,
                FIELD(presence_topic), RESTART),
        SWITCH("broker", "require-plugin", "--require-plugin", "on|off",
               "serve only a broker with the plugin, so that identities are always verified", require_plugin,
               RESTART),
        SETTING("store", "node-id", "--node-id", "ID", NODE_ID_DEFAULT,
                "1 to 256 bytes of UTF-8 without ':'", "node id in versions; must differ from client ids",
                set_node_id, FIELD(node_id), RESTART),
        SETTING("store", "dialect", "--dialect", "sdk|document", "sdk", "sdk or document",
                "sdk: as the published SDKs expect; document: as the published document says",
                option_set_choice, FIELD(dialect), RESTART),
        SETTING("store", "max-keys", "--max-keys", "N", "1000000", NUMBER, "maximum number of keys",
                option_set_number, FIELD(max_keys), LIVE),
        SETTING("store", "max-bytes", "--max-bytes", "SIZE", "1GiB", SIZE,
                "maximum memory for keys, values and registrations", option_set_size, FIELD(max_bytes),
                LIVE),
        SETTING("store", "max-registrations", "--max-registrations", "N", "100000", NUMBER,
                "maximum number of KEYNOTIFY registrations", option_set_number, FIELD(max_registrations),
                LIVE),
        SETTING("store", "max-remembered-bytes", "--max-remembered-bytes", "SIZE", "32MiB", SIZE,
                "maximum memory for replies to repeated requests", option_set_size,
                FIELD(max_remembered_bytes), LIVE),
        SETTING("store", "registration-timeout", "--registration-timeout", "DURATION", "1h",
                "a duration from 1s to 365d",
                "without the plugin: end the registrations of a client that has not subscribed to its "
                "notifications and has sent no request for this long",
                option_set_duration, FIELD(registration_timeout_ms), LIVE, .min = MS_PER_S,
                .max = 365 * 24 * 3600 * MS_PER_S),
        SETTING("store", "seed", "--seed", "FILE", NULL, "a file name",
                "before serving, set the keys in this file that the store lacks; - is stdin",
                option_set_text, FIELD(seed_file), RESTART),
        SETTING("storage", "data-dir", "--data-dir", "DIR", NULL, "a directory",
                "store the keys in this directory; without it, in memory only", option_set_text,
                FIELD(data_dir), RESTART),
        SETTING("storage", "persist", "--persist", "all|none|custom", "all", "all, none or custom",
                "which keys to store in the data directory or in etcd", option_set_choice, FIELD(persist),
                RESTART),
        LIST("storage", "persist-pattern", "--persist-pattern", "GLOB",
             "a UTF-8 pattern with ']' after each '[', and with ** only between slashes,",
             "with --persist custom: store keys that match this pattern; may be repeated",
             set_persist_pattern),
        LIST("storage", "persist-key", "--persist-key", "KEY", "a key, or base64: and its base64,",
             "with --persist custom: store this key, which may be base64:BASE64; may be repeated",
             set_persist_key),
        SETTING("storage", "persist-property", "--persist-property", "NAME=VALUE", PROPERTY_PERSIST "=true",
                "NAME=VALUE or off", "with --persist custom: store keys whose SET has this user property",
                set_persist_property, 0, RESTART),
        SETTING("etcd", "endpoints", "--etcd", "URL[,URL]", NULL,
                "a list of http://HOST:PORT or https://HOST:PORT",
                "store the keys in this etcd; the one on this machine first", set_etcd,
                FIELD(etcd.endpoints), RESTART),
        SETTING("etcd", "prefix", "--etcd-prefix", "PREFIX", "/statestore/",
                "a text that begins and ends with '/'", "prefix of all keys in etcd", set_etcd_prefix,
                FIELD(etcd.prefix), RESTART),
        SETTING("etcd", "user", "--etcd-user", "NAME", NULL, "a name", "user name at etcd", option_set_text,
                FIELD(etcd.user), RESTART),
        SETTING("etcd", "password-file", "--etcd-password-file", "FILE", NULL, "a file name",
                "file with the password in its first line", option_set_text, FIELD(etcd.password_file),
                RESTART),
        SETTING("etcd", "ca-file", "--etcd-ca-file", "FILE", NULL, "a file name",
                "trust these certificate authorities instead of the system's", option_set_text,
                FIELD(etcd.ca_file), RESTART),
        SETTING("etcd", "certificate", "--etcd-certificate", "FILE", NULL, "a file name",
                "client certificate for etcd", option_set_text, FIELD(etcd.certificate), RESTART),
        SETTING("etcd", "key", "--etcd-key", "FILE", NULL, "a file name", "private key of the certificate",
                option_set_text, FIELD(etcd.key), RESTART),
        SETTING("etcd", "max-txn-ops", "--etcd-max-txn-ops", "N", "128", "a number from 128",
                "the option --max-txn-ops of etcd, the same at all of its members", option_set_number,
                FIELD(etcd.max_txn_ops), RESTART, .min = 128, .max = 1000000),
        SETTING("etcd", "max-request-bytes", "--etcd-max-request-bytes", "SIZE", "1536KiB",
                "a size from 1536KiB to 512MiB",
                "the option --max-request-bytes of etcd, likewise; a key and its value take at most a "
                "quarter",
                option_set_size, FIELD(etcd.max_request_bytes), RESTART, .min = 1536 << 10,
                .max = 512 << 20),
        SETTING("etcd", "member", "--member", "NAME", NULL, "1 to 63 bytes of UTF-8",
                "name of this member; default: the host name", set_member, FIELD(etcd.member), RESTART),
        SETTING("etcd", "lease", "--lease", "DURATION", "3s", "a duration from 1s to 60s",
                "another member leads when the leader has been silent for this long; the same for all "
                "members",
                option_set_duration, FIELD(etcd.lease_ms), RESTART, .min = MS_PER_S, .max = 60 * MS_PER_S),
        SETTING("policy", "file", "--policy", "FILE", NULL, "a file name",
                "access rules; without a policy all clients may do everything", option_set_text,
                FIELD(policy_file), LIVE),
        SWITCH("policy", "allow-unverified", "--allow-unverified", "on|off",
               "apply the rules to client ids that the plugin has not verified", allow_unverified, LIVE),
        SETTING("http", "listen", "--http-listen", "[ADDRESS:]PORT", NULL,
                "[ADDRESS:]PORT, such as 127.0.0.1:9464,",
                "serve the console, /metrics, /healthz, /readyz and /version at this address; port 0: any "
                "free port",
                set_http_listen, 0, RESTART),
        SETTING("http", "certificate", "--http-certificate", "FILE", NULL, "a file name",
                "certificate of this address, for TLS", option_set_text, FIELD(http_certificate), RESTART),
        SETTING("http", "key", "--http-key", "FILE", NULL, "a file name", "private key of the certificate",
                option_set_text, FIELD(http_key), RESTART),
        SETTING("http", "console-users", "--console-users", "FILE", NULL, "a file name",
                "users of the console, as statestorectl console-token prints them; without it, the console "
                "only shows Health",
                option_set_text, FIELD(console_users_file), LIVE),
        SETTING("process", "ready-file", "--ready-file", "FILE", NULL, "a file name",
                "create this file when requests are served", option_set_text, FIELD(ready_file), RESTART),
        SWITCH("process", "exit-with-parent", "--exit-with-parent", NULL,
               "stop when the parent process ends, or when stdin is a pipe and is closed", exit_with_parent,
               RESTART),
        SWITCH("process", "control", "--control", NULL,
               "for tests: let all clients empty the store, move its clock, inject faults, and read the "
               "requests of other clients with their keys and values, whatever the policy grants",
               control, RESTART),
        SETTING("log", "level", "--log-level", "error|warning|info|debug", "info",
                "error, warning, info or debug", "least severe level to log on stderr", option_set_choice,
                FIELD(log_level), LIVE),
        SETTING("log", "format", "--log-format", "text|json", "text", "text or json",
                "log lines as key=value or as JSON objects", option_set_choice, FIELD(log_format), LIVE),
        SWITCH("log", "keys", "--log-keys", "on|off", "add the key to log lines about refused requests",
               log_keys, LIVE),

        /* Only on the command line. */
        { .flag = "--config",
          .argument = "FILE",
          .expected = "a file",
          .help = "read options from this file",
          .set = option_set_text,
          .field = FIELD(file) },
        { .flag = "--explain",
          .argument = "CLIENT USER VERB KEY",
          .expected = "CLIENT USER VERB KEY",
          .help = "print which rule of the policy decides, and exit",
          .set = set_nothing },
        FLAG("--check-config", 0, "check the configuration, and exit", check_only),
        FLAG("--version", 0, "print the version, and exit", version),
        FLAG("--help", 'h', "print this help, and exit", help),
};
#define N_COMMAND_LINE_ONLY 5

const size_t n_config_options = ARRAY_LENGTH(config_options);
const size_t n_settings = ARRAY_LENGTH(config_options) - N_COMMAND_LINE_ONLY;
_Static_assert(ARRAY_LENGTH(config_options) <= CONFIG_OPTIONS_MAX,
               "struct config has a value for each option");
