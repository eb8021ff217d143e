/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"
#include "unit/support/command_line.h"
#include "unit/support/table.h"

Test(config, has_a_default_for_every_option) {
        struct config config;

        cr_assert_eq(read_config((const char *const[]){ NULL }, &config), CONFIG_RUN);
        cr_assert_eq(config.n_endpoints, 1);
        cr_expect_str_eq(config.endpoints[0].host, "127.0.0.1");
        cr_expect_eq(config.endpoints[0].port, 1883);
        cr_expect_null(config.client_id);
        cr_expect_str_eq(config.node_id, "StateStore");
        cr_expect_eq(config.keepalive_ms, 20000);
        cr_expect_eq(config.dialect, DIALECT_SDK);
        cr_expect_eq(config.max_keys, 1000000);
        cr_expect_eq(config.max_bytes, UINT64_C(1) << 30);
        cr_expect_eq(config.max_registrations, 100000);
        cr_expect_eq(config.max_remembered_bytes, UINT64_C(32) << 20);
        cr_expect_eq(config.registration_timeout_ms, 3600 * 1000);
        cr_expect_eq(config.log_level, LOG_INFO);
        cr_expect_not(config.credentials.tls);
        cr_expect_null(config.credentials.user);
        cr_expect_null(config.credentials.password_file);
        cr_expect_null(config.credentials.tls_ca_file);
        cr_expect_null(config.credentials.tls_certificate);
        cr_expect_null(config.credentials.tls_key);
        cr_expect_null(config.presence_topic);
        cr_expect_null(config.ready_file);
        cr_expect_null(config.seed_file);
        cr_expect_null(config.data_dir);
        cr_expect_eq(config.persist, PERSIST_ALL);
        cr_expect_eq(config.n_persist_rules, 0);
        cr_expect_str_eq(config.persist_property, "aio-persistence");
        cr_expect_str_eq(config.persist_property_value, "true");
        config_deinit(&config);
}

