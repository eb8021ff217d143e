/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/dedup.h"
#include "engine/executions.h"
#include "engine/keyspace.h"
#include "engine/registrations.h"

/*
 * One change of the state. The next commit stores it; engine_undo() reverts it if the commit fails.
 * A change holds references, so that its entries and registrations stay readable after later changes.
 */

enum change_type {
        CHANGE_ENTRY,
        CHANGE_REGISTRATION,
        CHANGE_REPLY,     /* a reply is remembered by the content of its request */
        CHANGE_EXECUTION, /* a reply is remembered by the number of its request */
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
                        uint64_t number;
                        struct digest digest;
                } reply;
                struct {
                        struct executed_request before, after; /* of one place */
                } execution;
        };
};
