/* SPDX-License-Identifier: Apache-2.0 */

#include "io/resolve.h"

#include <errno.h>
#include <sys/socket.h>

int resolve_start(uv_loop_t *loop, uv_getaddrinfo_t *request, const char *host, uv_getaddrinfo_cb done) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };

        return uv_getaddrinfo(loop, request, done, host, NULL, &hints);
}

int resolve_address(const struct addrinfo *addresses, size_t index, char ret_text[RESOLVE_TEXT_SIZE]) {
        while (addresses && index-- > 0)
                addresses = addresses->ai_next;
        if (!addresses)
                return -ENOENT;
        if (getnameinfo(addresses->ai_addr, addresses->ai_addrlen, ret_text, RESOLVE_TEXT_SIZE, NULL, 0,
                        NI_NUMERICHOST) != 0)
                return -EHOSTUNREACH;
        return 0;
}
