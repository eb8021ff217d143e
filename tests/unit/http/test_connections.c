/* SPDX-License-Identifier: Apache-2.0 */

#include <arpa/inet.h>
#include <criterion/criterion.h>

#include "http/connections.h"

static struct connections connections;

static struct connection *begin_at(const char *address) {
        struct sockaddr_in peer = { .sin_family = AF_INET };

        inet_pton(AF_INET, address, &peer.sin_addr);
        return connections_add(&connections, (struct MHD_Connection *)&connections,
                               (const struct sockaddr *)&peer);
}

static bool is_any(const struct connection *connection) {
        (void)connection;
        return true;
}

static bool is_idle(const struct connection *connection) {
        return !connection->exchange;
}

Test(connections, oldest_of_the_address_with_the_most_makes_room) {
        struct connection *second;

        begin_at("127.0.0.1");
        second = begin_at("127.0.0.2");
        begin_at("127.0.0.2");
        begin_at("127.0.0.3");

        cr_expect_eq(connections_find(&connections, is_any), second);
}

Test(connections, oldest_of_all_makes_room_if_all_have_as_many) {
        struct connection *first, *second;

        first = begin_at("127.0.0.1");
        second = begin_at("127.0.0.2");
        cr_expect_eq(connections_find(&connections, is_any), first);

        connections_remove(first);
        begin_at("127.0.0.3"); /* in the slot of the first */
        cr_expect_eq(connections_find(&connections, is_any), second);
}

Test(connections, busy_and_closing_ones_do_not_count) {
        struct connection *busy = begin_at("127.0.0.1"), *closing = begin_at("127.0.0.1"), *idle;

        idle = begin_at("127.0.0.2");
        busy->exchange = (struct http_exchange *)&connections;
        closing->is_closing = true;
        cr_expect_eq(connections_find(&connections, is_idle), idle);
        cr_expect_eq(connections_n(&connections), 2);

        idle->is_closing = true;
        cr_expect_null(connections_find(&connections, is_idle));
}
