/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/store_config.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/reading.h"
#include "ctl/output.h"

/* variables: NULL-terminated; without any of them and without a file there is nothing to be read. */
static bool is_configured(const struct options *options, const char *const *variables) {
        bool is_any = options->config_file;

        for (; *variables; variables++)
                is_any = is_any || getenv(*variables);
        return is_any;
}

static enum options_result read_config(struct options *options) {
        options->store = calloc(1, sizeof(*options->store));
        if (!options->store) {
                complain("out of memory");
                return OPTIONS_WRONG;
        }
        return config_read_places(options->config_file, options->store) == CONFIG_RUN ? OPTIONS_RUN
                                                                                      : OPTIONS_WRONG;
}

enum options_result store_config_take_broker(struct options *options) {
        static const char *const variables[] = {
                "STATESTORE_BROKER_HOST",        "STATESTORE_BROKER_PORT",     "STATESTORE_BROKER_TLS",
                "STATESTORE_BROKER_TLS_CA_FILE", "STATESTORE_BROKER_TLS_ALPN", NULL
        };
        struct credentials *tls = &options->tls;

        if (options->hosts || options->is_url_given || !is_configured(options, variables))
                return OPTIONS_RUN;
        if (read_config(options) != OPTIONS_RUN)
                return OPTIONS_WRONG;

        options->hosts = options->store->hosts;
        if (!options->port)
                options->port = options->store->port;
        if (!options->is_tls_given)
                tls->tls = options->store->tls;
        if (!tls->tls_ca_file)
                tls->tls_ca_file = options->store->tls_ca_file;
        if (!tls->tls_alpn)
                tls->tls_alpn = options->store->tls_alpn;
        return OPTIONS_RUN;
}

enum options_result store_config_take_pages(struct options *options) {
        static const char *const variables[] = { "STATESTORE_HTTP_LISTEN", NULL };

        if (options->http_url)
                return OPTIONS_RUN;
        options->http_url = "http://127.0.0.1:9464";
        if (!is_configured(options, variables))
                return OPTIONS_RUN;
        if (read_config(options) != OPTIONS_RUN)
                return OPTIONS_WRONG;
        if (!options->store->http_listen)
                return OPTIONS_RUN;

        /* 0.0.0.0 and [::], where it listens at all addresses, lead whoever connects there to this machine */
        snprintf(options->http_url_space, sizeof(options->http_url_space), "http://%s",
                 endpoint_text(options->store->http_listen).text);
        options->http_url = options->http_url_space;
        return OPTIONS_RUN;
}
