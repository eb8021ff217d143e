/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists of brokers: each endpoint of a parsed list is formatted, and the text parses to the same
 * endpoint.
 */

#include <errno.h>

#include "base/endpoint.h"
#include "fuzz/fuzz.h"

#define DEFAULT_PORT 1883

static void write_and_read(const struct endpoint *endpoint) {
        struct endpoint_text text = endpoint_text(endpoint);
        struct endpoint *again;
        size_t n_again;

        ASSERT(strlen(text.text) < sizeof(text.text));
        ASSERT(endpoints_parse(slice_from_string(text.text), 1, &again, &n_again) == 0);
        ASSERT(n_again == 1 && again->port == endpoint->port && strcmp(again->host, endpoint->host) == 0);
        endpoints_free(again, n_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice text = { data, size };
        struct endpoint *endpoints;
        size_t n_endpoints, n_commas = 0;
        int r;

        if (size > 0 && memchr(data, '\0', size))
                return 0; /* texts come from C strings */

        r = endpoints_parse(text, DEFAULT_PORT, &endpoints, &n_endpoints);
        if (r < 0) {
                ASSERT(r == -EINVAL);
                return 0;
        }

        for (size_t i = 0; i < size; i++)
                n_commas += data[i] == ',';
        ASSERT(n_endpoints == n_commas + 1);
        for (size_t i = 0; i < n_endpoints; i++) {
                ASSERT(endpoints[i].host[0] != '\0');
                ASSERT((endpoints[i].port == 0) == (endpoints[i].host[0] == '/'));
                write_and_read(&endpoints[i]);
        }
        endpoints_free(endpoints, n_endpoints);
        return 0;
}
