/* SPDX-License-Identifier: Apache-2.0 */

/* The sources of options other than the command line: environment and file. */

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/config.h"
#include "config/ini_file.h"
#include "unit/support/command_line.h"
#include "unit/support/table.h"

/* The name of an unlinked file with this text; "" without a text. */
static char file_name[64];

static void write_file(const char *text) {
        int fd = memfd_create("configuration", 0);

        cr_assert(fd >= 0);
        cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        snprintf(file_name, sizeof(file_name), "/proc/self/fd/%d", fd);
}

static char *errors_of(const char *const *arguments) {
        return printed_by(STDERR_FILENO, arguments, CONFIG_INVALID);
}

static const char *const no_arguments[] = { NULL };
static const char *const from_file[] = { "--config", file_name, NULL };

Test(config, reports_all_faults) {
        char *printed =
                errors_of((const char *const[]){ "--port=x", "--tls=", "--wrong", "--max-keys=1", NULL });

        cr_expect_not_null(strstr(printed, "statestored: --port=x: "));
        cr_expect_not_null(strstr(printed, "statestored: --tls=: "));
        cr_expect_not_null(strstr(printed, "statestored: --wrong: "));
        cr_expect_null(strstr(printed, "max-keys"));
        free(printed);
}

/* Return a value that the option accepts. */
static const char *some_value(const struct option *option) {
        if (strcmp(option->flag, "--policy") == 0)
                return "/dev/null"; /* a policy without rules */
        if (strcmp(option->flag, "--console-users") == 0)
                return "/dev/null"; /* a file without users */
        if (strcmp(option->flag, "--port") == 0)
                return "1883";
        if (strcmp(option->flag, "--http-listen") == 0)
                return "127.0.0.1:9464";
        if (strcmp(option->flag, "--etcd") == 0)
                return "http://a:2379";
        return option->default_value ? option->default_value : "gone/{client}";
}

/* STATESTORE_SECTION_NAME */
static void environment_name(const struct option *option, char name[128]) {
        snprintf(name, 128, "STATESTORE_%s_%s", option->section, option->name);
        for (; *name; name++)
                *name = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
}

static bool is_only_with_etcd(const struct option *option) {
        return strcmp(option->section, "etcd") == 0 && strcmp(option->flag, "--etcd") != 0;
}

Test(environment, sets_every_option) {
        for (size_t i = 0; i < n_settings; i++) {
                const char *value = some_value(&config_options[i]);
                char name[128];
                struct config config;

                environment_name(&config_options[i], name);
                setenv(name, value, 1);
                if (strcmp(config_options[i].name, "password-file") == 0 ||
                    strncmp(config_options[i].name, "tls-", 4) == 0) {
                        setenv("STATESTORE_BROKER_USER", "u", 1); /* options that require another option */
                        setenv("STATESTORE_BROKER_TLS", "on", 1);
                        setenv("STATESTORE_BROKER_TLS_KEY", value, 1);
                        setenv("STATESTORE_BROKER_TLS_CERTIFICATE", value, 1);
                }
                if (strcmp(config_options[i].section, "http") == 0 &&
                    strcmp(config_options[i].name, "listen") != 0) {
                        setenv("STATESTORE_HTTP_LISTEN", "9464", 1);
                        setenv("STATESTORE_HTTP_KEY", value, 1);
                        setenv("STATESTORE_HTTP_CERTIFICATE", value, 1);
                }
                if (is_only_with_etcd(&config_options[i])) {
                        setenv("STATESTORE_ETCD_ENDPOINTS", "http://a:2379", 1);
                        setenv("STATESTORE_ETCD_USER", value, 1);
                        setenv("STATESTORE_ETCD_PASSWORD_FILE", value, 1);
                        setenv("STATESTORE_ETCD_KEY", value, 1);
                        setenv("STATESTORE_ETCD_CERTIFICATE", value, 1);
                }
                cr_assert_eq(read_config(no_arguments, &config), CONFIG_RUN, "%s", name);
                cr_expect_not_null(config.values[i], "%s", name);
                if (config.values[i])
                        cr_expect_str_eq(config.values[i], value, "%s", name);
                config_deinit(&config);
                clearenv();
        }
}

