/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/dedup.h"
#include "engine/verb.h"
#include "policy/policy.h"
#include "protocol/hlc.h"

/* A decoded request: what a client asks of the engine. All slices are borrowed for the step it is given to. */

enum set_condition {
        SET_ALWAYS,
        SET_IF_ABSENT,          /* NX */
        SET_IF_ABSENT_OR_EQUAL, /* NEX: compares with `expected` */
};

struct request {
        enum verb verb;

        struct slice key;   /* SCAN: the pattern */
        struct slice value; /* SET, VDEL; SCAN: the token, absent for the first page */

        enum set_condition condition;
        struct slice expected;
        bool has_px;
        int64_t px_ms; /* from 1 */

        bool wants_persistence; /* aio-persistence, of SET */

        bool stop; /* KEYNOTIFY */

        bool has_timestamp;
        struct hlc timestamp; /* __ts */
        bool has_fence;
        struct hlc fence; /* __ft, of SET, DEL and VDEL */

        struct slice client; /* who asks; absent where nobody can tell */
        uint64_t connection; /* which of its connections, where the broker vouches for it, else 0 */
        struct slice user;   /* as which it logged in there; absent: none, or nobody vouches for it */
        bool is_own;         /* nobody asks but ourselves: no policy applies */

        /* what makes two deliveries one request (PROTOCOL.md "Repeated requests"), as it was sent */
        struct slice response_topic;
        struct slice correlation_data;
        struct slice payload;
        struct slice timestamp_text;
        struct slice fence_text;
        uint32_t expiry_s; /* Message Expiry Interval, 0: none */
};

static inline struct request_origin request_asker(const struct request *request) {
        return (struct request_origin){ request->client, request->user, request->connection != 0 };
}

/* SET, DEL, VDEL and KEYNOTIFY change something; GET and SCAN do not. */
static inline bool request_is_write(const struct request *request) {
        return request->verb != VERB_GET && request->verb != VERB_SCAN;
}

/* Those whose fencing token counts. */
static inline bool verb_is_fenced(enum verb verb) {
        return verb == VERB_SET || verb == VERB_DEL || verb == VERB_VDEL;
}
