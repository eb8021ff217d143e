/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "records/recording.h"

/* A recording, read whole: the requests in their order, each with the answer that it got. */
struct recorded_request {
        struct recorded request;
        uint64_t line;
        bool is_answered;
        struct recorded answer; /* where it is */
        size_t client;          /* the same number for the same client, from 0 */
        size_t sender;          /* for the same response topic */
};

/* Strings, identified by number. */
struct name_table {
        struct slice *names;
        size_t n, capacity;
};

struct request_recording {
        struct buf text;
        struct recorded_request *requests;
        size_t n_requests, requests_capacity;
        size_t *waiting; /* requests whose answer has not come yet, oldest first */
        size_t n_waiting, waiting_capacity;
        struct name_table clients;
        struct name_table senders; /* response topics */
        uint64_t n_starts;
};

/* What is wrong has been told to stderr. To be given back with tape_deinit() whatever is returned. */
int tape_read(struct request_recording *tape, const char *file);
void tape_deinit(struct request_recording *tape);
