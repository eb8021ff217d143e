/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/url.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SCHEME       "mqtt://"
#define PORT_DEFAULT 1883

/* libcurl leaves %zz as it is; a URL that has it is wrong. */
static bool has_wrong_escape(const char *text) {
        while ((text = strchr(text, '%'))) {
                text++;
                if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
                        return true;
        }
        return false;
}

static void cleanup_parts(CURLU **parts) {
        curl_url_cleanup(*parts);
}

static void cleanup_text(char **text) {
        curl_free(*text);
}

/* Reads a part, which may be absent. False: it cannot be decoded, or there is no memory. */
static bool read_part(CURLU *parts, CURLUPart part, char **ret_text) {
        CURLUcode code = curl_url_get(parts, part, ret_text, CURLU_URLDECODE);

        return code == CURLUE_OK || (code >= CURLUE_NO_SCHEME && code <= CURLUE_NO_ZONEID);
}

int url_init(struct url *ret_url, const char *text) {
        CLEANUP(cleanup_parts) CURLU *parts = curl_url();
        CLEANUP(cleanup_text) char *port = NULL;
        CLEANUP(cleanup_text) char *zone = NULL; /* of an IPv6 address; --host takes one */
        CLEANUP(url_deinit) struct url url = { .port = PORT_DEFAULT };
        const char *path;

        if (strncmp(text, SCHEME, strlen(SCHEME)) != 0 || has_wrong_escape(text))
                return -EINVAL;
        path = strpbrk(text + strlen(SCHEME), "/?#");
        if (path && strcmp(path, "/") != 0)
                return -EINVAL;

        if (curl_url_set(parts, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK ||
            !read_part(parts, CURLUPART_HOST, &url.host) || !read_part(parts, CURLUPART_ZONEID, &zone) ||
            !read_part(parts, CURLUPART_PORT, &port) || !read_part(parts, CURLUPART_USER, &url.user) ||
            !read_part(parts, CURLUPART_PASSWORD, &url.password))
                return -EINVAL;
        if (port)
                url.port = (uint16_t)strtoul(port, NULL, 10); /* libcurl has seen that it fits */
        if (zone || url.port == 0 || (url.user && !*url.user))
                return -EINVAL;

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
