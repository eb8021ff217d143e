/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/dedup.h"
#include "engine/keyspace.h"
#include "engine/registrations.h"

/*
 * One change of the state. The next commit stores it; engine_undo() reverts it if the commit fails.
 * A change holds references, so that its entries and registrations stay readable after later changes.
 */

enum change_type {
        CHANGE_ENTRY,
        CHANGE_REGISTRATION,
        CHANGE_EXECUTION, /* a request was executed, and is remembered by content, by number, or both */
};

struct change {
        enum change_type type;
        union {
                struct {
                        struct entry *before;       /* NULL: the key did not exist */
                        struct entry *after;        /* NULL: the key was deleted or has expired */
                        int64_t before_deadline_ns; /* monotonic; DEADLINE_NEVER: none */
                        int64_t after_deadline_ns;
                } entry;
                struct {
                        struct registration *registration;
                        bool is_added;   /* false: it has ended */
                        bool is_stopped; /* it has ended by KEYNOTIFY STOP */
                } registration;
                struct {
                        struct result result;
                        uint64_t reply_number; /* of the remembered reply; 0: not by content */
                        struct digest digest;
                        int64_t forget_ns;              /* monotonic */
                        uint64_t number;                /* 0: not by number */
                        struct executed_request before; /* in the place of the number */
                } execution;
        };
};
