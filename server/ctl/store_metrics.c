/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/store_metrics.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"

#define URL_SIZE  1024
#define BODY_MAX  ((size_t)4 << 20)
#define STATUS_OK 200

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
        snprintf(ret_problem->text, sizeof(ret_problem->text),
                 "%s: %s; does statestored run with --http-listen, or [http] listen in its file?",
                 LOG_STRING(url), LOG_STRING(reason));
        return -EIO;
}

int store_metrics_read(const struct command_options *options, struct samples *samples,
                       struct store_metrics_problem *ret_problem) {
        char url[URL_SIZE];

        snprintf(url, sizeof(url), "%s/metrics", options->metrics_url);
        if (http_get(url, options->timeout_ms, &samples->text, ret_problem) < 0)
                return -EIO;
        if (samples_read(samples) == 0 &&
            samples_label(samples, "statestore_build_info", "version").length > 0)
                return 0;
        snprintf(ret_problem->text, sizeof(ret_problem->text), "%s: not the metrics of statestored",
                 LOG_STRING(url));
        return -EBADMSG;
}