static const struct {
        const char *name; /* of the variable */
        const char *value;
        const char *line;
} wrong_variables[] = {
        { "STATESTORE_BROKER_PORT", "-1",
          "statestored: STATESTORE_BROKER_PORT: a port from 0 to 65535 was expected, not \"-1\"\n" },
        { "STATESTORE_LOG_LEVEL", "loud",
          "statestored: STATESTORE_LOG_LEVEL: error, warning, info or debug was expected, not \"loud\"\n" },
        { "STATESTORE_STORE_MAX_KEYS", "many",
          "statestored: STATESTORE_STORE_MAX_KEYS: a number was expected, not \"many\"\n" },
        { "STATESTORE_STORE_MAX_KEY", "5", "statestored: STATESTORE_STORE_MAX_KEY: no such option\n" },
        { "STATESTORE_LOG_", "5", "statestored: STATESTORE_LOG_: no such option\n" },
        { "STATESTORE_DATA_DIR", "/data",
          "statestored: STATESTORE_DATA_DIR: no such option; did you mean STATESTORE_STORAGE_DATA_DIR?\n" },
        { "STATESTORE_MAX_KEYS", "5",
          "statestored: STATESTORE_MAX_KEYS: no such option; did you mean STATESTORE_STORE_MAX_KEYS?\n" },
};

Test(environment, fault_names_the_variable) {
        for (size_t i = 0; i < N_ROWS(wrong_variables); i++) {
                char *printed;

                setenv(wrong_variables[i].name, wrong_variables[i].value, 1);
                printed = errors_of(no_arguments);
                cr_expect_str_eq(printed, wrong_variables[i].line, ROW(wrong_variables, i));
                free(printed);
                clearenv();
        }
}

Test(environment, ignores_empty_and_foreign_variables) {
        struct config config;

        setenv("STATESTORE_BROKER_PORT", "", 1);
        setenv("STATESTORE_BROKER_PORTS", "", 1);
        setenv("STATESTORE_HOST", "h", 1); /* this and the next one: of statestorectl */
        setenv("STATESTORE_PORT", "5", 1);
        cr_assert_eq(read_config(no_arguments, &config), CONFIG_RUN);
        cr_expect_str_eq(config.endpoints[0].host, "127.0.0.1");
        cr_expect_eq(config.endpoints[0].port, 1883);
        cr_expect_not(config.credentials.tls);
        config_deinit(&config);
}

static void check_rules(const struct config *config, const char *const *texts) {
        size_t n = 0;

        for (; texts[n]; n++) {
                cr_assert_lt(n, config->n_persist_rules);
                cr_expect(slice_equal_string(config->persist_rules[n].text, texts[n]), "%zu", n);
        }
        cr_expect_eq(config->n_persist_rules, n);
}

Test(list, has_the_values_of_all_sources) {
        static const char *const arguments[] = { "--persist-pattern=a*",
                                                 "--persist-key=base64:/wA=", "--persist-pattern", "b*",
                                                 NULL };
        struct config config;

        setenv("STATESTORE_STORAGE_PERSIST_PATTERN", "c*", 1);
        cr_assert_eq(read_config(no_arguments, &config), CONFIG_RUN);
        check_rules(&config, (const char *const[]){ "c*", NULL });
        config_deinit(&config);

        cr_assert_eq(read_config(arguments, &config), CONFIG_RUN);
        cr_assert_eq(config.n_persist_rules, 4);
        cr_expect(slice_equal_string(config.persist_rules[0].text, "c*"));
        cr_expect(slice_equal_string(config.persist_rules[1].text, "a*"));
        cr_expect(slice_equal(config.persist_rules[2].text, SLICE_LITERAL("\xFF\0")));
        cr_expect(config.persist_rules[2].is_key);
        cr_expect(slice_equal_string(config.persist_rules[3].text, "b*"));
        config_deinit(&config);
}

