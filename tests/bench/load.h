/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/asker.h"
#include "bench/keys.h"
#include "bench/samples.h"
#include "bench/stopwatch.h"

/*
 * A closed loop: n_clients clients have `depth` outstanding requests each, and each reply triggers
 * the next request. Replies are matched to requests by correlation data, so that a missing reply is
 * noticed.
 */

#define LOAD_VALUE_LENGTH 100

/*
 * A message that has not arrived after this time is missing, unless bench_load has --patience-ms.
 */
#define LOAD_PATIENCE_NS (120 * NS_PER_S)

struct load_options {
        uint64_t port;
        uint64_t n_clients;
        uint64_t depth; /* outstanding requests of each client */
        uint64_t n_keys;
        uint64_t get_percent; /* the others are SETs */
        enum key_order order;
        uint64_t n_requests_max; /* total number of requests; 0: no limit */
        uint64_t n_watchers;     /* further clients, registered for each key; they do not subscribe */
};

struct load_client;
struct load_slot;

struct load {
        struct load_options options;
        struct key_sequence keys;
        struct load_client *clients; /* followed by the watchers */
        struct load_slot *slots;     /* one for each outstanding request: depth for each client */
        int epoll;
        uint64_t run; /* random; part of the correlation data: replies to an earlier run do not match */
        uint64_t random;
        uint8_t value[LOAD_VALUE_LENGTH];
        bool is_stopped;
        uint64_t n_sent, n_replies;
        uint64_t n_outstanding;
        uint64_t n_unnotified;         /* notifications of sent SETs that have not arrived */
        uint64_t n_found, n_not_found; /* replies to GET */
        uint64_t n_errors;             /* error replies, and messages that were not expected */
        struct samples latencies_ns;   /* the caller may empty it at any time */
};

/* Connect all clients, and register the watchers. */
void load_open(struct load *load, const struct load_options *options);
void load_close(struct load *load);

/* Send the first requests. No request may be outstanding. */
void load_start(struct load *load);

/* Run until this time, or until all replies and notifications have arrived. */
void load_run(struct load *load, int64_t until_ns);

/* Send no further requests until the next load_start(). */
void load_stop(struct load *load);
