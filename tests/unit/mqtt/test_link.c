/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages at QoS 0 and 1 between the link and a broker. Both run on one loop. The broker is a
 * listener that accepts one connection at a time. tests/integration/mqtt tests the rest of the
 * link with statestored.
 */

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "mqtt/link.h"

#define PATIENCE_MS 60000 /* a test that waits longer has failed */
#define LARGE       ((size_t)64 << 10)
#define LARGE_MAX   2000 /* more bytes than the buffers of two sockets and LINK_ROOM_BYTES */

/* 1. The broker */

enum packet {
        PACKET_CONNECT = 1,
        PACKET_PUBLISH = 3,
        PACKET_SUBSCRIBE = 8,
};

struct received {
        uint32_t number; /* of the message: publish() */
        uint8_t qos;
        uint16_t id;
        unsigned int connection; /* from 1 */
};

static struct {
        uv_tcp_t listener, peer;
        uint16_t port;
        bool holds_connack, holds_suback; /* not sent until the test calls accept_client() */
        uint8_t receive_maximum;          /* in CONNACK; 0: absent */
        uint8_t maximum_packet_size;      /* in CONNACK; 0: absent */
        unsigned int n_connections, n_connects, n_subscribes;
        unsigned int n_ends; /* connections that the link has ended */
        uint8_t subscribe_id[2];
        uint8_t bytes[4 * LARGE]; /* received and not parsed */
        size_t n_bytes;
        struct received received[LARGE_MAX];
        size_t n_received;
} broker;

static uv_loop_t loop;

static void broker_send(const void *data, size_t length) {
        const uv_buf_t buf = { .base = (char *)data, .len = length };

        cr_assert_eq(uv_try_write((uv_stream_t *)&broker.peer, &buf, 1), (int)length);
}

static void send_connack(void) {
        const uint8_t limited[] = { 0x20, 6, 0, 0, 3, 0x21, 0, broker.receive_maximum };
        const uint8_t small[] = { 0x20, 8, 0, 0, 5, 0x27, 0, 0, 0, broker.maximum_packet_size };

        if (broker.receive_maximum > 0)
                broker_send(limited, sizeof(limited));
        else if (broker.maximum_packet_size > 0)
                broker_send(small, sizeof(small));
        else
                broker_send("\x20\x03\x00\x00\x00", 5);
}

static void send_suback(void) {
        const uint8_t packet[] = { 0x90, 4, broker.subscribe_id[0], broker.subscribe_id[1], 0, 1 };

        broker_send(packet, sizeof(packet));
}

static void send_puback(uint16_t id) {
        const uint8_t packet[] = { 0x40, 2, (uint8_t)(id >> 8), (uint8_t)id };

        broker_send(packet, sizeof(packet));
}

static void parse_publish(uint8_t flags, const uint8_t *body) {
        struct received *received = &broker.received[broker.n_received++];
        const uint8_t *at = body + 2 + (body[0] << 8 | body[1]);

        cr_assert_leq(broker.n_received, LARGE_MAX);
        received->connection = broker.n_connections;
        received->qos = flags >> 1 & 3;
        if (received->qos > 0) {
                received->id = (uint16_t)(at[0] << 8 | at[1]);
                at += 2;
        }
        at += 1 + at[0]; /* the properties of these messages are shorter than 128 bytes */
        memcpy(&received->number, at, sizeof(received->number));
}

static void parse_packet(uint8_t head, const uint8_t *body) {
        switch (head >> 4) {
        case PACKET_CONNECT:
                broker.n_connects++;
                if (!broker.holds_connack)
                        send_connack();
                break;
        case PACKET_SUBSCRIBE:
                broker.n_subscribes++;
                memcpy(broker.subscribe_id, body, sizeof(broker.subscribe_id));
                if (!broker.holds_suback)
                        send_suback();
                break;
        case PACKET_PUBLISH:
                parse_publish(head & 15, body);
                break;
        default:
                break;
        }
}

/* Parse the first packet, and return its length; 0: it is incomplete. */
static size_t parse_first(void) {
        size_t length = 0, n_head = 1;
        unsigned int shift = 0;

        do {
                if (n_head >= broker.n_bytes)
                        return 0;
                length |= (size_t)(broker.bytes[n_head] & 127) << shift;
                shift += 7;
        } while (broker.bytes[n_head++] & 128);
        if (n_head + length > broker.n_bytes)
                return 0;
        parse_packet(broker.bytes[0], broker.bytes + n_head);
        return n_head + length;
}

