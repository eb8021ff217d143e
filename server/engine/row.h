/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/dedup.h"
#include "engine/entry.h"
#include "engine/watch.h"

/*
 * One change of what the store holds: what storage writes, and what a failed commit takes back. Holds
 * references, so that both find what they need, whatever else has happened since.
 */

enum row_type {
        ROW_ENTRY,
        ROW_REGISTRATION,
        ROW_ANSWER, /* one that is remembered for requests that come twice */
};

struct row {
        enum row_type type;
        union {
                struct {
                        struct entry *before;       /* NULL: there was none */
                        struct entry *after;        /* NULL: there is none any more */
                        int64_t before_deadline_ns; /* monotonic; STORE_NEVER: none */
                        int64_t after_deadline_ns;
                } entry;
                struct {
                        struct registration *registration;
                        bool is_added; /* else it has ended */
                        bool is_final; /* it ended with its connection, which nothing takes back */
                } registration;
                struct {
                        struct digest digest;
                        struct remembered_answer answer;
                        int64_t deadline_ns;
                        uint32_t slot; /* where it is kept; what was kept there before is forgotten */
                } answer;
        };
};
