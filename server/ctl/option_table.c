/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/option_table.h"

#include <errno.h>
#include <stddef.h>

#include "base/parse.h"
#include "ctl/options.h"
#include "protocol/hlc.h"

#define CLIENT_ID_LENGTH_MAX 256
#define TIMEOUT_MAX_MS       86400000

static bool is_http(const char *url) {
        return strncmp(url, "http://", strlen("http://")) == 0 ||
               strncmp(url, "https://", strlen("https://")) == 0;
}

static int set_url(void *target, const struct option *option, const char *value) {
        struct options *options = target;
        struct url url;
        int r;

        (void)option;
        /* which of the two a command takes is looked at when it is known which command it is */
        options->is_http_url_given = is_http(value);
        if (is_http(value)) {
                options->http_url = value;
                return 0;
        }

        r = url_init(&url, value);
        if (r < 0)
                return r;

        /* a URL says all of it; the name and password of another URL must not go to this one's host */
        url_deinit(&options->url);
        options->url = url;
        options->is_url_given = true;
        options->hosts = NULL;
        options->port = 0;
        if (url.user)
                options->user = NULL;
        if (url.password)
                options->password_file = NULL;
        return 0;
}

static int set_port(void *target, const struct option *option, const char *value) {
        int r = option_set_port(target, option, value);

        return r < 0 || ((struct options *)target)->port > 0 ? r : -EINVAL;
}

static int set_user(void *target, const struct option *option, const char *value) {
        return slice_is_utf8(slice_from_string(value)) ? option_set_text(target, option, value) : -EINVAL;
}

static int set_tls(void *target, const struct option *option, const char *value) {
        ((struct options *)target)->is_tls_given = true;
        return option_set_switch(target, option, value);
}

/* It stands in topics and, as the node of our clock, in timestamps. */
static int set_client_id(void *target, const struct option *option, const char *value) {
        if (strlen(value) > CLIENT_ID_LENGTH_MAX || strpbrk(value, "+#/") ||
            !hlc_node_is_valid(slice_from_string(value)))
                return -EINVAL;
        return option_set_text(target, option, value);
}

static int set_timeout(void *target, const struct option *option, const char *value) {
        struct options *options = target;
        int64_t timeout_ms;

        (void)option;
        if (parse_duration(slice_from_string(value), &timeout_ms) < 0 || timeout_ms < 1 ||
            timeout_ms > TIMEOUT_MAX_MS)
                return -EINVAL;
        options->timeout_ms = timeout_ms;
        return 0;
}

static int set_interval(void *target, const struct option *option, const char *value) {
        struct options *options = target;

        (void)option;
        if (parse_duration(slice_from_string(value), &options->interval_ms) < 0)
                return -EINVAL;
        return options->interval_ms >= 100 && options->interval_ms <= TIMEOUT_MAX_MS ? 0 : -EINVAL;
}

static int set_nex(void *target, const struct option *option, const char *value) {
        struct options *options = target;

        (void)option;
        options->nex = true;
        options->nex_value = value;
        return 0;
}

static int set_px(void *target, const struct option *option, const char *value) {
        struct options *options = target;
        int64_t px_ms;

        (void)option;
        if (parse_duration(slice_from_string(value), &px_ms) < 0 || px_ms < 1)
                return -EINVAL;
        options->px_ms = px_ms;
        return 0;
}

static int set_fence(void *target, const struct option *option, const char *value) {
        struct options *options = target;
        struct hlc hlc;

        (void)option;
        options->fence = value;
        return hlc_parse(slice_from_string(value), &hlc);
}

#define FOR_SET     OPTION_FOR(COMMAND_SET)
#define FOR_VALUE   (FOR_SET | OPTION_FOR(COMMAND_VDEL))
#define FOR_CHANGES (FOR_VALUE | OPTION_FOR(COMMAND_DEL))
#define FOR_KEY     (FOR_CHANGES | OPTION_FOR(COMMAND_GET) | OPTION_FOR(COMMAND_WATCH))
#define FOR_BYTES   (FOR_KEY | OPTION_FOR(COMMAND_SCAN))

#define DURATION "a duration of at least 1ms, such as 500ms, 10s or 5m,"

#define FIELD(name) offsetof(struct options, name)

#define SWITCH(flag_, letter_, help_, commands_, field_)                                                    \
        {                                                                                                   \
                .flag = flag_, .letter = letter_, .expected = "on or off", .help = help_,                   \
                .commands = commands_, .set = option_set_switch, .field = FIELD(field_)                     \
        }

#define VALUE(flag_, argument_, initial_, expected_, has_variable_, help_, commands_, set_, field_)         \
        {                                                                                                   \
                .flag = flag_, .argument = argument_, .initial = initial_, .expected = expected_,           \
                .has_variable = has_variable_, .help = help_, .commands = commands_, .set = set_,           \
                .field = field_                                                                             \
        }

