/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/http_client.h"

#include <ctype.h>
#include <curl/curl.h>
#include <jansson.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "mqtt/client_credentials.h"

#define ERROR_LENGTH_MAX 4096

/* Three comment lines of a stream. */
#define SILENCE_MAX_MS (45 * MS_PER_S)

struct http_client {
        const struct command_options *options;
        CURL *curl;
        struct curl_slist *headers;
        char curl_reason[CURL_ERROR_SIZE];
        char problem[1024];

        /* The running query. */
        const struct http_query *query;
        struct buf error; /* body of an error */
        int64_t deadline_ms;
        bool is_late, is_stopped, is_foreign; /* foreign: the response is not of a console */
};

/* 1. Options */

static bool is_token(struct slice text) {
        for (size_t i = 0; i < text.length; i++)
                if (!isgraph(text.data[i]))
                        return false;
        return text.length > 0;
}

static enum exit_code set_token(struct http_client *client) {
        const char *name = client->options->token_file;
        CLEANUP(buf_deinit) struct buf token = { 0 }, header = { 0 };
        struct credentials_fault fault;

        if (!name)
                return EXIT_DONE;
        if (credentials_read_secret(name, &token, &fault) < 0) {
                complain("%s", fault.text);
                return EXIT_USAGE;
        }
        if (!is_token(buf_slice(&token))) {
                complain("cannot use %s: its first line is not a token, which has only printable characters "
                         "of ASCII, without blanks",
                         LOG_STRING(name));
                return EXIT_USAGE;
        }
        buf_append_string(&header, "Authorization: Bearer ");
        buf_append_slice(&header, buf_slice(&token));
        client->headers = buf_text(&header) ? curl_slist_append(NULL, buf_text(&header)) : NULL;
        return client->headers ? EXIT_DONE : complain_of_memory();
}

static enum exit_code check_ca_file(const struct http_client *client) {
        const char *name = client->options->credentials.tls_ca_file;
        int r = name ? regular_file_check(name, TLS_FILE_LENGTH_MAX) : 0;

        if (r == 0)
                return EXIT_DONE;
        complain("cannot read %s: %s", LOG_STRING(name), regular_file_fault(r, TLS_FILE_LENGTH_MAX).text);
        return EXIT_USAGE;
}

/* 2. The response */

__attribute__((format(printf, 2, 3))) static void set_problem(struct http_client *client, const char *format,
                                                              ...) {
        int length = snprintf(client->problem, sizeof(client->problem),
                              "%s: ", LOG_STRING(client->options->http));
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(client->problem + length, sizeof(client->problem) - (size_t)length, format, arguments);
        va_end(arguments);
}

static long response_status(const struct http_client *client) {
        long status = 0;

        curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
        return status;
}

static bool has_expected_type(const struct http_client *client) {
        const char *type = NULL;

        curl_easy_getinfo(client->curl, CURLINFO_CONTENT_TYPE, &type);
        return slice_starts_with(
                slice_from_string(type),
                slice_from_string(client->query->is_stream ? "text/event-stream" : "application/json"));
}

static size_t receive_body(char *bytes, size_t size, size_t n, void *userdata) {
        struct http_client *client = userdata;
        struct slice body = { (const uint8_t *)bytes, size * n };

        client->deadline_ms = system_clock_mono_ms() +
                              (client->query->is_stream ? SILENCE_MAX_MS : client->options->timeout_ms);
        if (response_status(client) != 200) {
                if (client->error.length + body.length <= ERROR_LENGTH_MAX)
                        buf_append_slice(&client->error, body);
                return body.length;
        }
        client->is_foreign = !has_expected_type(client);
        client->is_stopped = !client->is_foreign && !client->query->receive(client->query->userdata, body);
        return client->is_foreign || client->is_stopped ? 0 : body.length;
}

/*
 * libcurl calls this about once a second while nothing arrives, also while it connects. Returns nonzero to
 * end the query.
 */
static int check_progress(void *userdata, curl_off_t download_total, curl_off_t downloaded,
                          curl_off_t upload_total, curl_off_t uploaded) {
        struct pollfd output = { .fd = STDOUT_FILENO };
        struct http_client *client = userdata;

        (void)download_total, (void)downloaded, (void)upload_total, (void)uploaded;
        client->is_late |= system_clock_mono_ms() >= client->deadline_ms;
        client->is_stopped |= client->query->is_stream && poll(&output, 1, 0) > 0;
        return client->is_late || client->is_stopped;
}

