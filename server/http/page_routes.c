/* SPDX-License-Identifier: Apache-2.0 */

#include "http/page_routes.h"

#include "base/array.h"

static void handle_page(void *userdata, struct http_exchange *exchange) {
        const struct store_page *page = http_route(exchange)->subject;
        struct buf body = { 0 };
        unsigned int status = page->render(userdata, &body);

        http_reply(exchange, status, page->content_type, &body);
}

static const struct http_route page_routes[] = {
        { "GET", "/metrics", .subject = &page_metrics, .handle = handle_page },
        { "GET", "/healthz", .subject = &page_health, .handle = handle_page },
        { "GET", "/readyz", .subject = &page_readiness, .handle = handle_page },
        { "GET", "/version", .subject = &page_version, .handle = handle_page },
};

void page_routes_add(struct http_server *http, struct store_view *view) {
        http_add_routes(http, &(struct http_routes){ .routes = page_routes,
                                                     .n_routes = ARRAY_LENGTH(page_routes),
                                                     .userdata = view });
}
