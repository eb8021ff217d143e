/* SPDX-License-Identifier: Apache-2.0 */

#include "http/console/origin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

#define HOST_MAX 256

/* Split HOST[:PORT] or [ADDRESS][:PORT], and copy the host. Returns false if it is none. */
static bool copy_host(struct slice text, char *ret_host) {
        bool has_brackets = text.length > 0 && text.data[0] == '[';
        struct slice rest, host;

        host = slice_split(has_brackets ? slice_skip(text, 1) : text, has_brackets ? ']' : ':', &rest);
        if (has_brackets && (!rest.data || (rest.length > 0 && rest.data[0] != ':')))
                return false;
        if (host.length == 0 || host.length >= HOST_MAX || memchr(host.data, '\0', host.length))
                return false;
        snprintf(ret_host, HOST_MAX, "%.*s", (int)host.length, (const char *)host.data);
        return true;
}

bool console_host_is_address(struct slice host) {
        struct in6_addr address;
        char name[HOST_MAX];

        return copy_host(host, name) &&
               (strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &address) == 1 ||
                inet_pton(AF_INET6, name, &address) == 1);
}

bool console_origin_is_own(struct slice origin, struct slice host) {
        struct slice rest;

        slice_split(origin, '/', &rest); /* http: or https: */
        return host.length > 0 && rest.length == host.length + 1 && rest.data[0] == '/' &&
               strncasecmp((const char *)rest.data + 1, (const char *)host.data, host.length) == 0;
}