static void parse_all(size_t n_more) {
        size_t length;

        broker.n_bytes += n_more;
        while ((length = parse_first()) > 0) {
                broker.n_bytes -= length;
                memmove(broker.bytes, broker.bytes + length, broker.n_bytes);
        }
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
        (void)handle;
        (void)suggested;
        *buf = uv_buf_init((char *)broker.bytes + broker.n_bytes,
                           (unsigned int)(sizeof(broker.bytes) - broker.n_bytes));
}

static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
        (void)buf;
        if (n > 0)
                parse_all((size_t)n);
        if (n >= 0)
                return;
        uv_read_stop(stream);
        broker.n_ends++;
}

static void broker_read(void) {
        uv_read_start((uv_stream_t *)&broker.peer, give_buffer, on_bytes);
}

static void broker_stop_reading(void) {
        uv_read_stop((uv_stream_t *)&broker.peer);
}

static void on_connection(uv_stream_t *listener, int status) {
        cr_assert_eq(status, 0);
        cr_assert_eq(uv_tcp_init(&loop, &broker.peer), 0);
        cr_assert_eq(uv_accept(listener, (uv_stream_t *)&broker.peer), 0);
        uv_tcp_nodelay(&broker.peer, 1);
        broker.n_connections++;
        broker.n_bytes = 0;
        broker_read();
}

static void broker_close_connection(void) {
        uv_close((uv_handle_t *)&broker.peer, NULL);
}

/* Receive, without the loop, what the link has written. */
static void broker_drain(void) {
        ssize_t n;
        int fd;

        cr_assert_eq(uv_fileno((uv_handle_t *)&broker.peer, &fd), 0);
        while ((n = recv(fd, broker.bytes + broker.n_bytes, sizeof(broker.bytes) - broker.n_bytes,
                         MSG_DONTWAIT)) > 0)
                parse_all((size_t)n);
        cr_assert(errno == EAGAIN || errno == EINTR);
}

static void broker_listen(void) {
        struct sockaddr_in address;
        int size = sizeof(address);

        cr_assert_eq(uv_tcp_init(&loop, &broker.listener), 0);
        uv_ip4_addr("127.0.0.1", 0, &address);
        cr_assert_eq(uv_tcp_bind(&broker.listener, (struct sockaddr *)&address, 0), 0);
        cr_assert_eq(uv_listen((uv_stream_t *)&broker.listener, 1, on_connection), 0);
        uv_tcp_getsockname(&broker.listener, (struct sockaddr *)&address, &size);
        broker.port = ntohs(address.sin_port);
}

/* 2. The link. Its callbacks use cr_expect: cr_assert would leave libmosquitto with a locked mutex. */

static struct link *store_link;
static unsigned int n_ups, n_downs;
static unsigned int n_acknowledged;
static uint16_t acknowledged_id; /* the latest */
static uint32_t n_published;     /* messages are numbered from 0 */

static uint16_t publish(uint8_t qos, size_t length) {
        static uint8_t payload[LARGE];
        const struct message message = { .topic = SLICE_LITERAL("topic"),
                                         .payload = { payload, length },
                                         .qos = qos };
        int id;

        memcpy(payload, &n_published, sizeof(n_published));
        n_published++;
        id = link_publish(store_link, &message);
        cr_expect_geq(id, 0);
        return (uint16_t)id;
}

static void on_up(void *userdata, bool session_present) {
        (void)userdata;
        (void)session_present;
        n_ups++;
}

static void on_down(void *userdata, const char *cause) {
        (void)userdata;
        (void)cause;
        n_downs++;
        publish(0, 10);
}

static void on_acknowledged(void *userdata, uint16_t id, bool no_subscriber) {
        (void)userdata;
        (void)no_subscriber;
        n_acknowledged++;
        acknowledged_id = id;
}

/* The broker passes on a message: publish within the callback of libmosquitto. */
static void on_message(void *userdata, const struct message *message) {
        (void)userdata;
        (void)message;
        publish(0, 10);
}

static void on_timeout(uv_timer_t *timer) {
        (void)timer;
        cr_assert_fail("the test waits in vain");
}

static void run_until(const unsigned int *value, unsigned int minimum) {
        while (*value < minimum)
                uv_run(&loop, UV_RUN_ONCE);
}

static void run_until_received(size_t n) {
        while (broker.n_received < n)
                uv_run(&loop, UV_RUN_ONCE);
}

/* Only a wake-up gives room. */
static void run_until_room(void) {
        while (!link_has_room(store_link))
                uv_run(&loop, UV_RUN_ONCE);
}

