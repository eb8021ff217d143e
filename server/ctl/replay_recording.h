/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "records/recording.h"

/* A recording of requests and replies, read into memory. */

struct recorded_request {
        struct recorded request;
        uint64_t line;
        bool has_reply;
        struct recorded reply; /* if has_reply */
        size_t client;         /* number of the client, in the order of first occurrence, from 0 */
        size_t response_topic; /* number of the response topic, in the order of first occurrence, from 0 */
};

struct request_recording {
        struct buf text;
        struct recorded_request *requests; /* in the order of the recording */
        size_t n_requests, requests_capacity;
        size_t *waiting; /* indexes of the requests without a reply so far, oldest first */
        size_t n_waiting, waiting_capacity;
        struct numbered_name *clients, *response_topics; /* hash tables */
        uint64_t n_starts;                               /* number of starts of the store in the recording */
};

/* Read a file; "-" is stdin. Prints errors. Call request_recording_deinit() also after an error. */
int request_recording_read(struct request_recording *recording, const char *file);
void request_recording_deinit(struct request_recording *recording);

/* The number of different clients. */
size_t request_recording_n_clients(const struct request_recording *recording);

/* Whether the request is a SCAN for a page other than the first: its token is valid only at the recorded store. */
bool is_later_page(struct slice verb, struct slice payload);

/*
 * Whether two replies to a request with this verb are equal. The keys of a page of SCAN have no order. If more pages follow,
 * the keys of the page are not compared.
 */
bool replies_are_equal(struct slice verb, struct slice a, struct slice b);
