/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/store_metrics.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"

#define PAGE      "/metrics"
#define BODY_MAX  ((size_t)4 << 20)
#define STATUS_OK 200

__attribute__((format(printf, 2, 3))) static void describe(struct store_metrics_problem *problem,
                                                           const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(problem->text, sizeof(problem->text), format, arguments);
        va_end(arguments);
}

CLEANUP_FUNCTION(cleanup_easy, CURL *, curl_easy_cleanup)

/* Append received data. libcurl ends the transfer if the return value differs from n. */
static size_t on_data(char *data, size_t size, size_t n, void *userdata) {
        struct buf *body = userdata;

        if (n > BODY_MAX - body->length) /* size is always 1 */
                return 0;
        buf_append(body, data, n * size);
        return buf_failed(body) ? 0 : n;
}

/*
 * Get the page at the URL, without redirections and proxies, into *body. Returns 0, or -EIO with
 * *ret_problem.
 */
static int http_get(const char *url, int64_t timeout_ms, struct buf *body,
                    struct store_metrics_problem *ret_problem) {
        CLEANUP(cleanup_easy) CURL *easy = curl_easy_init();
        char reason[CURL_ERROR_SIZE] = "";
        long status = 0;
        CURLcode code;

        buf_reset(body);
        if (!easy) {
                describe(ret_problem, "out of memory");
                return -EIO;
        }

        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, reason);
        curl_easy_setopt(easy, CURLOPT_URL, url);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
        code = curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (code == CURLE_OK && status == STATUS_OK)
                return 0;

        if (code == CURLE_OK)
                snprintf(reason, sizeof(reason), "the server replied with status %ld", status);
        else if (code == CURLE_WRITE_ERROR)
                snprintf(reason, sizeof(reason), "the page is larger than %zu bytes", BODY_MAX);
        else if (!*reason)
                snprintf(reason, sizeof(reason), "%s", curl_easy_strerror(code));
        describe(ret_problem,
                 "%s: %s; does statestored run with --http-listen, or [http] listen in its file?",
                 LOG_STRING(url), LOG_STRING(reason));
        return -EIO;
}

int store_metrics_read(const struct command_options *options, struct samples *samples,
                       struct store_metrics_problem *ret_problem) {
        struct slice base = slice_from_string(options->metrics_url);
        CLEANUP(buf_deinit) struct buf buf = { 0 };
        const char *url;

        while (slice_ends_with(base, SLICE_LITERAL("/")))
                base.length--;
        buf_append_slice(&buf, base);
        if (!slice_ends_with(base, SLICE_LITERAL(PAGE)))
                buf_append_string(&buf, PAGE);
        url = buf_text(&buf);
        if (!url) {
                describe(ret_problem, "out of memory");
                return -ENOMEM;
        }

        if (http_get(url, options->timeout_ms, &samples->text, ret_problem) < 0)
                return -EIO;
        if (samples_read(samples) == 0 &&
            samples_label(samples, "statestore_build_info", "version").length > 0)
                return 0;
        describe(ret_problem, "%s: not the metrics of statestored", LOG_STRING(url));
        return -EBADMSG;
}