static uv_timer_t patience;
static struct endpoint endpoint = { .host = (char *)"127.0.0.1" };

static void setup(void) {
        static const struct slice user_properties[] = { { 0 } };
        const struct link_config config = {
                .brokers = { .endpoints = &endpoint, .n_endpoints = 1 },
                .client_id = "store",
                .keepalive_s = 600,
                .subscriptions = { { .filter = "filter", .qos = 1 } },
                .n_subscriptions = 1,
                .user_properties = user_properties,
                .callbacks = { .up = on_up,
                               .down = on_down,
                               .acknowledged = on_acknowledged,
                               .message = on_message },
        };

        cr_assert_eq(uv_loop_init(&loop), 0);
        broker_listen();
        endpoint.port = broker.port;
        uv_timer_init(&loop, &patience);
        uv_timer_start(&patience, on_timeout, PATIENCE_MS, 0);
        cr_assert_eq(link_open(&store_link, &loop, &config), 0);
        run_until(&n_ups, 1);
}

static void close_handle(uv_handle_t *handle, void *argument) {
        (void)argument;
        if (!uv_is_closing(handle))
                uv_close(handle, NULL);
}

static void on_closed(void *userdata) {
        (void)userdata;
        uv_walk(&loop, close_handle, NULL);
}

static void teardown(void) {
        if (!uv_is_closing((uv_handle_t *)&broker.peer))
                broker_close_connection();
        link_close(store_link, on_closed);
        uv_run(&loop, UV_RUN_DEFAULT);
        cr_expect_eq(uv_loop_close(&loop), 0);
}

TestSuite(link, .init = setup, .fini = teardown);

/* The broker stops reading. Publish at QoS 0 until there is no room. */
static void fill(void) {
        broker_stop_reading();
        while (link_has_room(store_link) && n_published < LARGE_MAX)
                publish(0, LARGE);
        cr_assert_not(link_has_room(store_link));
}

static void expect_all_in_order(void) {
        cr_assert_eq(broker.n_received, n_published);
        for (uint32_t i = 0; i < n_published; i++)
                cr_expect_eq(broker.received[i].number, i);
}

/* 3. Tests */

Test(link, publishes_at_the_qos_of_the_message) {
        publish(0, 10);
        publish(1, 10);
        publish(0, 10);
        run_until_received(3);
        expect_all_in_order();
        cr_expect_eq(broker.received[0].qos, 0);
        cr_expect_eq(broker.received[1].qos, 1);
        cr_expect_eq(broker.received[2].qos, 0);
}

Test(link, messages_at_qos_0_are_not_outstanding) {
        for (size_t i = 0; i < 2 * LINK_ROOM_MESSAGES; i++)
                publish(0, 10);
        cr_expect(link_has_room(store_link));
        run_until_received(n_published);

        for (size_t i = 0; i < LINK_ROOM_MESSAGES; i++) {
                cr_assert(link_has_room(store_link));
                publish(1, 10);
        }
        cr_expect_not(link_has_room(store_link));
}

/* libmosquitto holds back messages at QoS 1 above the broker's Receive Maximum, and no others. */
Test(link, within_the_room_no_message_overtakes_another) {
        uint32_t first, n_qos_1 = 0;

        broker.receive_maximum = 2;
        broker_close_connection();
        run_until(&n_ups, 2);
        first = n_published;
        for (; link_has_room(store_link) && n_qos_1 < LINK_ROOM_MESSAGES; n_qos_1++)
                publish(1, 10);
        publish(0, 10);
        run_until_received(n_qos_1 + 1);
        cr_expect_eq(n_qos_1, 2);
        for (uint32_t i = 0; i < broker.n_received; i++)
                cr_expect_eq(broker.received[i].number, first + i);

        send_puback(broker.received[0].id);
        run_until(&n_acknowledged, 1);
        cr_expect(link_has_room(store_link));
}

Test(link, only_messages_at_qos_1_are_acknowledged) {
        const uint8_t packet[] = { 0x30, 6, 0, 1, 't', 0, 'o', 'k' };
        uint16_t id;

        publish(0, 10);
        id = publish(1, 10);
        publish(0, 10);
        broker_send(packet, sizeof(packet)); /* on_message() publishes at QoS 0 */
        run_until_received(4);
        expect_all_in_order();
        cr_expect_eq(broker.received[3].qos, 0);
        cr_expect_eq(n_acknowledged, 0);

        cr_assert_eq(broker.received[1].id, id);
        send_puback(id);
        run_until(&n_acknowledged, 1);
        cr_expect_eq(n_acknowledged, 1);
        cr_expect_eq(acknowledged_id, id);
}

