/* SPDX-License-Identifier: Apache-2.0 */

#include <arpa/inet.h>
#include <criterion/criterion.h>

#include "http/http_connections.h"

static struct http_connections connections;

static struct http_connection *begin_at(const char *address) {
        struct sockaddr_in peer = { .sin_family = AF_INET };

        inet_pton(AF_INET, address, &peer.sin_addr);
        return http_connections_add(&connections, (struct MHD_Connection *)&connections,
                                    (const struct sockaddr *)&peer);
}

static bool is_any(const struct http_connection *connection) {
        (void)connection;
        return true;
}

static bool is_idle(const struct http_connection *connection) {
        return !connection->exchange;
}

Test(http_connections, oldest_of_the_address_with_the_most_makes_room) {
        struct http_connection *second;

        begin_at("127.0.0.1");
        second = begin_at("127.0.0.2");
        begin_at("127.0.0.2");
        begin_at("127.0.0.3");

        cr_expect_eq(http_connections_find(&connections, is_any), second);
}

Test(http_connections, oldest_of_all_makes_room_if_all_have_as_many) {
        struct http_connection *first, *second;

        first = begin_at("127.0.0.1");
        second = begin_at("127.0.0.2");
        cr_expect_eq(http_connections_find(&connections, is_any), first);

        http_connections_remove(first);
        begin_at("127.0.0.3"); /* in the slot of the first */
        cr_expect_eq(http_connections_find(&connections, is_any), second);
}

Test(http_connections, busy_and_closing_ones_do_not_count) {
        struct http_connection *busy = begin_at("127.0.0.1"), *closing = begin_at("127.0.0.1"), *idle;

        idle = begin_at("127.0.0.2");
        busy->exchange = (struct http_exchange *)&connections;
        closing->is_closing = true;
        cr_expect_eq(http_connections_find(&connections, is_idle), idle);
        cr_expect_eq(http_connections_n(&connections), 2);

        idle->is_closing = true;
        cr_expect_null(http_connections_find(&connections, is_idle));
}
