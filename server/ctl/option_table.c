/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/option_table.h"

#include <errno.h>

#include "common/hlc.h"
#include "common/parse.h"

#define CLIENT_ID_LENGTH_MAX 256
#define TIMEOUT_MAX_MS       86400000

static bool is_http(const char *url) {
        return strncmp(url, "http://", strlen("http://")) == 0 ||
               strncmp(url, "https://", strlen("https://")) == 0;
}

static int set_url(struct options *options, const char *value) {
        struct url url;
        int r;

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

static int set_text(const char **text, const char *value) {
        if (!*value)
                return -EINVAL;
        *text = value;
        return 0;
}

static int set_host(struct options *options, const char *value) {
        int r = endpoints_check(slice_from_string(value));

        if (r < 0)
                return r;

        options->hosts = value;
        return 0;
}

static int set_config(struct options *options, const char *value) {
        return set_text(&options->config_file, value);
}

static int set_port(struct options *options, const char *value) {
        return port_parse(value, &options->port);
}

static int set_user(struct options *options, const char *value) {
        return slice_is_utf8(slice_from_string(value)) ? set_text(&options->user, value) : -EINVAL;
}

static int set_password_file(struct options *options, const char *value) {
        return set_text(&options->password_file, value);
}

static int set_tls(struct options *options, const char *value) {
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
                return -EINVAL;
        options->tls.tls = strcmp(value, "on") == 0;
        options->is_tls_given = true;
        return 0;
}

static int set_tls_ca_file(struct options *options, const char *value) {
        return set_text(&options->tls.tls_ca_file, value);
}

static int set_tls_certificate(struct options *options, const char *value) {
        return set_text(&options->tls.tls_certificate, value);
}

static int set_tls_key(struct options *options, const char *value) {
        return set_text(&options->tls.tls_key, value);
}

static int set_tls_alpn(struct options *options, const char *value) {
        return set_text(&options->tls.tls_alpn, value);
}

/* It stands in topics and, as the node of our clock, in timestamps. */
static int set_client_id(struct options *options, const char *value) {
        if (strlen(value) > CLIENT_ID_LENGTH_MAX || strpbrk(value, "+#/") ||
            !hlc_node_is_valid(slice_from_string(value)))
                return -EINVAL;
        return set_text(&options->client_id, value);
}

static int set_timeout(struct options *options, const char *value) {
        int64_t timeout_ms;

        if (parse_duration(slice_from_string(value), &timeout_ms) < 0 || timeout_ms < 1 ||
            timeout_ms > TIMEOUT_MAX_MS)
                return -EINVAL;
        options->timeout_ms = timeout_ms;
        return 0;
}

static int set_interval(struct options *options, const char *value) {
        if (parse_duration(slice_from_string(value), &options->interval_ms) < 0)
                return -EINVAL;
        return options->interval_ms >= 100 && options->interval_ms <= TIMEOUT_MAX_MS ? 0 : -EINVAL;
}

static int set_json(struct options *options, const char *value) {
        (void)value;
        options->json = true;
        return 0;
}

static int set_hex(struct options *options, const char *value) {
        (void)value;
        options->hex = true;
        return 0;
}

static int set_verbose(struct options *options, const char *value) {
        (void)value;
        options->verbose = true;
        return 0;
}

static int set_key_file(struct options *options, const char *value) {
        return set_text(&options->key_file, value);
}

static int set_value_file(struct options *options, const char *value) {
        return set_text(&options->value_file, value);
}

static int set_nx(struct options *options, const char *value) {
        (void)value;
        options->nx = true;
        return 0;
}

static int set_nex(struct options *options, const char *value) {
        options->nex = true;
        options->nex_value = value;
        return 0;
}

static int set_px(struct options *options, const char *value) {
        int64_t px_ms;

        if (parse_duration(slice_from_string(value), &px_ms) < 0 || px_ms < 1)
                return -EINVAL;
        options->px_ms = px_ms;
        return 0;
}

static int set_fence(struct options *options, const char *value) {
        struct hlc hlc;

        options->fence = value;
        return hlc_parse(slice_from_string(value), &hlc);
}

static int set_persist(struct options *options, const char *value) {
        (void)value;
        options->persist = true;
        return 0;
}

static int set_pace(struct options *options, const char *value) {
        (void)value;
        options->pace = true;
        return 0;
}

static int set_data_dir(struct options *options, const char *value) {
        return set_text(&options->data_dir, value);
}

static int set_help(struct options *options, const char *value) {
        (void)value;
        options->help = true;
        return 0;
}

static int set_version(struct options *options, const char *value) {
        (void)value;
        options->version = true;
        return 0;
}

#define FOR_SET     OPTION_FOR(COMMAND_SET)
#define FOR_VALUE   (FOR_SET | OPTION_FOR(COMMAND_VDEL))
#define FOR_CHANGES (FOR_VALUE | OPTION_FOR(COMMAND_DEL))
#define FOR_KEY     (FOR_CHANGES | OPTION_FOR(COMMAND_GET) | OPTION_FOR(COMMAND_WATCH))
#define FOR_BYTES   (FOR_KEY | OPTION_FOR(COMMAND_SCAN))

#define DURATION "a duration of at least 1ms, such as 500ms, 10s or 5m,"

const struct option option_table[] = {
        { "nx", 0, NULL, NULL, NULL, NULL, "only if the key does not exist", FOR_SET, set_nx },
        { "nex", 0, "[VALUE]", NULL, NULL, "a value",
          "only if it does not exist or has this value: VALUE, or the new one", FOR_SET, set_nex },
        { "px", 0, "DURATION", NULL, NULL, DURATION, "the key expires after this long", FOR_SET, set_px },
        { "persist", 0, NULL, NULL, NULL, NULL, "ask the store to keep the key on disk", FOR_SET,
          set_persist },
        { "fence", 0, "HLC", NULL, NULL, "a version such as 001696374425000:00000:StateStore",
          "a fencing token: refused once the key has seen a newer one", FOR_CHANGES, set_fence },
        { "key-file", 0, "FILE", NULL, NULL, "a file name", "take the key from a file, - for stdin", FOR_KEY,
          set_key_file },
        { "value-file", 0, "FILE", NULL, NULL, "a file name", "take the value from a file, - for stdin",
          FOR_VALUE, set_value_file },
        { "data-dir", 0, "DIR", NULL, NULL, "a directory",
          "not through the broker, but the data directory of a stopped store",
          OPTION_FOR(COMMAND_EXPORT) | OPTION_FOR(COMMAND_IMPORT), set_data_dir },
        { "pace", 0, NULL, NULL, NULL, NULL,
          "wait between requests as long as it was when they were recorded", OPTION_FOR(COMMAND_REPLAY),
          set_pace },
        { "interval", 0, "DURATION", NULL, "2s", "a duration of at least 100ms, such as 2s,",
          "how often the numbers are read", OPTION_FOR(COMMAND_TOP), set_interval },
        { "verbose", 'v', NULL, NULL, NULL, NULL, "print the version on stderr", OPTION_FOR(COMMAND_GET),
          set_verbose },
        { "json", 0, NULL, NULL, NULL, NULL, "print JSON", OPTION_FOR_ALL, set_json },
        { "hex", 0, NULL, NULL, NULL, NULL,
          "keys and values are hex digits, as arguments and in what is printed", FOR_BYTES, set_hex },

        { "url", 'u', "URL", "STATESTORE_URL", "mqtt://127.0.0.1:1883", NULL,
          "mqtt://[USER[:PASSWORD]@]HOST[:PORT]; stat, top: http://HOST[:PORT]", OPTION_FOR_ALL, set_url },
        { "host", 0, "HOST[,HOST]", "STATESTORE_HOST", NULL,
          "names, addresses or socket paths, each with :PORT or without",
          "the broker, in place of --url's; several are tried in turn", OPTION_FOR_ALL, set_host },
        { "port", 0, "PORT", "STATESTORE_PORT", NULL, "a port from 1 to 65535",
          "its port, in place of --url's", OPTION_FOR_ALL, set_port },
        { "config", 0, "FILE", "STATESTORE_CONFIG", NULL, "a file name",
          "the store's file: its broker and pages, if nothing above says others", OPTION_FOR_ALL,
          set_config },
        { "user", 0, "NAME", "STATESTORE_USER", NULL, "a user name", "who we are to the broker",
          OPTION_FOR_ALL, set_user },
        { "password-file", 0, "FILE", "STATESTORE_PASSWORD_FILE", NULL, "a file name",
          "a file with the password on its only line", OPTION_FOR_ALL, set_password_file },
        { "tls", 0, "on|off", "STATESTORE_TLS", "off", "on or off",
          "encrypt; on trusts the system's authorities", OPTION_FOR_ALL, set_tls },
        { "tls-ca-file", 0, "FILE", "STATESTORE_TLS_CA_FILE", NULL, "a file name",
          "trust these instead; switches TLS on", OPTION_FOR_ALL, set_tls_ca_file },
        { "tls-certificate", 0, "FILE", "STATESTORE_TLS_CERTIFICATE", NULL, "a file name", "our certificate",
          OPTION_FOR_ALL, set_tls_certificate },
        { "tls-key", 0, "FILE", "STATESTORE_TLS_KEY", NULL, "a file name", "its key", OPTION_FOR_ALL,
          set_tls_key },
        { "tls-alpn", 0, "NAME", "STATESTORE_TLS_ALPN", NULL, "a name", "the protocol to ask for by ALPN",
          OPTION_FOR_ALL, set_tls_alpn },
        { "client-id", 0, "ID", "STATESTORE_CLIENT_ID", NULL,
          "1 to 256 bytes of UTF-8 without any of : / + #", "our MQTT client id (another one each time)",
          OPTION_FOR_ALL, set_client_id },
        { "timeout", 0, "DURATION", "STATESTORE_TIMEOUT", "5s", DURATION,
          "how long to wait for the broker, then for each answer", OPTION_FOR_ALL, set_timeout },

        { "help", 'h', NULL, NULL, NULL, NULL, "print this", OPTION_FOR_ALL, set_help },
        { "version", 0, NULL, NULL, NULL, NULL, "print the version of statestorectl", OPTION_FOR_ALL,
          set_version },
};
const size_t n_options = sizeof(option_table) / sizeof(option_table[0]);

const struct option *option_find(struct slice name) {
        for (size_t i = 0; i < n_options; i++)
                if (slice_equal(name, slice_from_string(option_table[i].name)))
                        return &option_table[i];
        return NULL;
}

const struct option *option_find_letter(char letter) {
        for (size_t i = 0; i < n_options; i++)
                if (letter && letter == option_table[i].letter)
                        return &option_table[i];
        return NULL;
}
