/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/credentials.h"
#include "base/endpoint.h"
#include "config/option.h"
#include "ctl/command.h"

/*
 * The command to run and its options. Precedence: command line, environment, default. Strings are
 * borrowed from the command line and the environment unless they are owned.
 */
struct command_options {
        const struct command *command;
        const char **words; /* owned array: the arguments of the command */
        size_t n_words;
        char *const *program; /* name and arguments, NULL-terminated; NULL: none */

        const char *config_file;     /* of statestored; NULL: not given */
        struct config *store_config; /* owned: the configuration of statestored; NULL: not read */

        const char *hosts;          /* without --host, those of store_config */
        uint16_t port;              /* for hosts without a port; 0: the default of MQTT */
        struct endpoint *endpoints; /* owned: the brokers to try */
        size_t n_endpoints;

        struct credentials credentials;
        bool is_tls_given;
        const char *client_id; /* client_id_buffer without --client-id: random */
        char client_id_buffer[sizeof("statestorectl-0123456789abcdef")];
        int64_t timeout_ms;

        bool json;
        bool hex;

        bool nx;
        bool nex;
        const char *nex_value; /* NULL: compare with the value to set */
        int64_t px_ms;         /* 0: no expiry */
        const char *fence;     /* NULL: none */
        bool persist;
        const char *data_dir; /* NULL: through the broker, or etcd */
        bool etcd;            /* use etcd, not the broker */
        int64_t wait_ms;      /* for a lock; -1: without end */
        int64_t lease_ms;     /* of a lock */
        const char *name;     /* of the holder of a lock; NULL: the client id */
        bool initial;
        uint64_t count; /* of lines; 0: no limit */
        bool is_long;
        bool is_operator;              /* of the console */
        const char *http, *token_file; /* of the console; token_file NULL: no token */
        const char *client;            /* NULL: all clients */
        uint64_t after;
        bool has_after;

        bool help;
        bool version;
};

/* The table of options. */
extern const struct option ctl_options[];
extern const size_t n_ctl_options;

enum options_result {
        OPTIONS_RUN = 0, /* there is a command to run */
        OPTIONS_DONE,    /* --help or --version was printed */
        OPTIONS_INVALID, /* an error, which was printed on one line of stderr */
};

/* Parse the command line and the environment. Call command_options_deinit() also after an error. */
enum options_result command_options_init(struct command_options *options, int n_arguments,
                                         char *const *arguments);
void command_options_deinit(struct command_options *options);

/* The equal share of --timeout for each of these brokers, or endpoints of etcd: at least 1 ms. */
int64_t command_options_share_ms(const struct command_options *options, size_t n_endpoints);
