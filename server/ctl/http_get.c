/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/http_get.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"

#define STATUS_OK 200

static void cleanup_easy(CURL **easy) {
        if (*easy)
                curl_easy_cleanup(*easy);
}

/* libcurl ends the transfer if the return value differs from the given size. */
static size_t on_data(char *data, size_t size, size_t n, void *userdata) {
        struct buf *body = userdata;

        if (n > HTTP_BODY_MAX - body->length) /* size is 1 */
                return 0;
        buf_append(body, data, n * size);
        return buf_failed(body) ? 0 : n;
}

static CURLcode get(CURL *easy, const char *url, int64_t timeout_ms, struct buf *body) {
        curl_easy_setopt(easy, CURLOPT_URL, url);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
        return curl_easy_perform(easy);
}

int http_get(const char *url, int64_t timeout_ms, struct buf *body, struct http_problem *ret_problem) {
        CLEANUP(cleanup_easy) CURL *easy = curl_easy_init();
        char reason[CURL_ERROR_SIZE] = "";
        long status = 0;
        CURLcode code;

        buf_reset(body);
        if (!easy) {
                snprintf(ret_problem->text, sizeof(ret_problem->text), "out of memory");
                return -EIO;
        }

        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, reason);
        code = get(easy, url, timeout_ms, body);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (code == CURLE_OK && status == STATUS_OK)
                return 0;
        if (code == CURLE_OK)
                snprintf(ret_problem->text, sizeof(ret_problem->text), "it answers with status %ld", status);
        else if (code == CURLE_WRITE_ERROR)
                snprintf(ret_problem->text, sizeof(ret_problem->text), "it is larger than it could be");
        else
                snprintf(ret_problem->text, sizeof(ret_problem->text), "%s",
                         *reason ? reason : curl_easy_strerror(code));
        return -EIO;
}
