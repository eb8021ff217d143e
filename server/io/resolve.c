/* SPDX-License-Identifier: Apache-2.0 */

#include "io/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>

#include "common/cleanup.h"

static void free_addresses(struct addrinfo **addresses) {
        if (*addresses)
                freeaddrinfo(*addresses);
}

int resolve_address(const char *host, size_t index, char ret_text[RESOLVE_TEXT_SIZE]) {
        CLEANUP(free_addresses) struct addrinfo *addresses = NULL;
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
        const struct addrinfo *address;

        if (getaddrinfo(host, NULL, &hints, &addresses) != 0)
                return -EHOSTUNREACH;

        address = addresses;
        while (address && index-- > 0)
                address = address->ai_next;
        if (!address)
                return -ENOENT;
        if (getnameinfo(address->ai_addr, address->ai_addrlen, ret_text, RESOLVE_TEXT_SIZE, NULL, 0,
                        NI_NUMERICHOST) != 0)
                return -EHOSTUNREACH;
        return 0;
}
