/* SPDX-License-Identifier: Apache-2.0 */

#include "app/free_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int bind_any(int fd, uint16_t *ret_port) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);
        int one = 1;

        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
            bind(fd, (struct sockaddr *)&address, length) < 0 ||
            getsockname(fd, (struct sockaddr *)&address, &length) < 0)
                return -errno;

        *ret_port = ntohs(address.sin_port);
        return 0;
}

int port_reserve(uint16_t *ret_port) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r;

        if (fd < 0)
                return -errno;

        r = bind_any(fd, ret_port);
        if (r == 0)
                return fd;
        close(fd);
        return r;
}