static const struct {
        const char *name; /* of the option */
        const char *value;
        size_t offset; /* of the field in struct config */
        enum { TEXT, UINT16, UINT64, SIZE, ENUM, BOOLEAN } kind;
        const char *text;
        uint64_t number;
} settings[] = {
#define FIELD(field) offsetof(struct config, field)
        { "client-id", "store-1", FIELD(client_id), TEXT, "store-1", 0 },
        { "client-id", "\xC3\xA4", FIELD(client_id), TEXT, "\xC3\xA4", 0 },
        { "port", "1", FIELD(port), UINT16, NULL, 1 },
        { "port", "65535", FIELD(port), UINT16, NULL, 65535 },
        { "keepalive", "5s", FIELD(keepalive_ms), UINT64, NULL, 5000 },
        { "keepalive", "10000ms", FIELD(keepalive_ms), UINT64, NULL, 10000 },
        { "keepalive", "65535s", FIELD(keepalive_ms), UINT64, NULL, 65535000 },
        { "keepalive", "2m", FIELD(keepalive_ms), UINT64, NULL, 120000 },
        { "user", "u", FIELD(credentials.user), TEXT, "u", 0 },
        { "tls", "on", FIELD(credentials.tls), BOOLEAN, NULL, true },
        { "tls", "off", FIELD(credentials.tls), BOOLEAN, NULL, false },
        { "tls-ca-file", "ca.pem", FIELD(credentials.tls_ca_file), TEXT, "ca.pem", 0 },
        { "tls-ca-file", "ca.pem", FIELD(credentials.tls), BOOLEAN, NULL, true },
        { "require-plugin", "on", FIELD(require_plugin), BOOLEAN, NULL, true },
        { "presence-topic", "gone/{client}", FIELD(presence_topic), TEXT, "gone/{client}", 0 },
        { "presence-topic", "$SYS/+/{client}/#", FIELD(presence_topic), TEXT, "$SYS/+/{client}/#", 0 },
        { "node-id", "gateway-7", FIELD(node_id), TEXT, "gateway-7", 0 },
        { "dialect", "sdk", FIELD(dialect), ENUM, NULL, DIALECT_SDK },
        { "dialect", "document", FIELD(dialect), ENUM, NULL, DIALECT_DOCUMENT },
        { "max-keys", "0", FIELD(max_keys), UINT64, NULL, 0 },
        { "max-keys", "18446744073709551615", FIELD(max_keys), UINT64, NULL, UINT64_MAX },
        { "max-bytes", "1048576", FIELD(max_bytes), UINT64, NULL, 1048576 },
        { "max-bytes", "3GiB", FIELD(max_bytes), UINT64, NULL, UINT64_C(3) << 30 },
        { "max-registrations", "7", FIELD(max_registrations), UINT64, NULL, 7 },
        { "max-remembered-bytes", "5MiB", FIELD(max_remembered_bytes), UINT64, NULL, 5 << 20 },
        { "registration-timeout", "1s", FIELD(registration_timeout_ms), UINT64, NULL, 1000 },
        { "registration-timeout", "365d", FIELD(registration_timeout_ms), UINT64, NULL,
          UINT64_C(31536000000) },
        { "seed", "keys.jsonl", FIELD(seed_file), TEXT, "keys.jsonl", 0 },
        { "data-dir", "/var/lib/s", FIELD(data_dir), TEXT, "/var/lib/s", 0 },
        { "persist", "all", FIELD(persist), ENUM, NULL, PERSIST_ALL },
        { "persist", "none", FIELD(persist), ENUM, NULL, PERSIST_NONE },
        { "persist", "custom", FIELD(persist), ENUM, NULL, PERSIST_CUSTOM },
        { "persist-property", "keep=1", FIELD(persist_property), TEXT, "keep", 0 },
        { "persist-property", "keep=1", FIELD(persist_property_value), TEXT, "1", 0 },
        { "persist-property", "keep=a=b", FIELD(persist_property_value), TEXT, "a=b", 0 },
        { "persist-property", "keep=", FIELD(persist_property_value), TEXT, "", 0 },
        { "persist-pattern", "k[0-9]*", FIELD(n_persist_rules), SIZE, NULL, 1 },
        { "persist-key", "k", FIELD(n_persist_rules), SIZE, NULL, 1 },
        { "ready-file", "/run/ready", FIELD(ready_file), TEXT, "/run/ready", 0 },
        { "log-level", "error", FIELD(log_level), ENUM, NULL, LOG_ERROR },
        { "log-level", "warning", FIELD(log_level), ENUM, NULL, LOG_WARNING },
        { "log-level", "info", FIELD(log_level), ENUM, NULL, LOG_INFO },
        { "log-level", "debug", FIELD(log_level), ENUM, NULL, LOG_DEBUG },
};

static void expect_setting(const struct config *config, size_t i) {
        const void *field = (const char *)config + settings[i].offset;

        switch (settings[i].kind) {
        case TEXT:
                cr_expect_str_eq(*(const char *const *)field, settings[i].text, ROW(settings, i));
                break;
        case UINT16:
                cr_expect_eq(*(const uint16_t *)field, settings[i].number, ROW(settings, i));
                break;
        case UINT64:
                cr_expect_eq(*(const uint64_t *)field, settings[i].number, ROW(settings, i));
                break;
        case SIZE:
                cr_expect_eq(*(const size_t *)field, settings[i].number, ROW(settings, i));
                break;
        case ENUM:
                cr_expect_eq(*(const unsigned *)field, settings[i].number, ROW(settings, i));
                break;
        case BOOLEAN:
                cr_expect_eq(*(const bool *)field, settings[i].number, ROW(settings, i));
                break;
        }
}