const struct option ctl_options[] = {
        SWITCH("--nx", 0, "only if the key does not exist", FOR_SET, nx),
        VALUE("--nex", "[VALUE]", NULL, "a value", false,
              "only if it does not exist or has this value: VALUE, or the new one", FOR_SET, set_nex, 0),
        VALUE("--px", "DURATION", NULL, DURATION, false, "the key expires after this long", FOR_SET, set_px,
              0),
        SWITCH("--persist", 0, "ask the store to keep the key on disk", FOR_SET, persist),
        VALUE("--fence", "HLC", NULL, "a version such as 001696374425000:00000:StateStore", false,
              "a fencing token: refused once the key has seen a newer one", FOR_CHANGES, set_fence, 0),
        VALUE("--key-file", "FILE", NULL, "a file name", false, "take the key from a file, - for stdin",
              FOR_KEY, option_set_text, FIELD(key_file)),
        VALUE("--value-file", "FILE", NULL, "a file name", false, "take the value from a file, - for stdin",
              FOR_VALUE, option_set_text, FIELD(value_file)),
        VALUE("--data-dir", "DIR", NULL, "a directory", false,
              "not through the broker, but the data directory of a stopped store",
              OPTION_FOR(COMMAND_EXPORT) | OPTION_FOR(COMMAND_IMPORT), option_set_text, FIELD(data_dir)),
        SWITCH("--pace", 0, "wait between requests as long as it was when they were recorded",
               OPTION_FOR(COMMAND_REPLAY), pace),
        VALUE("--interval", "DURATION", "2s", "a duration of at least 100ms, such as 2s,", false,
              "how often the numbers are read", OPTION_FOR(COMMAND_TOP), set_interval, 0),
        SWITCH("--verbose", 'v', "print the version on stderr", OPTION_FOR(COMMAND_GET), verbose),
        SWITCH("--json", 0, "print JSON", OPTION_FOR_ALL, json),
        SWITCH("--hex", 0, "keys and values are hex digits, as arguments and in what is printed", FOR_BYTES,
               hex),
        { .flag = "--url",
          .letter = 'u',
          .argument = "URL",
          .has_variable = true,
          .is_secret = true,
          .initial = "mqtt://127.0.0.1:1883",
          .expected = "mqtt://[USER[:PASSWORD]@]HOST[:PORT]",
          .help = "mqtt://[USER[:PASSWORD]@]HOST[:PORT]; stat, top: http://HOST[:PORT]",
          .commands = OPTION_FOR_ALL,
          .set = set_url },
        VALUE("--host", "HOST[,HOST]", NULL, "names, addresses or socket paths, each with :PORT or without",
              true, "the broker, in place of --url's; several are tried in turn", OPTION_FOR_ALL,
              option_set_hosts, FIELD(hosts)),
        VALUE("--port", "PORT", NULL, "a port from 1 to 65535", true, "its port, in place of --url's",
              OPTION_FOR_ALL, set_port, FIELD(port)),
        VALUE("--config", "FILE", NULL, "a file name", true,
              "the store's file: its broker and pages, if nothing above says others", OPTION_FOR_ALL,
              option_set_text, FIELD(config_file)),
        VALUE("--user", "NAME", NULL, "a user name", true, "who we are to the broker", OPTION_FOR_ALL,
              set_user, FIELD(user)),
        VALUE("--password-file", "FILE", NULL, "a file name", true,
              "a file with the password on its only line", OPTION_FOR_ALL, option_set_text,
              FIELD(password_file)),
        VALUE("--tls", "on|off", "off", "on or off", true, "encrypt; on trusts the system's authorities",
              OPTION_FOR_ALL, set_tls, FIELD(tls.tls)),
        VALUE("--tls-ca-file", "FILE", NULL, "a file name", true, "trust these instead; switches TLS on",
              OPTION_FOR_ALL, option_set_text, FIELD(tls.tls_ca_file)),
        VALUE("--tls-certificate", "FILE", NULL, "a file name", true, "our certificate", OPTION_FOR_ALL,
              option_set_text, FIELD(tls.tls_certificate)),
        VALUE("--tls-key", "FILE", NULL, "a file name", true, "its key", OPTION_FOR_ALL, option_set_text,
              FIELD(tls.tls_key)),
        VALUE("--tls-alpn", "NAME", NULL, "a name", true, "the protocol to ask for by ALPN", OPTION_FOR_ALL,
              option_set_text, FIELD(tls.tls_alpn)),
        VALUE("--client-id", "ID", NULL, "1 to 256 bytes of UTF-8 without any of : / + #", true,
              "our MQTT client id (another one each time)", OPTION_FOR_ALL, set_client_id, FIELD(client_id)),
        VALUE("--timeout", "DURATION", "5s", DURATION, true,
              "how long to wait for the broker, then for each answer", OPTION_FOR_ALL, set_timeout, 0),
        SWITCH("--help", 'h', "print this", OPTION_FOR_ALL, help),
        SWITCH("--version", 0, "print the version of statestorectl", OPTION_FOR_ALL, version),
};
const size_t n_ctl_options = sizeof(ctl_options) / sizeof(ctl_options[0]);
