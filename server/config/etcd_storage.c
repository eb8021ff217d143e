/* SPDX-License-Identifier: Apache-2.0 */

#include "config/etcd_storage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/time_units.h"

/*
 * A reply may have this and twice the largest request. Loading asks for smaller ranges if a reply is
 * larger.
 */
#define REPLY_BYTES_MIN ((size_t)8 << 20)

/* With ETCD_ENDPOINTS_MAX that are silent, a call ends before the watchdog of statestored.service. */
#define TIMEOUT_MAX_MS INT64_C(3000)

int config_etcd_storage(const struct etcd_options *options, struct buf *password,
                        struct storage_etcd_config *ret_config) {
        struct storage_etcd_config config = {
                .etcd = { .endpoints = options->endpoints,
                          .n_endpoints = options->n_endpoints,
                          .ca_file = options->ca_file,
                          .certificate_file = options->certificate,
                          .key_file = options->key,
                          .user = options->user,
                          .timeout_ms = options->lease_ms / 3,
                          .max_reply_bytes = REPLY_BYTES_MIN + 2 * (size_t)options->max_request_bytes,
                          .logs_faults = true },
                .prefix = options->prefix,
                .max_txn_ops = (size_t)options->max_txn_ops,
                .max_request_bytes = (size_t)options->max_request_bytes,
                .holder.lease_ns = options->lease_ms * NS_PER_MS,
        };
        const struct credentials files = { .tls = true,
                                           .tls_ca_file = options->ca_file,
                                           .tls_certificate = options->certificate,
                                           .tls_key = options->key };
        struct credentials_fault fault;
        int r;

        if (config.etcd.timeout_ms > TIMEOUT_MAX_MS)
                config.etcd.timeout_ms = TIMEOUT_MAX_MS;
        if (options->member) {
                snprintf(config.holder.name, sizeof(config.holder.name), "%s", options->member);
        } else if (gethostname(config.holder.name, sizeof(config.holder.name) - 1) < 0) {
                r = -errno;
                log_error("the name of this host: %s", strerror(-r));
                return r;
        }
        random_fill(&config.holder.process, sizeof(config.holder.process));
        r = credentials_check_tls_files(&files, &fault);
        if (r == 0 && options->password_file)
                r = credentials_read_secret(options->password_file, password, &fault);
        if (r < 0) {
                log_error("%s", fault.text);
                return r;
        }
        config.etcd.password = (const char *)password->data;
        *ret_config = config;
        return 0;
}
