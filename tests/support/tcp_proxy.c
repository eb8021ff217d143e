/* SPDX-License-Identifier: Apache-2.0 */

#include "support/tcp_proxy.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENT, SERVER };

static struct sockaddr_in loopback(unsigned int port) {
        return (struct sockaddr_in){ .sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void close_connection(struct tcp_proxy *proxy, size_t i) {
        close(proxy->sockets[i][CLIENT]);
        close(proxy->sockets[i][SERVER]);
        proxy->sockets[i][CLIENT] = proxy->sockets[i][SERVER] = -1;
        if (proxy->loses[i])
                atomic_fetch_sub(&proxy->n_losses, 1);
        proxy->loses[i] = false;
}

static void accept_client(struct tcp_proxy *proxy) {
        struct sockaddr_in address = loopback(proxy->server_port);
        int client = accept(proxy->listener, NULL, NULL);
        int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        atomic_fetch_add(&proxy->n_connections, 1);
        /* Nagle's algorithm would wait for acknowledgements, which are delayed. */
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        for (size_t i = 0; i < TCP_PROXY_CONNECTIONS; i++) {
                if (proxy->sockets[i][CLIENT] >= 0)
                        continue;
                proxy->sockets[i][CLIENT] = client;
                proxy->sockets[i][SERVER] = server;
                if (connect(server, (struct sockaddr *)&address, sizeof(address)) < 0)
                        close_connection(proxy, i);
                return;
        }
        close(client);
        close(server);
}

/* Pass what one side has sent. Returns false at its end. */
static bool pass(struct tcp_proxy *proxy, size_t i, int from) {
        char bytes[65536];
        ssize_t length = read(proxy->sockets[i][from], bytes, sizeof(bytes));

        if (length <= 0)
                return false;
        if (from == SERVER && !proxy->loses[i] && atomic_load(&proxy->n_losses) > 0)
                proxy->loses[i] = true;
        if (from == SERVER && proxy->loses[i])
                return true;
        for (ssize_t done = 0, n; done < length; done += n) {
                n = send(proxy->sockets[i][!from], bytes + done, (size_t)(length - done), MSG_NOSIGNAL);
                if (n <= 0)
                        return false;
        }
        return true;
}

static void *run_proxy(void *userdata) {
        struct tcp_proxy *proxy = userdata;
        struct pollfd polled[2 + 2 * TCP_PROXY_CONNECTIONS];

        for (;;) {
                polled[0] = (struct pollfd){ .fd = proxy->stop[0], .events = POLLIN };
                polled[1] = (struct pollfd){ .fd = proxy->listener, .events = POLLIN };
                for (size_t i = 0; i < 2 * TCP_PROXY_CONNECTIONS; i++)
                        polled[2 + i] =
                                (struct pollfd){ .fd = proxy->sockets[i / 2][i % 2], .events = POLLIN };
                poll(polled, 2 + 2 * TCP_PROXY_CONNECTIONS, -1);
                if (polled[0].revents)
                        break;
                for (size_t i = 0; i < 2 * TCP_PROXY_CONNECTIONS; i++)
                        if (polled[2 + i].revents && proxy->sockets[i / 2][i % 2] >= 0 &&
                            !pass(proxy, i / 2, (int)(i % 2)))
                                close_connection(proxy, i / 2);
                if (polled[1].revents)
                        accept_client(proxy);
        }
        return NULL;
}

void tcp_proxy_start(struct tcp_proxy *proxy, const char *server_url) {
        struct sockaddr_in address = loopback(0);
        socklen_t length = sizeof(address);

        *proxy = (struct tcp_proxy){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
        cr_assert_eq(sscanf(server_url, "http://127.0.0.1:%u", &proxy->server_port), 1);
        for (size_t i = 0; i < TCP_PROXY_CONNECTIONS; i++)
                proxy->sockets[i][CLIENT] = proxy->sockets[i][SERVER] = -1;
        cr_assert_eq(bind(proxy->listener, (struct sockaddr *)&address, length), 0);
        cr_assert_eq(listen(proxy->listener, 16), 0);
        cr_assert_eq(getsockname(proxy->listener, (struct sockaddr *)&address, &length), 0);
        snprintf(proxy->url, sizeof(proxy->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
        cr_assert_eq(pipe2(proxy->stop, O_CLOEXEC), 0);
        cr_assert_eq(pthread_create(&proxy->thread, NULL, run_proxy, proxy), 0);
}

void tcp_proxy_stop(struct tcp_proxy *proxy) {
        close(proxy->stop[1]);
        pthread_join(proxy->thread, NULL);
        close(proxy->stop[0]);
        close(proxy->listener);
        for (size_t i = 0; i < TCP_PROXY_CONNECTIONS; i++)
                if (proxy->sockets[i][CLIENT] >= 0)
                        close_connection(proxy, i);
}

void tcp_proxy_reset(struct tcp_proxy *proxy) {
        for (size_t i = 0; i < TCP_PROXY_CONNECTIONS; i++)
                setsockopt(proxy->sockets[i][CLIENT], SOL_SOCKET, SO_LINGER,
                           &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
        tcp_proxy_stop(proxy);
}

void tcp_proxy_lose(struct tcp_proxy *proxy, int n_connections) {
        atomic_store(&proxy->n_losses, n_connections);
}
