/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/asker.h"
#include "bench/keys.h"
#include "bench/samples.h"

/*
 * A closed loop: so many clients, each with so many requests on their way, and every answer makes its place send
 * the next one. Each answer is matched to its request by its correlation data; one that never comes is missed.
 */

#define LOAD_VALUE_LENGTH 100

struct load_options {
        uint64_t port;
        uint64_t n_clients;
        uint64_t depth; /* requests on their way at once, of each client */
        uint64_t n_keys;
        uint64_t get_percent; /* the others are SETs */
        enum key_order order;
        uint64_t n_requests_max; /* then no more are sent; 0: no such limit */
};

struct load_client;
struct load_place;

struct load {
        struct load_options options;
        struct key_sequence keys;
        struct load_client *clients;
        struct load_place *places; /* depth for each client */
        int epoll;
        uint64_t run; /* tells our correlation data from those of earlier runs */
        uint64_t random;
        uint8_t value[LOAD_VALUE_LENGTH];
        bool is_stopped;
        uint64_t n_sent, n_answered;
        uint64_t n_outstanding;
        uint64_t n_found, n_not_found; /* answers to GET */
        uint64_t n_errors; /* answers that are none of those hoped for, or to nothing that was asked */
        struct samples latencies_ns; /* may be emptied at any time */
};

/* Connects all clients. */
void load_open(struct load *load, const struct load_options *options);
void load_close(struct load *load);

/* Sends the first request of every place; nothing may be on its way. */
void load_start(struct load *load);

/* Goes on until this time, or until all that may be sent is answered. */
void load_run(struct load *load, int64_t until_ns);

/* No more is sent until the next load_start(). */
void load_stop(struct load *load);