Test(environment, tls_has_another_default_port) {
        static const char *const tls[] = { "--tls=on", NULL };
        static const char *const both[] = { "--tls-ca-file=f", "--port=1883", NULL };
        struct config config;

        cr_assert_eq(read_config(tls, &config), CONFIG_RUN);
        cr_expect_eq(config.endpoints[0].port, 8883);
        config_deinit(&config);
        cr_assert_eq(read_config(both, &config), CONFIG_RUN);
        cr_expect_eq(config.endpoints[0].port, 1883);
        config_deinit(&config);
}

static const struct {
        const char *name;
        const char *flag, *variable, *file;
        uint16_t port;
} precedences[] = {
        { "a flag", "--port=1", NULL, NULL, 1 },
        { "a variable", NULL, "2", NULL, 2 },
        { "a file", NULL, NULL, "[broker]\nport = 3\n", 3 },
        { "none", NULL, NULL, "[broker]\n", 1883 },
        { "a flag before a variable", "--port=1", "2", NULL, 1 },
        { "a flag before a file", "--port=1", NULL, "[broker]\nport = 3\n", 1 },
        { "a variable before a file", NULL, "2", "[broker]\nport = 3\n", 2 },
        { "a flag before all", "--port=1", "2", "[broker]\nport = 3\n", 1 },
};

Test(sources, have_a_precedence) {
        for (size_t i = 0; i < N_ROWS(precedences); i++) {
                const char *arguments[4] = { NULL };
                size_t n = 0;
                struct config config;

                if (precedences[i].flag)
                        arguments[n++] = precedences[i].flag;
                if (precedences[i].file) {
                        write_file(precedences[i].file);
                        arguments[n++] = "--config";
                        arguments[n++] = file_name;
                }
                if (precedences[i].variable)
                        setenv("STATESTORE_BROKER_PORT", precedences[i].variable, 1);
                cr_assert_eq(read_config(arguments, &config), CONFIG_RUN, ROW(precedences, i));
                cr_expect_eq(config.port, precedences[i].port, ROW(precedences, i));
                config_deinit(&config);
                clearenv();
        }
}

Test(file, name_comes_from_flag_or_environment) {
        struct config config;

        write_file("[broker]\nport = 3\n");
        setenv("STATESTORE_CONFIG", file_name, 1);
        cr_assert_eq(read_config(no_arguments, &config), CONFIG_RUN);
        cr_expect_eq(config.port, 3);
        config_deinit(&config);

        setenv("STATESTORE_CONFIG", "/no/such/file", 1);
        cr_assert_eq(read_config(from_file, &config), CONFIG_RUN);
        cr_expect_eq(config.port, 3);
        config_deinit(&config);
}

Test(file, sets_every_option) {
        for (size_t i = 0; i < n_settings; i++) {
                const char *value = some_value(&config_options[i]);
                char text[512];
                struct config config;

                snprintf(text, sizeof(text), "[%s]\n%s = %s\n", config_options[i].section,
                         config_options[i].name, value);
                if (strcmp(config_options[i].name, "password-file") == 0)
                        strcat(text, "user = u\n");
                if (is_only_with_etcd(&config_options[i]))
                        strcat(text, "endpoints = http://a:2379\n");
                if (strcmp(config_options[i].flag, "--etcd-user") == 0)
                        strcat(text, "password-file = p\n");
                if (strcmp(config_options[i].flag, "--etcd-key") == 0)
                        strcat(text, "certificate = c\n");
                if (strcmp(config_options[i].flag, "--etcd-certificate") == 0)
                        strcat(text, "key = k\n");
                if (strcmp(config_options[i].flag, "--http-key") == 0)
                        strcat(text, "listen = 9464\ncertificate = c\n");
                if (strcmp(config_options[i].flag, "--http-certificate") == 0)
                        strcat(text, "listen = 9464\nkey = k\n");
                if (strcmp(config_options[i].flag, "--console-users") == 0)
                        strcat(text, "listen = 9464\n");
                if (strcmp(config_options[i].name, "tls-key") == 0)
                        strcat(text, "tls = on\ntls-certificate = c\n");
                if (strcmp(config_options[i].name, "tls-certificate") == 0)
                        strcat(text, "tls = on\ntls-key = k\n");
                write_file(text);
                cr_assert_eq(read_config(from_file, &config), CONFIG_RUN, "%s", text);
                cr_assert_not_null(config.values[i], "%s", text);
                cr_expect_str_eq(config.values[i], value, "%s", text);
                config_deinit(&config);
        }
}

