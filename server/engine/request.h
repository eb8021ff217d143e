/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/clock.h"
#include "engine/verb.h"
#include "policy/policy.h"

/* A decoded request. Slices are borrowed until engine_request() returns. */

enum set_condition {
        SET_ALWAYS,
        SET_IF_ABSENT,          /* NX */
        SET_IF_ABSENT_OR_EQUAL, /* NEX: compares with `expected` */
};

/* A version that the key must have before SET, DEL and VDEL; only a client inside the process sends it. */
enum version_condition {
        VERSION_ANY,
        VERSION_NONE,     /* the key does not exist */
        VERSION_EXPECTED, /* the key has `expected_version` */
};

struct request {
        enum verb verb;

        struct slice key;   /* not empty; SCAN: the pattern */
        struct slice value; /* SET, VDEL; SCAN: the token, absent for the first page */

        enum set_condition condition; /* SET */
        struct slice expected;        /* SET_IF_ABSENT_OR_EQUAL: the present value must be equal */
        bool has_px;                  /* SET */
        int64_t px_ms;                /* time until the key expires; at least 1 */

        bool wants_details; /* GET: the reply has the time until the key expires, and its fencing token */

        bool wants_persistence; /* SET: the client asks for storage on disk; see PERSIST_CUSTOM */

        bool stop; /* KEYNOTIFY STOP: end the registration */

        bool has_timestamp;
        struct hlc timestamp; /* __ts */
        bool has_fence;
        struct hlc fence; /* __ft; ignored unless the verb has VERB_IS_FENCED */

        struct slice client; /* client id; absent if unknown */
        uint64_t connection; /* number of the client's connection, verified by the plugin; 0: not verified */
        struct slice user;   /* user name at the broker; absent: none, or not verified */
        bool is_own;         /* the store itself sets a key of --seed: no policy applies */

        /*
         * Of a client inside the process (pipeline/requester.h): client and user are verified, and no
         * request is a repeated one.
         */
        bool is_inner;
        enum version_condition version_condition;
        struct version expected_version;

        /*
         * These fields identify a repeated request (PROTOCOL.md "Repeated requests"). They hold the
         * bytes as sent.
         */
        struct slice response_topic;
        struct slice correlation_data;
        struct slice payload;
        struct slice timestamp_text;
        struct slice fence_text;

        uint32_t expiry_s; /* Message Expiry Interval, 0: none */

        uint64_t number; /* of a request in a frame of the plugin: engine/dedup.h; 0: none */
};

static inline struct request_origin request_origin_of(const struct request *request) {
        return (struct request_origin){ request->client, request->user,
                                        request->is_inner || request->connection != 0 };
}
