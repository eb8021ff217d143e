/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * A TCP proxy before a server at the loopback address, with a thread of its own. It can lose what
 * the server sends, as a network does. Failures fail the test.
 */
#define TCP_PROXY_CONNECTIONS 32
struct tcp_proxy {
        char url[64]; /* http://127.0.0.1:PORT */
        unsigned int server_port;
        int listener;
        int stop[2]; /* a pipe: its end ends the thread */
        /* A connection: the client's socket, and the server's. -1: none. */
        int sockets[TCP_PROXY_CONNECTIONS][2];
        atomic_int n_losses; /* connections that lose what the server sends, until the client closes them */
        bool loses[TCP_PROXY_CONNECTIONS];
        atomic_int n_connections; /* accepted so far */
        pthread_t thread;
};

/* server_url: http://127.0.0.1:PORT. */
void tcp_proxy_start(struct tcp_proxy *proxy, const char *server_url);
void tcp_proxy_stop(struct tcp_proxy *proxy);

/* As tcp_proxy_stop(), and reset the connections of clients: what they have sent may be lost. */
void tcp_proxy_reset(struct tcp_proxy *proxy);

/*
 * From now on lose everything that the server sends, on this number of connections in turn: on each
 * one, present or later, until the client closes it.
 */
void tcp_proxy_lose(struct tcp_proxy *proxy, int n_connections);
