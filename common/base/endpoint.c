/* SPDX-License-Identifier: Apache-2.0 */

#include "base/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

static int parse_port(struct slice text, uint16_t *ret_port) {
        uint64_t port;

        if (parse_uint64(text, &port) < 0 || port < 1 || port > UINT16_MAX)
                return -EINVAL;
        *ret_port = (uint16_t)port;
        return 0;
}

static size_t count_occurrences(struct slice text, char wanted) {
        size_t n = 0;

        for (size_t i = 0; i < text.length; i++)
                n += text.data[i] == (uint8_t)wanted;
        return n;
}

/* Split HOST:PORT or [ADDRESS]:PORT. *ret_port is unchanged if text has no port. */
static int split_port(struct slice text, struct slice *ret_host, uint16_t *ret_port) {
        struct slice host, port;

        if (text.length > 0 && text.data[0] == '[') {
                host = slice_split(slice_skip(text, 1), ']', &port);
                if (!port.data)
                        return -EINVAL;
                *ret_host = host;
                if (port.length == 0)
                        return 0;
                return port.data[0] == ':' ? parse_port(slice_skip(port, 1), ret_port) : -EINVAL;
        }
        if (count_occurrences(text, ':') > 1) { /* a bare IPv6 address */
                *ret_host = text;
                return 0;
        }

        *ret_host = slice_split(text, ':', &port);
        return port.data ? parse_port(port, ret_port) : 0;
}

static struct slice without_blanks(struct slice text) {
        while (text.length > 0 && text.data[0] == ' ')
                text = slice_skip(text, 1);
        while (text.length > 0 && text.data[text.length - 1] == ' ')
                text.length--;
        return text;
}

static int parse_one(struct slice text, uint16_t default_port, struct endpoint *ret_endpoint) {
        struct endpoint endpoint = { .port = default_port };
        struct slice host = text = without_blanks(text);
        int r;

        if (text.length > 0 && text.data[0] == '/') {
                endpoint.port = 0;
        } else {
                r = split_port(text, &host, &endpoint.port);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < host.length; i++)
                        if (host.data[i] <= ' ' || strchr("[]/\"'", host.data[i]))
                                return -EINVAL; /* such as host/path, a b, or a name in quotes */
        }
        if (host.length == 0 || host.length > 255)
                return -EINVAL;

        endpoint.host = strndup((const char *)host.data, host.length);
        if (!endpoint.host)
                return -ENOMEM;
        *ret_endpoint = endpoint;
        return 0;
}

int endpoints_parse(struct slice text, uint16_t default_port, struct endpoint **ret_endpoints,
                    size_t *ret_n_endpoints) {
        struct endpoint *endpoints = NULL;
        size_t n_endpoints = 0, capacity = 0;
        int r = 0;

        while (r == 0 && (text.data || n_endpoints == 0)) {
                struct slice one = slice_split(text, ',', &text);

                r = array_reserve((void **)&endpoints, &capacity, n_endpoints + 1, sizeof(*endpoints));
                if (r == 0)
                        r = parse_one(one, default_port, &endpoints[n_endpoints]);
                if (r == 0)
                        n_endpoints++;
        }
        if (r < 0) {
                endpoints_free(endpoints, n_endpoints);
                return r;
        }

        *ret_endpoints = endpoints;
        *ret_n_endpoints = n_endpoints;
        return 0;
}

int endpoints_check(struct slice text) {
        struct endpoint *endpoints;
        size_t n_endpoints;
        int r;

        r = endpoints_parse(text, 1, &endpoints, &n_endpoints);
        if (r < 0)
                return r;

        endpoints_free(endpoints, n_endpoints);
        return 0;
}

void endpoints_free(struct endpoint *endpoints, size_t n_endpoints) {
        for (size_t i = 0; i < n_endpoints; i++)
                free(endpoints[i].host);
        free(endpoints);
}

struct endpoint_text endpoint_text(const struct endpoint *endpoint) {
        struct endpoint_text text;

        if (endpoint->port == 0)
                snprintf(text.text, sizeof(text.text), "%s", endpoint->host);
        else if (strchr(endpoint->host, ':'))
                snprintf(text.text, sizeof(text.text), "[%s]:%u", endpoint->host, endpoint->port);
        else
                snprintf(text.text, sizeof(text.text), "%s:%u", endpoint->host, endpoint->port);
        return text;
}
