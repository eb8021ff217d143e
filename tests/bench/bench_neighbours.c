/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients that do not use the store: idle ones, each with a subscription, and busy ones. Each busy
 * client publishes messages to itself, at a constant rate. Prints how long they are under way.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "bench/arguments.h"
#include "bench/fail.h"
#include "bench/peer.h"
#include "bench/samples.h"
#include "bench/stopwatch.h"

#define PAYLOAD_LENGTH 100
#define EVENTS_AT_ONCE 64

struct options {
        uint64_t port, n_idle, n_busy;
        uint64_t per_second; /* all busy clients together */
        uint64_t warm_up_ms, measure_ms, patience_ms;
};

struct neighbour {
        struct peer peer;
        char topic[32];
};

static struct neighbours {
        struct options options;
        struct neighbour *clients; /* the busy ones first */
        int epoll;
        uint64_t n_sent, n_received;
        int64_t measured_from_ns; /* messages that were sent earlier do not count */
        struct samples latencies_ns;
} neighbours;

static void connect_one(struct neighbour *neighbour, uint64_t number) {
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = neighbour };

        snprintf(neighbour->topic, sizeof(neighbour->topic), "neighbour/%" PRIu64, number);
        peer_connect(&neighbour->peer, neighbours.options.port, neighbour->topic);
        peer_subscribe(&neighbour->peer, neighbour->topic);
        if (epoll_ctl(neighbours.epoll, EPOLL_CTL_ADD, neighbour->peer.fd, &event) < 0)
                fail("cannot watch a connection: %m");
}

static void connect_all(void) {
        uint64_t n = neighbours.options.n_busy + neighbours.options.n_idle;

        neighbours.epoll = epoll_create1(EPOLL_CLOEXEC);
        neighbours.clients = calloc(n, sizeof(*neighbours.clients));
        if (neighbours.epoll < 0 || !neighbours.clients)
                fail("cannot start: %m");
        for (uint64_t i = 0; i < n; i++)
                connect_one(&neighbours.clients[i], i);
}

static void on_message(void *userdata, const struct message *message) {
        int64_t sent_ns;

        (void)userdata;
        if (message->payload.length != PAYLOAD_LENGTH)
                fail("an unexpected message");
        memcpy(&sent_ns, message->payload.data, sizeof(sent_ns));
        neighbours.n_received++;
        if (sent_ns >= neighbours.measured_from_ns)
                samples_add(&neighbours.latencies_ns, (uint64_t)(stopwatch_ns() - sent_ns));
}

static void read_some(int64_t timeout_ns) {
        struct timespec timeout = { timeout_ns / NS_PER_S, timeout_ns % NS_PER_S };
        struct epoll_event events[EVENTS_AT_ONCE];
        int n = epoll_pwait2(neighbours.epoll, events, EVENTS_AT_ONCE, &timeout, NULL);

        for (int i = 0; i < n; i++) {
                struct neighbour *neighbour = events[i].data.ptr;

                peer_read(&neighbour->peer, on_message, NULL);
                peer_flush(&neighbour->peer);
        }
}

static void send_one(void) {
        struct neighbour *neighbour = &neighbours.clients[neighbours.n_sent++ % neighbours.options.n_busy];
        uint8_t payload[PAYLOAD_LENGTH] = { 0 };
        int64_t now_ns = stopwatch_ns();

        memcpy(payload, &now_ns, sizeof(now_ns));
        peer_publish(&neighbour->peer, &(struct message){ .topic = slice_from_string(neighbour->topic),
                                                          .payload = { payload, sizeof(payload) } });
        peer_flush(&neighbour->peer);
}

static void run(void) {
        const struct options *options = &neighbours.options;
        int64_t begin_ns = stopwatch_ns(), interval_ns = NS_PER_S / (int64_t)options->per_second;
        int64_t end_ns, left_ns;

        neighbours.measured_from_ns = begin_ns + (int64_t)options->warm_up_ms * NS_PER_MS;
        end_ns = neighbours.measured_from_ns + (int64_t)options->measure_ms * NS_PER_MS;
        for (int64_t due_ns = begin_ns; due_ns < end_ns; due_ns += interval_ns) {
                while ((left_ns = due_ns - stopwatch_ns()) > 0)
                        read_some(left_ns);
                send_one();
                read_some(0);
        }

        end_ns = stopwatch_ns() + (int64_t)options->patience_ms * NS_PER_MS;
        while (neighbours.n_received < neighbours.n_sent && (left_ns = end_ns - stopwatch_ns()) > 0)
                read_some(left_ns);
}

static void print(void) {
        samples_sort(&neighbours.latencies_ns);
        printf("p50_us %.1f\n", (double)samples_percentile(&neighbours.latencies_ns, 0.5) / 1000);
        printf("p99_us %.1f\n", (double)samples_percentile(&neighbours.latencies_ns, 0.99) / 1000);
        printf("max_us %.1f\n", (double)samples_percentile(&neighbours.latencies_ns, 1) / 1000);
        printf("missing %" PRIu64 "\n", neighbours.n_sent - neighbours.n_received);
}

int main(int n_arguments, char **arguments) {
        neighbours.options = (struct options){ .n_idle = 1000,
                                               .n_busy = 50,
                                               .per_second = 1000,
                                               .warm_up_ms = 300,
                                               .measure_ms = 2000,
                                               .patience_ms = 5000 };
        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "port", ARGUMENT_NUMBER, &neighbours.options.port },
                               { "idle", ARGUMENT_NUMBER, &neighbours.options.n_idle },
                               { "busy", ARGUMENT_NUMBER, &neighbours.options.n_busy },
                               { "per-second", ARGUMENT_NUMBER, &neighbours.options.per_second },
                               { "warm-up-ms", ARGUMENT_NUMBER, &neighbours.options.warm_up_ms },
                               { "measure-ms", ARGUMENT_NUMBER, &neighbours.options.measure_ms },
                               { "patience-ms", ARGUMENT_NUMBER, &neighbours.options.patience_ms },
                               { 0 },
                       });

        connect_all();
        run();
        print();
        return 0;
}