static const struct {
        const char *name;
        const char *text;
        const char *message; /* after the file name */
} wrong_files[] = {
        { "an unknown option", "[broker]\nhosts = a\n", ":2: no such option: [broker] hosts" },
        { "an option of another section", "[store]\nport = 1\n", ":2: no such option: [store] port" },
        { "an option before a section", "port = 1\n",
          ":1: \"port\" is in no section; write a line such as [broker] above it" },
        { "an unknown section", "\n[brocker]\nport = 1\n",
          ":2: no such section: [brocker]; the sections are [broker] [store] [storage] [etcd] [policy] "
          "[http] [process] [log]" },
        { "a wrong value", "# a comment\n\n[broker]\nport = x\n",
          ":4: a port from 0 to 65535 was expected, not \"x\"" },
        { "an empty value", "[broker]\nclient-id =\n",
          ":2: 1 to 65535 bytes of UTF-8 without control characters was expected, not \"\"" },
        { "a repeated option", "[broker]\nport = 1\nkeepalive = 5s\nport = 2\n",
          ":4: [broker] port is given twice, first in line 2" },
        { "a line without =", "[broker]\nport\n", ":2: [section], name = value or a comment was expected" },
        { "a section that is not closed", "[broker\n",
          ":1: [section], name = value or a comment was expected" },
        { "a name in quotes", "[broker]\nhost = \"localhost\"\n",
          ":2: a list of names, addresses or socket paths, each with or without :PORT, was expected, not "
          "\"\\x22localhost\\x22\"" },
        { "options that depend on each other", "[broker]\ntls = on\ntls-certificate = c\n",
          ":3: [broker] tls-certificate: --tls-certificate and --tls-key must be given together; see "
          "--help" },
};

Test(file, fault_has_file_and_line) {
        for (size_t i = 0; i < N_ROWS(wrong_files); i++) {
                char *printed, expected[256];

                write_file(wrong_files[i].text);
                printed = errors_of(from_file);
                snprintf(expected, sizeof(expected), "statestored: %s%s\n", file_name,
                         wrong_files[i].message);
                cr_expect_str_eq(printed, expected, ROW(wrong_files, i));
                free(printed);
        }
}

Test(file, missing_file_is_a_fault) {
        char *printed = errors_of((const char *const[]){ "--config=/no/such/file", NULL });

        cr_expect_not_null(strstr(printed, "statestored: /no/such/file: "));
        free(printed);
        printed = errors_of((const char *const[]){ "--config=/tmp", NULL });
        cr_expect_str_eq(printed, "statestored: /tmp: Is a directory\n");
        free(printed);
        printed = errors_of((const char *const[]){ "--config", NULL });
        cr_expect_not_null(strstr(printed, "a file was expected"));
        free(printed);
}

Test(file, too_long_line_is_a_fault_and_parsing_continues) {
        char text[2000] = "[broker]\n#", *printed;

        memset(text + strlen(text), 'x', 1000);
        strcat(text, "\nport = y\n");
        write_file(text);
        printed = errors_of(from_file);
        cr_expect_not_null(strstr(printed, ":2: the line is too long"));
        cr_expect_not_null(strstr(printed, ":3: a port"), "%s", printed);
        free(printed);
}

Test(file, length_is_limited) {
        int fd = memfd_create("configuration", 0);
        char *printed, expected[256];

        cr_assert(fd >= 0);
        snprintf(file_name, sizeof(file_name), "/proc/self/fd/%d", fd);
        for (size_t excess = 0; excess < 2; excess++) {
                cr_assert_eq(ftruncate(fd, (off_t)(INI_FILE_LENGTH_MAX + excess)), 0);
                snprintf(expected, sizeof(expected), "statestored: %s:%s", file_name,
                         excess ? " the file is too long" : "1: the line is too long");
                printed = errors_of(from_file);
                cr_expect_eq(strncmp(printed, expected, strlen(expected)), 0, "%s", printed);
                free(printed);
        }
        close(fd);
}