Test(config, accepts_values_as_next_argument_or_after_equals_sign) {
        for (size_t i = 0; i < N_ROWS(settings); i++) {
                char name[64], both[128];
                struct config config;

                snprintf(name, sizeof(name), "--%s", settings[i].name);
                snprintf(both, sizeof(both), "--%s=%s", settings[i].name, settings[i].value);
                cr_assert_eq(read_config((const char *const[]){ name, settings[i].value, NULL }, &config),
                             CONFIG_RUN, ROW(settings, i));
                expect_setting(&config, i);
                config_deinit(&config);
                cr_assert_eq(read_config((const char *const[]){ both, NULL }, &config), CONFIG_RUN,
                             ROW(settings, i));
                expect_setting(&config, i);
                config_deinit(&config);
        }
}

Test(config, last_value_of_an_option_counts) {
        static const char *const arguments[] = { "--client-id=a", "--client-id", "b=c", "--node-id=d=e",
                                                 NULL };
        struct config config;

        cr_assert_eq(read_config(arguments, &config), CONFIG_RUN);
        cr_expect_str_eq(config.client_id, "b=c");
        cr_expect_str_eq(config.node_id, "d=e");
        config_deinit(&config);
}

Test(config, port_option_applies_to_hosts_without_a_port) {
        static const char *const arguments[] = { "--host=a,b:5,/run/s,[::1]", "--port=7", NULL };
        struct config config;

        cr_assert_eq(read_config(arguments, &config), CONFIG_RUN);
        cr_assert_eq(config.n_endpoints, 4);
        cr_expect_str_eq(config.endpoints[0].host, "a");
        cr_expect_eq(config.endpoints[0].port, 7);
        cr_expect_eq(config.endpoints[1].port, 5);
        cr_expect_str_eq(config.endpoints[2].host, "/run/s");
        cr_expect_str_eq(config.endpoints[3].host, "::1");
        cr_expect_eq(config.endpoints[3].port, 7);
        config_deinit(&config);
}

static const struct {
        const char *name;
        const char *argument, *host;
} listens[] = {
        { "a port alone", "--http-listen=9464", "127.0.0.1" },
        { "an address", "--http-listen=0.0.0.0:9464", "0.0.0.0" },
        { "an IPv6 address", "--http-listen=[::1]:9464", "::1" },
};

Test(config, http_port_may_be_any) {
        static const char *const ports[] = { "--http-listen=0", "--http-listen=127.0.0.1:0",
                                             "--http-listen=[::1]:0", "--dev" };
        struct config config;

        for (size_t i = 0; i < N_ROWS(ports); i++) {
                cr_assert_eq(read_config((const char *const[]){ ports[i], NULL }, &config), CONFIG_RUN, "%s",
                             ports[i]);
                cr_expect_eq(config.http_listen->port, 0, "%s", ports[i]);
                cr_expect(config_serves_console(&config), "%s", ports[i]);
                config_deinit(&config);
        }
}

Test(config, console_is_served_beyond_this_machine_with_tls) {
        struct config config;

        cr_assert_eq(read_config((const char *const[]){ "--http-listen=0.0.0.0:1", NULL }, &config),
                     CONFIG_RUN);
        cr_expect_not(config_serves_console(&config));
        config_deinit(&config);
        cr_assert_eq(read_config((const char *const[]){ "--http-listen=0.0.0.0:1", "--http-certificate=c",
                                                        "--http-key=k", "--console-users=/dev/null", NULL },
                                 &config),
                     CONFIG_RUN);
        cr_expect(config_serves_console(&config));
        config_deinit(&config);
}

Test(config, http_listens_on_loopback_by_default) {
        for (size_t i = 0; i < N_ROWS(listens); i++) {
                const char *const arguments[] = { listens[i].argument, NULL };
                struct config config;

                cr_assert_eq(read_config(arguments, &config), CONFIG_RUN, ROW(listens, i));
                cr_expect_str_eq(config.http_listen->host, listens[i].host, ROW(listens, i));
                cr_expect_eq(config.http_listen->port, 9464, ROW(listens, i));
                config_deinit(&config);
        }
}