/* Set the problem of a response with an error. */
static enum http_result refuse(struct http_client *client, long status) {
        json_t *body = json_loadb((const char *)client->error.data ?: "", client->error.length, 0, NULL);
        const char *text = json_string_value(json_object_get(body, "error"));
        bool is_login = status == 401 || status == 403;

        if (text)
                set_problem(client, "%s%s", LOG_STRING(text),
                            is_login ? "; see --token-file, and statestorectl console-token --help" : "");
        else
                set_problem(client, "status %ld; it is not the console of a store (--http-listen)", status);
        json_decref(body);
        return status >= 500 || status == 429 ? HTTP_FAILED : HTTP_REFUSED;
}

static enum http_result read_result(struct http_client *client, CURLcode code) {
        long status = response_status(client);

        if (client->is_stopped)
                return HTTP_STOPPED;
        if (client->is_foreign || (code == CURLE_OK && status < 400 && status != 200)) {
                set_problem(client, "it is not the console of a store (--http-listen)");
                return HTTP_REFUSED;
        }
        if (client->is_late) {
                set_problem(client, "nothing arrives; is the store running?");
                return HTTP_FAILED;
        }
        if (code == CURLE_OK && status != 200)
                return refuse(client, status);
        if (code == CURLE_OK)
                return HTTP_DONE;
        set_problem(client, "%s%s",
                    LOG_STRING(*client->curl_reason ? client->curl_reason : curl_easy_strerror(code)),
                    code == CURLE_COULDNT_CONNECT
                            ? "; see --http: the log line \"ready\" of the store has the address"
                            : "");
        return HTTP_FAILED;
}

/* 3. The client */

enum exit_code http_client_new(struct http_client **ret_client, const struct command_options *options) {
        struct http_client *client = calloc(1, sizeof(*client));
        enum exit_code code;
        CURL *curl;

        if (!client)
                return complain_of_memory();
        client->options = options;
        client->curl = curl = curl_easy_init();
        code = curl ? set_token(client) ?: check_ca_file(client) : complain_of_memory();
        if (code != EXIT_DONE) {
                http_client_free(client);
                return code;
        }

        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->curl_reason);
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive_body);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, client);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, check_progress);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        if (options->credentials.tls_ca_file)
                curl_easy_setopt(curl, CURLOPT_CAINFO, options->credentials.tls_ca_file);
        *ret_client = client;
        return EXIT_DONE;
}

struct http_client *http_client_free(struct http_client *client) {
        if (!client)
                return NULL;

        curl_easy_cleanup(client->curl);
        curl_slist_free_all(client->headers);
        buf_deinit(&client->error);
        free(client);
        return NULL;
}

void http_append_argument(struct buf *path, const char *name, struct slice value) {
        bool is_first = !path->data || !memchr(path->data, '?', path->length);

        buf_append_format(path, "%c%s=", is_first ? '?' : '&', name);
        for (size_t i = 0; i < value.length; i++)
                if (isalnum(value.data[i]))
                        buf_append(path, &value.data[i], 1);
                else
                        buf_append_format(path, "%%%02X", value.data[i]);
}

enum http_result http_client_get(struct http_client *client, const struct http_query *query) {
        struct slice base = slice_from_string(client->options->http);
        CLEANUP(buf_deinit) struct buf address = { 0 };
        enum http_result result;
        CURLcode code;

        while (base.length > 0 && base.data[base.length - 1] == '/')
                base.length--;
        buf_append_slice(&address, base);
        buf_append_string(&address, query->path);
        if (!buf_text(&address)) {
                set_problem(client, "out of memory");
                return HTTP_REFUSED;
        }

        client->query = query;
        client->is_late = client->is_stopped = client->is_foreign = false;
        client->curl_reason[0] = '\0';
        client->deadline_ms = system_clock_mono_ms() + client->options->timeout_ms;
        curl_easy_setopt(client->curl, CURLOPT_URL, buf_text(&address));
        code = curl_easy_perform(client->curl);
        result = read_result(client, code);
        buf_reset(&client->error);
        return result;
}

const char *http_client_problem(const struct http_client *client) {
        return client->problem;
}

enum exit_code http_client_finish(const struct http_client *client, enum http_result result) {
        if (result == HTTP_DONE || result == HTTP_STOPPED)
                return EXIT_DONE;
        complain("%s", client->problem);
        return result == HTTP_FAILED ? EXIT_NO_REPLY : EXIT_STORE_ERROR;
}
