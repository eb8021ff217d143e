/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/http_client.h"

#include <ctype.h>
#include <curl/curl.h>
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

#define ERROR_LENGTH_MAX  4096
#define OBJECT_LENGTH_MAX ((size_t)256 << 20)

#define A_CONSOLE "the console of a store (--http-listen)"

/* Three comment lines of a stream. */
#define SILENCE_MAX_MS (45 * MS_PER_S)

struct http_client {
        const struct command_options *options;
        CURL *curl;
        struct curl_slist *headers;
        char curl_reason[CURL_ERROR_SIZE];
        char problem[1024];

        /* The running query. */
        bool is_stream;
        enum http_result (*receive)(void *userdata, struct slice bytes);
        void *userdata;
        struct buf error; /* body of an error */
        int64_t deadline_ms;
        enum http_result ended; /* HTTP_DONE: the client has not ended the transfer */
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

/* Set the problem. Returns the result. */
__attribute__((format(printf, 3, 4))) static enum http_result
fail_query(struct http_client *client, enum http_result result, const char *format, ...) {
        int length = snprintf(client->problem, sizeof(client->problem),
                              "%s: ", LOG_STRING(client->options->http));
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(client->problem + length, sizeof(client->problem) - (size_t)length, format, arguments);
        va_end(arguments);
        return result;
}

static enum http_result fail_malformed(struct http_client *client) {
        return fail_query(client, HTTP_REFUSED, "the reply is malformed or too large");
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
                slice_from_string(client->is_stream ? "text/event-stream" : "application/json"));
}

static size_t receive_body(char *bytes, size_t size, size_t n, void *userdata) {
        struct http_client *client = userdata;
        struct slice body = { (const uint8_t *)bytes, size * n };

        client->deadline_ms =
                system_clock_mono_ms() + (client->is_stream ? SILENCE_MAX_MS : client->options->timeout_ms);
        if (response_status(client) != 200) {
                if (client->error.length + body.length <= ERROR_LENGTH_MAX)
                        buf_append_slice(&client->error, body);
                return body.length;
        }
        if (!has_expected_type(client))
                client->ended = fail_query(client, HTTP_REFUSED, "it is not " A_CONSOLE);
        else if ((client->ended = client->receive(client->userdata, body)) == HTTP_REFUSED)
                fail_malformed(client);
        return client->ended == HTTP_DONE ? body.length : 0;
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
        if (client->is_stream && poll(&output, 1, 0) > 0)
                client->ended = HTTP_STOPPED;
        else if (system_clock_mono_ms() >= client->deadline_ms)
                client->ended = fail_query(client, HTTP_FAILED, "nothing arrives; is the store running?");
        return client->ended != HTTP_DONE;
}

/* Set the problem of a response with an error. */
static enum http_result refuse(struct http_client *client, long status) {
        json_t *body = json_loadb((const char *)client->error.data ?: "", client->error.length, 0, NULL);
        const char *text = json_string_value(json_object_get(body, "error"));
        bool is_login = status == 401 || status == 403;
        enum http_result result = status >= 500 || status == 429 ? HTTP_FAILED : HTTP_REFUSED;

        if (text)
                fail_query(client, result, "%s%s", LOG_STRING(text),
                           is_login ? "; see --token-file, and statestorectl console-token --help" : "");
        else
                fail_query(client, result, "status %ld; it is not " A_CONSOLE, status);
        json_decref(body);
        return result;
}

static enum http_result read_result(struct http_client *client, CURLcode code) {
        long status = response_status(client);

        if (client->ended != HTTP_DONE)
                return client->ended;
        if (code == CURLE_OK)
                return status == 200 ? HTTP_DONE : refuse(client, status);
        return fail_query(client, HTTP_FAILED, "%s%s",
                          LOG_STRING(*client->curl_reason ? client->curl_reason : curl_easy_strerror(code)),
                          code == CURLE_COULDNT_CONNECT
                                  ? "; see --http: the log line \"ready\" of the store has the address"
                                  : "");
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
        if (options->credentials.tls_ca_file) {
                curl_easy_setopt(curl, CURLOPT_CAINFO, options->credentials.tls_ca_file);
                curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); /* the default has those of the system */
        }
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

static enum http_result run_query(struct http_client *client, const char *path) {
        struct slice base = slice_from_string(client->options->http);
        CLEANUP(buf_deinit) struct buf address = { 0 };
        enum http_result result;
        CURLcode code;

        while (base.length > 0 && base.data[base.length - 1] == '/')
                base.length--;
        buf_append_slice(&address, base);
        buf_append_string(&address, path);
        if (!buf_text(&address))
                return fail_query(client, HTTP_REFUSED, "out of memory");

        client->ended = HTTP_DONE;
        client->curl_reason[0] = '\0';
        client->deadline_ms = system_clock_mono_ms() + client->options->timeout_ms;
        curl_easy_setopt(client->curl, CURLOPT_URL, buf_text(&address));
        code = curl_easy_perform(client->curl);
        result = read_result(client, code);
        buf_reset(&client->error);
        return result;
}

static enum http_result append_body(void *userdata, struct slice bytes) {
        struct buf *body = userdata;

        buf_append_slice(body, bytes);
        return body->length > OBJECT_LENGTH_MAX || buf_failed(body) ? HTTP_REFUSED : HTTP_DONE;
}

enum http_result http_client_get(struct http_client *client, const char *path, struct buf *ret_text,
                                 json_t **ret_object) {
        enum http_result result;
        json_t *object;

        client->is_stream = false;
        client->receive = append_body;
        client->userdata = ret_text;
        buf_reset(ret_text);
        result = run_query(client, path);
        if (result != HTTP_DONE)
                return result;
        object = json_loadb((const char *)ret_text->data, ret_text->length, JSON_ALLOW_NUL, NULL);
        if (!json_is_object(object)) {
                json_decref(object);
                return fail_malformed(client);
        }
        *ret_object = object;
        return HTTP_DONE;
}

enum http_result http_client_stream(struct http_client *client, const char *path,
                                    enum http_result (*receive)(void *userdata, struct slice bytes),
                                    void *userdata) {
        client->is_stream = true;
        client->receive = receive;
        client->userdata = userdata;
        return run_query(client, path);
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
