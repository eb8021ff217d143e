/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/fail.h"
#include "bench/wire.h"

#define READ_BYTES (256 * 1024)

void peer_flush(struct peer *peer) {
        size_t n_sent = 0;

        if (buf_failed(&peer->out))
                fail("out of memory");
        while (n_sent < peer->out.length) {
                ssize_t n = send(peer->fd, peer->out.data + n_sent, peer->out.length - n_sent, MSG_NOSIGNAL);

                if (n < 0 && errno != EINTR)
                        fail("cannot write to the broker: %m");
                if (n > 0)
                        n_sent += (size_t)n;
        }
        buf_reset(&peer->out);
}

void peer_flush_some(struct peer *peer) {
        ssize_t n = send(peer->fd, peer->out.data, peer->out.length, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno != EINTR && errno != EAGAIN)
                fail("cannot write to the broker: %m");
        if (n <= 0)
                return;
        peer->out.length -= (size_t)n;
        memmove(peer->out.data, peer->out.data + n, peer->out.length);
}

static size_t receive(struct peer *peer, uint8_t *bytes, size_t size) {
        ssize_t n;

        do
                n = recv(peer->fd, bytes, size, 0);
        while (n < 0 && errno == EINTR);

        if (n < 0)
                fail("cannot read from the broker: %m");
        if (n == 0)
                fail("the broker has closed a connection");
        return (size_t)n;
}

/* Send the buffered packets and wait for a packet of this type. */
static void wait_for(struct peer *peer, enum wire_type type, const char *what) {
        struct wire_packet packet;
        struct slice rest;

        peer_flush(peer);
        do {
                uint8_t bytes[256];

                buf_append(&peer->in, bytes, receive(peer, bytes, sizeof(bytes)));
                rest = buf_slice(&peer->in);
        } while (!wire_take(&rest, &packet));

        if (packet.type != type || wire_reason(&packet) >= 0x80)
                fail("the broker refuses %s", what);
        buf_reset(&peer->in);
}

void peer_connect(struct peer *peer, uint64_t port, const char *client_id) {
        struct sockaddr_in address = {
                .sin_family = AF_INET,
                .sin_port = htons((uint16_t)port),
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        };
        int on = 1;

        *peer = (struct peer){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .qos = 1 };
        if (peer->fd < 0 || connect(peer->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
                fail("no connection to the broker: %m");

        wire_append_connect(&peer->out, client_id);
        wait_for(peer, WIRE_CONNACK, "a connection");
}

void peer_close(struct peer *peer) {
        close(peer->fd);
        buf_deinit(&peer->in);
        buf_deinit(&peer->out);
}

void peer_subscribe(struct peer *peer, const char *filter) {
        wire_append_subscribe(&peer->out, filter);
        wait_for(peer, WIRE_SUBACK, "a subscription");
}

void peer_publish(struct peer *peer, const struct message *message) {
        if (++peer->last_id == 0)
                peer->last_id = 1;
        wire_append_publish(&peer->out, message, peer->qos, peer->last_id, peer->properties);
}

static void handle(struct peer *peer, const struct wire_packet *packet, peer_message *message,
                   void *userdata) {
        struct message arrived;
        uint16_t id;

        switch (packet->type) {
        case WIRE_PUBLISH:
                wire_read_publish(packet, &arrived, &id);
                wire_append_puback(&peer->out, id);
                message(userdata, &arrived);
                break;
        case WIRE_PUBREC:
                wire_append_pubrel(&peer->out, wire_id(packet));
                break;
        case WIRE_PUBCOMP:
                break;
        case WIRE_PUBACK:
                if (wire_reason(packet) >= 0x80)
                        fail("the broker refuses a message: reason 0x%02x", wire_reason(packet));
                break;
        default:
                fail("unexpected packet of type %d", packet->type);
        }
}

void peer_read(struct peer *peer, peer_message *message, void *userdata) {
        static uint8_t bytes[READ_BYTES];
        struct slice rest = { bytes, receive(peer, bytes, sizeof(bytes)) };
        struct wire_packet packet;
        size_t n_remaining;

        if (peer->in.length > 0) {
                buf_append_slice(&peer->in, rest);
                rest = buf_slice(&peer->in);
        }
        while (wire_take(&rest, &packet))
                handle(peer, &packet, message, userdata);

        n_remaining = rest.length;
        if (peer->in.length > 0) {
                memmove(peer->in.data, rest.data, n_remaining);
                peer->in.length = n_remaining;
        } else {
                buf_append_slice(&peer->in, rest);
        }
        if (buf_failed(&peer->in))
                fail("out of memory");
}
