/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http/http_server.h"
#include "http/pages.h"

/*
 * Serve /metrics, /healthz, /readyz and /version to everybody. The view is borrowed until
 * http_close(). Not in pages.c, which needs no HTTP library.
 */
void page_routes_add(struct http_server *http, struct store_view *view);
