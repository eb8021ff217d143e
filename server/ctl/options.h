/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/endpoint.h"
#include "ctl/url.h"
#include "mqtt/credentials.h"

struct command;

/*
 * What the user wants: read from the command line, which beats the environment, which beats the defaults. One
 * table of options gives the parser, the environment's variables and --help.
 *
 * Texts are borrowed from the command line and the environment unless said otherwise.
 */
struct options {
        const struct command *command;
        const char **words; /* owned array: what follows the command's name, less --nex's VALUE */
        size_t n_words;

        const char *config_file; /* statestored's; NULL: none was named */
        struct url url;
        bool is_url_given;
        const char *hosts;          /* as --host gives them; NULL: none, here and below */
        uint16_t port;              /* of hosts without a port; 0: not given */
        struct endpoint *endpoints; /* owned: what comes of all that; a broker is at one of them */
        size_t n_endpoints;
        const char *user;
        const char *password_file;
        char *password;         /* owned; NULL: none */
        struct credentials tls; /* what of it is about TLS */
        bool is_tls_given;
        struct config *
                store; /* owned: what of statestored's configuration the above borrows from; NULL: nothing */
        const char *client_id;
        char client_id_space[sizeof("statestorectl-0123456789abcdef")];
        int64_t timeout_ms;

        const char *http_url;   /* of the store's pages: there for stat and top */
        bool is_http_url_given; /* the last URL that was given is one */
        char http_url_space[sizeof("http://") + sizeof(struct endpoint_text)];
        int64_t interval_ms;

        const char *key_file; /* NULL: the key is the first word */
        const char *value_file;
        bool json;
        bool hex;
        bool verbose;

        bool nx;
        bool nex;
        const char *nex_value; /* NULL: compare with the value that is set */
        int64_t px_ms;         /* 0: no expiry */
        const char *fence;     /* NULL: none */
        bool persist;
        bool pace;
        const char *data_dir; /* NULL: through the broker */

        bool help;
        bool version;
};

enum options_result {
        OPTIONS_RUN,   /* there is a command to run */
        OPTIONS_DONE,  /* --help or --version was printed */
        OPTIONS_WRONG, /* one line on stderr says what, and what was expected */
};
