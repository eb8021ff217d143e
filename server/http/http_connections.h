/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct MHD_Connection;
struct http_exchange;

/*
 * The connections of the HTTP server, and which of them has to make room for another one.
 *
 * A slow peer keeps what it has until others need it. Then the address with the most connections loses
 * its oldest one. So an attacker with many slow connections closes its own ones.
 */
struct http_connection {
        struct MHD_Connection *handle;  /* NULL: a free slot */
        struct http_exchange *exchange; /* set by the caller; NULL: none */
        bool is_closing;                /* set by the caller */
        struct in6_addr address;
        uint64_t number;    /* in the order of their begin */
        uint64_t last_turn; /* 0: none */
};

#define HTTP_CONNECTIONS_MAX 160
struct http_connections {
        struct http_connection slots[HTTP_CONNECTIONS_MAX];
        uint64_t n_begun;
};

/* Add a connection with the peer at this address. Valid until http_connections_remove(). */
struct http_connection *http_connections_add(struct http_connections *connections,
                                             struct MHD_Connection *handle, const struct sockaddr *peer);
void http_connections_remove(struct http_connection *connection);

/* The number of connections that are not closing. */
size_t http_connections_n(const struct http_connections *connections);

/*
 * Of the connections that are not closing and for which the function returns true, return the oldest
 * one of the address that has the most of them; NULL if there is none.
 */
struct http_connection *http_connections_find(struct http_connections *connections,
                                              bool (*matches)(const struct http_connection *connection));

/*
 * Take a turn for the address of the connection in this round, numbered from 1. Returns false if
 * another request of the address has had it.
 */
bool http_connections_take_turn(struct http_connections *connections, struct http_connection *connection,
                                uint64_t round);