Test(link, there_is_room_again_when_the_broker_reads_on) {
        fill();
        uv_run(&loop, UV_RUN_NOWAIT);
        cr_expect_not(link_has_room(store_link));

        broker_read();
        run_until_room();
        run_until_received(n_published);
        expect_all_in_order();
}

/* The broker runs on the same loop, so it closes the connection only if the link does not block. */
Test(link, a_pause_begins_when_the_broker_has_closed_the_connection) {
        link_pause(store_link, 1); /* on an idle connection */
        run_until(&broker.n_ends, 1);
        cr_expect_eq(n_downs, 0);

        broker_close_connection();
        run_until(&n_downs, 1);
        run_until(&n_ups, 2);
}

Test(link, a_pause_begins_after_the_puback) {
        uint16_t id = publish(1, 10);

        link_pause(store_link, 1);
        run_until_received(1);
        send_puback(id);
        run_until(&broker.n_ends, 1);
        cr_expect_eq(n_acknowledged, 1, "else the link would send the message again");
}

Test(link, a_pause_begins_when_all_is_written) {
        fill();
        link_pause(store_link, 1);
        uv_run(&loop, UV_RUN_NOWAIT);
        uv_run(&loop, UV_RUN_NOWAIT); /* the timer of the pause */

        broker_read();
        run_until(&broker.n_ends, 1);
        expect_all_in_order();
        cr_expect_eq(n_downs, 0);
}

Test(link, is_closed_while_a_pause_begins) {
        link_pause(store_link, 1);
        run_until(&broker.n_ends, 1);
        cr_expect_eq(n_downs, 0); /* teardown() closes the link */
}

/* Nothing remains to be written then, so the socket itself has no reason to wake up the link. */
Test(link, there_is_room_again_even_if_a_publish_has_written_everything) {
        fill();
        while (broker.n_received < n_published) {
                broker_drain();
                if (broker.n_received + 1 < n_published)
                        publish(0, 10);
        }

        cr_expect_not(link_has_room(store_link));
        run_until_room();
}

Test(link, puback_gives_room) {
        for (size_t i = 0; i < LINK_ROOM_MESSAGES; i++)
                publish(1, 10);
        run_until_received(LINK_ROOM_MESSAGES);
        cr_assert_not(link_has_room(store_link));

        send_puback(broker.received[0].id);
        run_until_room();
}

Test(link, unwritten_messages_at_qos_0_end_with_the_connection) {
        uint32_t n_lost;

        fill();
        broker_close_connection();
        run_until(&n_downs, 1);
        cr_expect(link_has_room(store_link));
        n_lost = n_published;
        run_until(&n_ups, 2);
        publish(1, 10);
        run_until_received(1);

        cr_expect_eq(broker.received[0].number, n_lost);
        cr_expect_eq(broker.received[0].connection, 2);
        cr_expect_eq(n_acknowledged, 0);
}

Test(link, messages_at_qos_0_are_lost_until_the_link_is_up) {
        uint32_t n_lost;

        broker.holds_connack = true;
        broker.holds_suback = true;
        broker_close_connection();
        run_until(&n_downs, 1); /* on_down() has published */
        publish(0, 10);
        run_until(&broker.n_connects, 2);
        publish(0, 10);
        send_connack();
        run_until(&broker.n_subscribes, 2);
        publish(0, 10);
        n_lost = n_published;
        cr_expect_eq(n_lost, 4);
        send_suback();
        run_until(&n_ups, 2);
        publish(0, 10);
        run_until_received(1);

        cr_expect_eq(broker.received[0].number, n_lost);
        cr_expect(link_has_room(store_link));
}

/* libmosquitto would accept a message that is a byte too large. */
Test(link, a_message_is_not_larger_than_the_broker_accepts) {
        struct message message = { .topic = SLICE_LITERAL("topic"),
                                   .payload = SLICE_LITERAL("value"),
                                   .qos = 1 };

        broker.maximum_packet_size = (uint8_t)message_packet_size(&message);
        broker_close_connection();
        run_until(&n_ups, 2);
        cr_expect_eq(link_max_packet_bytes(store_link), broker.maximum_packet_size);
        cr_expect_gt(link_publish(store_link, &message), 0);

        message.payload = SLICE_LITERAL("value+");
        cr_expect_eq(link_publish(store_link, &message), -EMSGSIZE);
}