Test(file, number_of_reported_faults_is_limited) {
        char text[2000] = "", *printed;

        memset(text, '\n', sizeof(text) - 1);
        for (size_t i = 0; i < sizeof(text) - 1; i += 2)
                text[i] = 'x';
        write_file(text);
        printed = errors_of(from_file);
        cr_expect_eq(capture_count(printed, "\n"), 101);
        cr_expect_not_null(strstr(printed, ":100: "));
        cr_expect_not_null(strstr(printed, ":101: further faults are not reported\n"));
        free(printed);
}

/* The write end of the pipe stays open, so reading it again would never end. */
Test(file, pipe_is_read_at_the_start_only) {
        static const char text[] = "[store]\nmax-keys = 7\n";
        char program[] = "statestored", flag[] = "--config", *printed;
        char *arguments[] = { program, flag, file_name };
        struct capture capture;
        struct config config;
        int ends[2], again[2];

        cr_assert_eq(pipe(ends), 0);
        cr_assert_eq(pipe(again), 0);
        snprintf(file_name, sizeof(file_name), "/proc/self/fd/%d", ends[0]);
        cr_assert_eq(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
        close(ends[1]);
        cr_assert_eq(config_read(3, arguments, false, &config), CONFIG_RUN);
        cr_expect_eq(config.max_keys, 7);
        config_deinit(&config);

        snprintf(file_name, sizeof(file_name), "/proc/self/fd/%d", again[0]);
        capture_start(&capture, STDERR_FILENO);
        cr_expect_eq(config_read(3, arguments, true, &config), CONFIG_INVALID);
        printed = capture_end(&capture);
        cr_expect_not_null(strstr(printed, "not a regular file"), "%s", printed);
        free(printed);
        config_deinit(&config);
}

/* SOURCE_ROOT: the directory of the project. */
Test(example_file, has_every_option_at_its_default) {
        const char *root = getenv("SOURCE_ROOT");
        struct config with, without;
        struct capture capture;
        char *text;
        size_t n;
        FILE *file;

        cr_assert_not_null(root);
        snprintf(file_name, sizeof(file_name), "%.40s/conf/statestored.conf", root);
        file = fopen(file_name, "r");
        cr_assert_not_null(file, "%s", file_name);
        text = calloc(1, 100000);
        n = fread(text, 1, 99999, file);
        fclose(file);
        cr_assert(n > 0 && n < 99999);

        capture_start(&capture, STDERR_FILENO);
        cr_expect_eq(read_config(from_file, &with), CONFIG_RUN);
        free(capture_end(&capture));
        cr_assert_eq(read_config(no_arguments, &without), CONFIG_RUN);
        for (size_t i = 0; i < n_settings; i++) {
                char line[128];

                snprintf(line, sizeof(line), "\n%s%s = ", config_options[i].default_value ? "" : "#",
                         config_options[i].name);
                cr_expect_not_null(strstr(text, line), "%s", line + 1);
                cr_expect_eq(!with.values[i], !without.values[i], "%s", config_options[i].flag);
                if (with.values[i] && without.values[i])
                        cr_expect_str_eq(with.values[i], without.values[i], "%s", config_options[i].flag);
        }
        config_deinit(&with);
        config_deinit(&without);
        free(text);
}

Test(check_config, reports_validity_and_exits) {
        struct capture capture;
        struct config config;
        char *printed;

        capture_start(&capture, STDOUT_FILENO);
        cr_expect_eq(read_config((const char *const[]){ "--check-config", "--port=1", NULL }, &config),
                     CONFIG_DONE);
        printed = capture_end(&capture);
        cr_expect_not_null(strstr(printed, "is valid"));
        free(printed);
        config_deinit(&config);

        free(errors_of((const char *const[]){ "--port=x", "--check-config", NULL }));
}

static const struct {
        const char *name;
        const char *argument;
        const char *fault;
} implausible[] = {
        { "a relative directory", "--data-dir=data",
          "--data-dir: a path that begins with '/' was expected" },
        { "a directory in none", "--data-dir=/no such/data",
          "--data-dir: the directory above it does not exist" },
        { "a file as the directory", "--data-dir=/dev/null", "--data-dir: this is not a directory" },
        { "a file in no directory", "--ready-file=/no such/file",
          "--ready-file: the directory above it does not exist" },
        { "nothing to store in", "--persist=custom", "--persist: custom is not used without --data-dir" },
};

/* The store starts with each of these. */
Test(check_config, reports_what_is_probably_a_mistake) {
        for (size_t i = 0; i < N_ROWS(implausible); i++) {
                char *errors =
                        errors_of((const char *const[]){ implausible[i].argument, "--check-config", NULL });
                struct config config;

                cr_expect_not_null(strstr(errors, implausible[i].fault), "row %zu: %s", i, errors);
                free(errors);
                cr_expect_eq(read_config((const char *const[]){ implausible[i].argument, NULL }, &config),
                             CONFIG_RUN, ROW(implausible, i));
                config_deinit(&config);
        }
}

Test(check_config, says_that_the_data_directory_will_be_created) {
        struct capture capture;
        struct config config;
        char *printed;

        capture_start(&capture, STDOUT_FILENO);
        cr_expect_eq(read_config((const char *const[]){ "--check-config", "--data-dir=/mistyped", NULL },
                                 &config),
                     CONFIG_DONE);
        printed = capture_end(&capture);
        cr_expect_not_null(
                strstr(printed, "the data directory \"/mistyped\" does not exist: the store creates it"));
        free(printed);
        config_deinit(&config);
}

Test(reload, applies_live_options_and_reports_others) {
        static const char *const before[] = { "--max-keys=1", "--port=1", NULL };
        static const char *const after[] = { "--max-keys=2", "--port=2", "--max-bytes=5", "--user=u", NULL };
        struct config config, next;
        struct capture capture;
        char *printed;

        cr_assert_eq(read_config(before, &config), CONFIG_RUN);
        cr_assert_eq(read_config(after, &next), CONFIG_RUN);
        capture_start(&capture, STDERR_FILENO);
        config_reload(&config, &next);
        printed = capture_end(&capture);
        cr_expect_eq(config.max_keys, 2);
        cr_expect_eq(config.max_bytes, 5);
        cr_expect_eq(config.port, 1);
        cr_expect_null(config.credentials.user);
        cr_expect_not_null(strstr(printed, "[store] max-keys has changed from 1 to 2\"\n"));
        cr_expect_not_null(strstr(printed, "[store] max-bytes has changed from 1GiB to 5\"\n"));
        cr_expect_not_null(
                strstr(printed, "[broker] port has changed from 1 to 2: this needs a restart\"\n"));
        cr_expect_not_null(
                strstr(printed, "[broker] user has changed from none to u: this needs a restart\"\n"));
        cr_expect_null(strstr(printed, "dialect"));
        free(printed);
        config_deinit(&config);
        config_deinit(&next);
}

/* A reload frees the strings of the previous one. */
Test(reload, does_not_borrow_from_earlier_reads) {
        static const char *const first[] = { "--max-keys=1", NULL };
        struct config config, next[2];
        struct capture capture;

        cr_assert_eq(read_config(first, &config), CONFIG_RUN);
        capture_start(&capture, STDERR_FILENO);
        for (size_t i = 0; i < 2; i++) {
                write_file("[policy]\nfile = /dev/null\n");
                cr_assert_eq(read_config(from_file, &next[i]), CONFIG_RUN);
                config_reload(&config, &next[i]);
                cr_expect_eq(config.policy_file, next[i].policy_file);
        }
        free(capture_end(&capture));
        config_deinit(&next[0]);
        cr_expect_str_eq(config.policy_file, "/dev/null");
        config_deinit(&next[1]);
        config_deinit(&config);
}
