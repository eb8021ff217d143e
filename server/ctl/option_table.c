/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/time_units.h"
#include "ctl/command_options.h"
#include "protocol/hlc.h"

#define CLIENT_ID_LENGTH_MAX 256
#define DURATION_MAX_MS      (24 * 3600 * MS_PER_S)

static int set_user(void *target, const struct option *option, const char *value) {
        return slice_is_utf8(slice_from_string(value)) ? option_set_text(target, option, value) : -EINVAL;
}

static int set_tls(void *target, const struct option *option, const char *value) {
        ((struct command_options *)target)->is_tls_given = true;
        return option_set_switch(target, option, value);
}

/* The client id is a level of topics and the node id of timestamps. */
static int set_client_id(void *target, const struct option *option, const char *value) {
        if (strlen(value) > CLIENT_ID_LENGTH_MAX || strpbrk(value, "+#/") ||
            !hlc_node_is_valid(slice_from_string(value)))
                return -EINVAL;
        return option_set_text(target, option, value);
}

static int set_nex(void *target, const struct option *option, const char *value) {
        struct command_options *options = target;

        (void)option;
        options->nex = true;
        options->nex_value = value;
        return 0;
}

static int set_fence(void *target, const struct option *option, const char *value) {
        struct hlc hlc;

        return hlc_parse(slice_from_string(value), &hlc) < 0 ? -EINVAL
                                                             : option_set_text(target, option, value);
}

static int set_http(void *target, const struct option *option, const char *value) {
        struct slice address = slice_from_string(value);
        bool is_http = slice_starts_with(address, SLICE_LITERAL("http://")) ||
                       slice_starts_with(address, SLICE_LITERAL("https://"));

        return is_http ? option_set_text(target, option, value) : -EINVAL;
}

static int set_after(void *target, const struct option *option, const char *value) {
        ((struct command_options *)target)->has_after = true;
        return option_set_number(target, option, value);
}

#define FIELD(name) offsetof(struct command_options, name)

/* Further arguments of these macros are initializers. */
#define SWITCH(flag_, letter_, help_, field_, ...)                                                          \
        {                                                                                                   \
                .flag = flag_, .letter = letter_, .expected = "on or off", .help = help_,                   \
                .set = option_set_switch, .field = FIELD(field_), __VA_ARGS__                               \
        }

/* An option of some commands. */
#define OWN(flag_, argument_, initial_, expected_, help_, set_, field_, ...)                                \
        {                                                                                                   \
                .flag = flag_, .argument = argument_, .default_value = initial_, .expected = expected_,     \
                .help = help_, .set = set_, .field = FIELD(field_), __VA_ARGS__                             \
        }

/* An option of every command; it has an environment variable. */
#define COMMON(flag_, argument_, initial_, expected_, help_, set_, field_, ...)                             \
        {                                                                                                   \
                .flag = flag_, .argument = argument_, .default_value = initial_, .expected = expected_,     \
                .has_variable = true, .help = help_, .is_common = true, .set = set_,                        \
                .field = FIELD(field_), __VA_ARGS__                                                         \
        }

