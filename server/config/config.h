/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/endpoint.h"
#include "base/log.h"
#include "codec/encoder.h"
#include "engine/engine.h"

/* The configuration of statestored, from its command line, environment and configuration file. */

struct config_text;

/* Exit status if an option, or a file that it names, is invalid. */
#define EXIT_WRONG 2

#define CONFIG_OPTIONS_MAX 64

struct config {
        const char *hosts;          /* value of --host */
        uint16_t port;              /* of hosts without a port; 0: with dev, any free port */
        struct endpoint *endpoints; /* owned: config_deinit() */
        size_t n_endpoints;
        bool dev;               /* start a private broker; then there are no endpoints */
        const char *dev_listen; /* an IPv4 address */
        const char *client_id;
        uint16_t keepalive_s;
        const char *user; /* NULL: none, also below */
        const char *password_file;
        bool tls;
        const char *tls_ca_file;
        const char *tls_certificate;
        const char *tls_key;
        const char *tls_alpn;
        const char *presence_topic;
        char *presence_filter; /* owned: the topic filter of presence_topic */
        const char *node_id;
        enum dialect dialect;
        uint64_t max_keys;
        uint64_t max_bytes;
        uint64_t max_registrations;
        uint64_t max_remembered_bytes;
        const char *data_dir; /* NULL: store in memory */
        enum persist persist;
        const char *persist_pattern;
        char *persist_property; /* owned: NAME, NUL, VALUE; NULL: none */
        const char *persist_property_value;
        const char *values[CONFIG_OPTIONS_MAX]; /* as given, by the index of the option */
        struct config_text *file_texts;         /* owned: values from the file */
        const char *policy_file;                /* NULL: none, everything is allowed */
        bool allow_unverified;
        struct policy *policy;        /* owned: read from policy_file */
        const char *const *explain;   /* CLIENT USER VERB KEY; NULL: serve requests */
        struct endpoint *http_listen; /* owned; NULL: none */
        const char *seed_file;
        const char *record_file;
        const char *ready_file;
        bool exit_with_parent;
        bool control;
        const char *file; /* --config; NULL: none */
        bool check_only;
        bool version;
        bool help;
        enum log_level log_level;
        enum log_format log_format;
};