Test(config, accepts_certificate_with_key_and_password_with_user) {
        static const char *const arguments[] = { "--tls=on", "--tls-certificate=c", "--tls-key=k",
                                                 "--user=u", "--password-file=p",   NULL };
        struct config config;

        cr_assert_eq(read_config(arguments, &config), CONFIG_RUN);
        cr_expect_str_eq(config.credentials.tls_certificate, "c");
        cr_expect_str_eq(config.credentials.tls_key, "k");
        cr_expect_str_eq(config.credentials.password_file, "p");
        config_deinit(&config);
}

Test(config, persist_property_can_be_disabled) {
        struct config config;

        cr_assert_eq(read_config((const char *const[]){ "--persist-property=off", NULL }, &config),
                     CONFIG_RUN);
        cr_expect_null(config.persist_property);
        config_deinit(&config);
}

Test(config, dev_accepts_any_port) {
        static const char *const arguments[][4] = {
                { "--dev", "--port=0" },
                { "--port=0", "--dev" },
                { "--port", "0", "--dev=on" },
        };
        struct config config;

        for (size_t i = 0; i < N_ROWS(arguments); i++) {
                const char *const *row = arguments[i];

                cr_assert_eq(
                        read_config((const char *const[]){ row[0], row[1], row[2], row[3], NULL }, &config),
                        CONFIG_RUN, "%zu", i);
                cr_expect(config.dev);
                cr_expect_eq(config.port, 0);
                cr_expect_eq(config.n_endpoints, 0);
                config_deinit(&config);
        }
        cr_assert_eq(read_config((const char *const[]){ "--dev=off", NULL }, &config), CONFIG_RUN);
        cr_expect_not(config.dev);
        config_deinit(&config);
}

/* conf/statestored.conf sets these options. */
Test(config, dev_ignores_default_broker_options) {
        struct config config;

        cr_assert_eq(read_config((const char *const[]){ "--dev", "--host=127.0.0.1", NULL }, &config),
                     CONFIG_RUN);
        cr_expect_str_eq(config.dev_listen, "127.0.0.1");
        config_deinit(&config);
        cr_assert_eq(read_config((const char *const[]){ "--dev-listen=127.0.0.1", NULL }, &config),
                     CONFIG_RUN);
        config_deinit(&config);
}

Test(config, lists_every_option_in_its_help) {
        char *help = printed_by(STDOUT_FILENO, (const char *const[]){ "--help", NULL }, CONFIG_DONE);

        for (size_t i = 0; i < n_settings; i++) {
                char line[64];

                snprintf(line, sizeof(line), "\n  %s %s", config_options[i].flag,
                         config_options[i].argument ? config_options[i].argument : "");
                cr_expect_not_null(strstr(help, line), "%s", config_options[i].flag);
        }
        cr_expect_not_null(strstr(help, "--config"));
        cr_expect_not_null(strstr(help, "--check-config"));
        cr_expect_not_null(strstr(help, "--version"));
        cr_expect_not_null(strstr(help, "--help"));
        cr_expect_not_null(strstr(help, "(127.0.0.1)"));
        free(help);
}

Test(config, prints_the_same_help_for_the_short_flag) {
        char *help = printed_by(STDOUT_FILENO, (const char *const[]){ "--help", NULL }, CONFIG_DONE);
        char *short_help = printed_by(STDOUT_FILENO, (const char *const[]){ "-h", NULL }, CONFIG_DONE);

        cr_expect_str_eq(short_help, help);
        free(short_help);
        free(help);
}

Test(config, prints_its_version) {
        char *version = printed_by(STDOUT_FILENO, (const char *const[]){ "--version", NULL }, CONFIG_DONE);

        cr_expect_str_eq(version, "statestored " STATESTORED_VERSION "\n");
        free(version);
}

Test(config, prints_help_before_checking_other_options) {
        char *help =
                printed_by(STDOUT_FILENO, (const char *const[]){ "--help", "--wrong", NULL }, CONFIG_DONE);

        cr_expect_eq(strncmp(help, "Usage: ", 7), 0);
        free(help);
}
