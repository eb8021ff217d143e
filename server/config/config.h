/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/credentials.h"
#include "base/endpoint.h"
#include "base/log.h"
#include "codec/encoder.h"
#include "config/option.h"
#include "engine/engine.h"

/* The configuration of statestored, from its command line, environment and configuration file. */

/* A list of strings. */
struct config_text {
        struct config_text *next;
        char text[];
};

/* Etcd, which several machines share. Texts are borrowed; NULL: not set. */
#define ETCD_ENDPOINTS_MAX 16
#define ETCD_PREFIX_MAX    200
struct etcd_options {
        const char *endpoints[ETCD_ENDPOINTS_MAX]; /* http://HOST:PORT or https://HOST:PORT */
        size_t n_endpoints;                        /* 0: no etcd */
        char *endpoints_text;                      /* owned: `endpoints` borrows from it */
        const char *prefix;                        /* of all keys, with '/' at both ends */
        const char *user, *password_file;
        const char *ca_file, *certificate, *key;
        uint64_t max_txn_ops, max_request_bytes;
        const char *member; /* name of this member; NULL: the host name */
        int64_t lease_ms;
};

/* Exit status if an option, or a file that it names, is invalid. */
#define EXIT_INVALID_CONFIG 2

#define CONFIG_OPTIONS_MAX 64

struct config {
        const char *hosts;          /* value of --host; endpoints has the parsed form */
        uint16_t port;              /* default port of hosts. With dev, 0 selects any free port */
        struct endpoint *endpoints; /* owned: config_deinit() */
        size_t n_endpoints;
        bool dev;               /* start a private broker. endpoints is empty then */
        const char *dev_listen; /* an IPv4 address */
        const char *client_id;  /* NULL: a random one */
        int64_t keepalive_ms;
        struct credentials credentials;
        const char *presence_topic; /* reports disconnects on a broker without the plugin; NULL: none */
        char *presence_filter;      /* owned: the topic filter of presence_topic */
        const char *node_id;
        enum dialect dialect;
        uint64_t max_keys;
        uint64_t max_bytes;
        uint64_t max_registrations;
        uint64_t max_remembered_bytes; /* of replies that are kept for repeated requests */
        /*
         * Without the plugin: a client that has not subscribed to its notifications, and sends no
         * request for this long, loses its registrations.
         */
        int64_t registration_timeout_ms;
        const char *data_dir; /* NULL: not on a disk of this machine */
        struct etcd_options etcd;
        enum persist persist;
        struct persist_rule *persist_rules; /* owned */
        size_t n_persist_rules, persist_rules_capacity;
        char *persist_property; /* owned: NAME, NUL, VALUE; NULL: none */
        const char *persist_property_value;
        const char *values[CONFIG_OPTIONS_MAX]; /* text of each option, by its index in config_options */
        struct config_text *file_texts;         /* owned: the strings in `values` that come from the file */
        const char *policy_file;                /* NULL: none, everything is allowed */
        bool allow_unverified;
        struct policy *policy;                   /* owned: read from policy_file */
        const char *const *explain;              /* four strings: CLIENT USER VERB KEY; NULL: no --explain */
        struct endpoint *http_listen;            /* owned; NULL: none. Port 0: any free one */
        const char *http_certificate, *http_key; /* files for TLS; NULL: none */
        const char *console_users_file;          /* NULL: none, only the page Health */
        struct console_users *console_users;     /* owned: read from console_users_file */
        const char *seed_file;
        const char *ready_file;
        bool exit_with_parent;
        bool require_plugin;
        bool control;     /* accept commands of tests */
        const char *file; /* --config; NULL: none */
        bool check_only;
        bool version;
        bool help;
        enum log_level log_level;
        enum log_format log_format;
        bool log_keys; /* in log lines about refused requests */
};

/*
 * The options of statestored. To add one, add a row, a field of struct config, and a line in
 * conf/statestored.conf. The settings come first: options that the file, the environment and the
 * command line accept. The remaining options are for the command line only.
 */
extern const struct option config_options[];
extern const size_t n_settings;       /* settings */
extern const size_t n_config_options; /* all; at most CONFIG_OPTIONS_MAX */

/* Return whether no source sets the port. Then config->port is that of credentials_default_port(). */
bool config_has_default_port(const struct config *config);

/*
 * Whether the HTTP server serves the console: beyond this machine only with TLS, because a browser
 * sends tokens.
 */
bool config_serves_console(const struct config *config);

/* Whether the store keeps its keys in a data directory or in etcd, not only in memory. */
static inline bool config_stores_data(const struct config *config) {
        return config->data_dir || config->etcd.n_endpoints > 0;
}

enum config_result {
        CONFIG_RUN,     /* *ret_config is valid */
        CONFIG_DONE,    /* the result of --help, --version or --check-config was printed: exit 0 */
        CONFIG_INVALID, /* each fault was printed to stderr, or logged: exit 2 */
};

/*
 * Read the configuration. Sources in the order of precedence: the command line (--name VALUE or
 * --name=VALUE), the environment (STATESTORE_SECTION_NAME), the file that --config or
 * STATESTORE_CONFIG names, the defaults. Strings from the command line and the environment are
 * borrowed. The caller must call config_deinit() on *ret_config, also after CONFIG_DONE and
 * CONFIG_INVALID. is_reload: the store is running, so faults are logged instead of printed, and the
 * files must be regular files.
 */
enum config_result config_read(int n_arguments, char *const *argv, bool is_reload,
                               struct config *ret_config);

/*
 * Read the addresses of the broker and of etcd, for statestorectl. Sources: the environment and the
 * file. file NULL: the file that STATESTORE_CONFIG names. Only endpoints, the TLS options and etcd of
 * *ret_config are valid.
 */
enum config_result config_read_addresses(const char *file, struct config *ret_config);
void config_deinit(struct config *config);

/*
 * Copy the live options (struct option) of fresh to config. Log which options have changed, and
 * which of them need a restart. config then borrows strings from fresh: keep fresh until the next
 * config_reload() or config_deinit() of config.
 */
void config_reload(struct config *config, const struct config *fresh);