const struct option ctl_options[] = {
        SWITCH("--nx", 0, "only if the key does not exist", nx),
        OWN("--nex", "[=VALUE]", NULL, "a value",
            "only if it does not exist or has this value (default: the new value)", set_nex, nex_value),
        OWN("--px", "DURATION", NULL, "a duration of at least 1ms, such as 500ms, 10s or 5m,",
            "let the key expire after this time", option_set_duration, px_ms, .min = 1),
        SWITCH("--persist", 0, "ask the store to keep the key on disk", persist),
        OWN("--fence", "HLC", NULL, "a version such as 001696374425000:00000:StateStore",
            "fencing token; fail if the key was written with a newer one", set_fence, fence),
        OWN("--wait", "DURATION", NULL, "a duration from 0s to 24h, such as 500ms, 10s or 5m,",
            "time to wait for the lock; by default without end; 0s: only try", option_set_duration, wait_ms,
            .max = DURATION_MAX_MS),
        OWN("--lease", "DURATION", "10s", "a duration from 1s to 24h, such as 10s or 5m,",
            "time until the lock expires unless it is renewed", option_set_duration, lease_ms,
            .min = MS_PER_S, .max = DURATION_MAX_MS),
        OWN("--name", "NAME", NULL, "a name", "the holder, no other may have it; by default the client id",
            option_set_text, name),
        SWITCH("--initial", 0, "print the present value first", initial),
        OWN("--count", "N", NULL, "a number of at least 1", "exit after N lines", option_set_number, count,
            .min = 1),
        SWITCH("--long", 'l', "also print size, lifetime, fencing token and time of the version", is_long),
        OWN("--data-dir", "DIR", NULL, "a directory",
            "use the data directory of a stopped store, not the broker", option_set_text, data_dir),
        SWITCH("--etcd", 0, "use the etcd of the store's configuration (--config), not the broker", etcd),
        SWITCH("--operator", 0, "the user is an operator, and sees what other clients do", is_operator),
        OWN("--client", "ID", NULL, "a client id", "only what concerns this client", option_set_text,
            client),
        OWN("--after", "N", NULL, "a number",
            "begin with the event after this number; 0: the oldest in memory", set_after, after),
        OWN("--http", "URL", "http://127.0.0.1:9464", "an address that begins with http:// or https://",
            "the console of the store: the address of --http-listen", set_http, http, .has_variable = true),
        OWN("--token-file", "FILE", NULL, "a file name",
            "file with the token of a user of the console in its first line", option_set_text, token_file,
            .has_variable = true),
        SWITCH("--json", 0, "print JSON", json),
        SWITCH("--hex", 0, "keys and values are hexadecimal, in arguments and in the output", hex),
        COMMON("--host", "HOST[,HOST]", NULL,
               "a list of names, addresses or socket paths, each with or without :PORT,",
               "the broker; several are tried in turn", option_set_hosts, hosts),
        COMMON("--port", "PORT", NULL, "a port from 1 to 65535",
               "port of the broker; default 1883, with TLS 8883", option_set_port, port, .min = 1),
        COMMON("--config", "FILE", NULL, "a file name",
               "the store's configuration, for the address of the broker or of etcd", option_set_text,
               config_file),
        COMMON("--user", "NAME", NULL, "a user name", "user name for the broker", set_user,
               credentials.user),
        COMMON("--password-file", "FILE", NULL, "a file name", "file with the password in its first line",
               option_set_text, credentials.password_file),
        COMMON("--tls", "on|off", NULL, "on or off",
               "use TLS; trust the certificate authorities of the system", set_tls, credentials.tls),
        COMMON("--tls-ca-file", "FILE", NULL, "a file name",
               "trust the certificate authorities in this file; enables TLS", option_set_text,
               credentials.tls_ca_file),
        COMMON("--tls-certificate", "FILE", NULL, "a file name", "client certificate", option_set_text,
               credentials.tls_certificate),
        COMMON("--tls-key", "FILE", NULL, "a file name", "private key of the certificate", option_set_text,
               credentials.tls_key),
        COMMON("--client-id", "ID", NULL, "1 to 256 bytes of UTF-8 without any of : / + #",
               "MQTT client id; by default a new one for each run", set_client_id, client_id),
        COMMON("--timeout", "DURATION", "5s", "a duration from 1ms to 24h, such as 500ms, 10s or 5m,",
               "timeout for the broker, and for each reply", option_set_duration, timeout_ms, .min = 1,
               .max = DURATION_MAX_MS),
        SWITCH("--help", 'h', "print this help, and exit", help, .is_common = true),
        SWITCH("--version", 0, "print the version, and exit", version, .is_common = true),
};
const size_t n_ctl_options = ARRAY_LENGTH(ctl_options);
