/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/url.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"

#define SCHEME       "mqtt://"
#define PORT_DEFAULT 1883

int port_parse(const char *text, uint16_t *ret_port) {
        uint64_t port;

        if (parse_uint64(slice_from_string(text), &port) < 0 || port < 1 || port > UINT16_MAX)
                return -EINVAL;

        *ret_port = (uint16_t)port;
        return 0;
}

/* libcurl leaves %zz as it is; a URL that has it is wrong. */
static bool has_wrong_escape(const char *text) {
        while ((text = strchr(text, '%'))) {
                text++;
                if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
                        return true;
        }
        return false;
}

static void cleanup_curl_url(CURLU **parts) {
        curl_url_cleanup(*parts);
}

/* *ret_text is left alone where the URL has no such part. */
static int read_part(CURLU *parts, CURLUPart part, unsigned int flags, char **ret_text) {
        switch (curl_url_get(parts, part, ret_text, flags)) {
        case CURLUE_OK:
        case CURLUE_NO_USER:
        case CURLUE_NO_PASSWORD:
        case CURLUE_NO_PORT:
        case CURLUE_NO_QUERY:
        case CURLUE_NO_FRAGMENT:
                return 0;
        case CURLUE_OUT_OF_MEMORY:
                return -ENOMEM;
        default:
                return -EINVAL;
        }
}

static int read_port(CURLU *parts, uint16_t *ret_port) {
        char *text = NULL;
        int r = read_part(parts, CURLUPART_PORT, 0, &text);

        *ret_port = PORT_DEFAULT;
        if (r == 0 && text)
                r = port_parse(text, ret_port);
        curl_free(text);
        return r;
}

/* The URL ends with its host and port, or with the slash behind them. */
static int expect_no_path(CURLU *parts) {
        static const CURLUPart rest[] = { CURLUPART_PATH, CURLUPART_QUERY, CURLUPART_FRAGMENT };
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof(rest) / sizeof(rest[0]); i++) {
                char *text = NULL;

                r = read_part(parts, rest[i], 0, &text);
                if (r == 0 && text && strcmp(text, "/") != 0)
                        r = -EINVAL;
                curl_free(text);
        }
        return r;
}

int url_init(struct url *ret_url, const char *text) {
        CLEANUP(cleanup_curl_url) CURLU *parts = curl_url();
        CLEANUP(url_deinit) struct url url = { 0 };
        int r;

        if (!parts)
                return -ENOMEM;
        if (strncmp(text, SCHEME, strlen(SCHEME)) != 0 || has_wrong_escape(text))
                return -EINVAL;

        switch (curl_url_set(parts, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME)) {
        case CURLUE_OK:
                break;
        case CURLUE_OUT_OF_MEMORY:
                return -ENOMEM;
        default:
                return -EINVAL;
        }
        r = read_part(parts, CURLUPART_HOST, 0, &url.host);
        if (r == 0)
                r = read_part(parts, CURLUPART_USER, CURLU_URLDECODE, &url.user);
        if (r == 0)
                r = read_part(parts, CURLUPART_PASSWORD, CURLU_URLDECODE, &url.password);
        if (r == 0)
                r = read_port(parts, &url.port);
        if (r == 0)
                r = expect_no_path(parts);
        if (r == 0 && url.user && !*url.user)
                r = -EINVAL;
        if (r < 0)
                return r;

        *ret_url = url;
        url = (struct url){ 0 };
        return 0;
}

void url_deinit(struct url *url) {
        curl_free(url->host);
        curl_free(url->user);
        curl_free(url->password);
        *url = (struct url){ 0 };
}
