/* SPDX-License-Identifier: Apache-2.0 */

#include "config/reading.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/credentials.h"
#include "base/endpoint.h"
#include "config/config.h"
#include "config/option.h"
#include "protocol/topics.h"

static char *presence_filter(const char *presence_topic) {
        CLEANUP(buf_deinit) struct buf filter = { 0 };

        topic_append_filter(&filter, slice_from_string(presence_topic));
        return buf_text(&filter) ? (char *)take_ptr(&filter.data) : NULL;
}

/* Return whether the option is about the broker or its connection, so that --dev excludes it. */
static bool describes_broker(const struct option *option) {
        static const char *const flags[] = { "--host",    "--user",          "--password-file",
                                             "--tls",     "--tls-ca-file",   "--tls-certificate",
                                             "--tls-key", "--presence-topic" };

        for (size_t i = 0; i < ARRAY_LENGTH(flags); i++)
                if (strcmp(option->flag, flags[i]) == 0)
                        return true;
        return false;
}

/* Check the options that --dev excludes or requires. */
static void check_dev(struct config_reading *reading) {
        struct config *config = reading->config;

        if (!config->dev && config->port == 0)
                config_report_setting(reading, "--port",
                                      "0 means any free port, and is only valid with --dev");
        for (size_t i = 0; i < n_settings; i++) {
                if (option_same_value(config->values[i], config_options[i].default_value))
                        continue;
                if (config->dev && describes_broker(&config_options[i]))
                        config_report_setting(
                                reading, config_options[i].flag,
                                "not with --dev, which starts a private broker without this option");
                if (!config->dev && strcmp(config_options[i].flag, "--dev-listen") == 0)
                        config_report_setting(reading, config_options[i].flag, "only with --dev");
        }
}

/*
 * Without endpoints the keys would be in memory only, although the operator has configured a member of
 * a cluster.
 */
static void require_no_etcd_options(struct config_reading *reading) {
        for (size_t i = 0; i < n_settings; i++) {
                const struct option *option = &config_options[i];

                if (strcmp(option->section, "etcd") == 0 &&
                    !option_same_value(reading->config->values[i], option->default_value))
                        config_report_setting(reading, option->flag, "only with --etcd");
        }
}

/* Check the options of etcd together. */
static void check_etcd(struct config_reading *reading) {
        const struct config *config = reading->config;
        const struct etcd_options *etcd = &config->etcd;

        if (etcd->n_endpoints == 0) {
                require_no_etcd_options(reading);
                return;
        }

        if (config->data_dir)
                config_report_setting(reading, "--etcd",
                                      "not with --data-dir: the keys are stored in one of both");
        if (config->dev)
                config_report_setting(reading, "--etcd",
                                      "not with --dev: its broker is lost with the store");
        if (config->seed_file)
                config_report_setting(
                        reading, "--seed",
                        "not with --etcd: each member would set the keys again; use statestorectl import");
        if (!etcd->certificate != !etcd->key)
                config_report_setting(reading, etcd->key ? "--etcd-key" : "--etcd-certificate",
                                      "--etcd-certificate and --etcd-key must be given together");
        if (!etcd->user != !etcd->password_file)
                config_report_setting(reading, etcd->user ? "--etcd-user" : "--etcd-password-file",
                                      "--etcd-user and --etcd-password-file must be given together");
}

void config_complete_broker(struct config_reading *reading) {
        struct config *config = reading->config;

        if (config->credentials.tls_ca_file)
                config->credentials.tls = true;
        if (config_has_default_port(config))
                config->port = credentials_default_port(&config->credentials);
        if (!config->dev && endpoints_parse(slice_from_string(config->hosts), config->port,
                                            &config->endpoints, &config->n_endpoints) < 0)
                config_report(reading, "--host", "out of memory");
}

static void check_http(struct config_reading *reading) {
        struct config *config = reading->config;
        size_t n_endpoints;

        if (config->dev && !config->http_listen) {
                if (endpoints_parse(SLICE_LITERAL("127.0.0.1:1"), 0, &config->http_listen, &n_endpoints) < 0)
                        config_report(reading, "--http-listen", "out of memory");
                else
                        config->http_listen->port = 0;
        }
        if (!config->http_certificate != !config->http_key)
                config_report_setting(reading, config->http_key ? "--http-key" : "--http-certificate",
                                      "--http-certificate and --http-key must be given together");
        if (config->http_certificate && !config->http_listen)
                config_report_setting(reading, "--http-certificate", "only with --http-listen");
        if (config->console_users_file && !config_serves_console(config))
                config_report_setting(
                        reading, "--console-users",
                        "needs --http-listen with a loopback address, or with --http-certificate and "
                        "--http-key: tokens are not sent over a network in plain text");
}

void config_complete(struct config_reading *reading) {
        struct config *config = reading->config;
        const char *fault, *flag;

        config_complete_broker(reading);
        check_dev(reading);
        if (config->control && config_stores_data(config))
                config_report_setting(
                        reading, "--control",
                        "not with --data-dir or --etcd: any client of the broker could delete the "
                        "stored data");
        check_etcd(reading);
        check_http(reading);
        fault = credentials_check_options(&config->credentials, &flag);
        if (fault)
                config_report_setting(reading, flag, fault);

        if (config->presence_topic) {
                config->presence_filter = presence_filter(config->presence_topic);
                if (!config->presence_filter)
                        config_report(reading, "--presence-topic", "out of memory");
        }
}

/* Return whether the directory that contains the file exists. */
static bool has_parent_directory(const char *file) {
        CLEANUP(buf_deinit) struct buf parent = { 0 };
        const char *slash = strrchr(file, '/');

        if (!slash)
                return true;
        buf_append(&parent, file, (size_t)(slash - file) + 1);
        return buf_text(&parent) && access(buf_text(&parent), X_OK) == 0;
}

void config_check_plausibility(struct config_reading *reading) {
        const struct config *config = reading->config;
        struct stat status;

        if (config->data_dir && *config->data_dir != '/')
                config_report_setting(reading, "--data-dir",
                                      "a path that begins with '/' was expected: a service does "
                                      "not start in this directory");
        else if (config->data_dir && !has_parent_directory(config->data_dir))
                config_report_setting(reading, "--data-dir", "the directory above it does not exist");
        else if (config->data_dir && stat(config->data_dir, &status) == 0 && !S_ISDIR(status.st_mode))
                config_report_setting(reading, "--data-dir", "this is not a directory");
        if (config->ready_file && !has_parent_directory(config->ready_file))
                config_report_setting(reading, "--ready-file", "the directory above it does not exist");
        if (config->persist == PERSIST_CUSTOM && !config_stores_data(config))
                config_report_setting(reading, "--persist",
                                      "custom is not used without --data-dir or --etcd");
}
