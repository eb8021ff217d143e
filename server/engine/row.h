/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/dedup.h"
#include "engine/entry.h"
#include "engine/watch.h"

/*
 * One change of the state. Storage writes it; engine_undo() reverts it if the commit fails. A row holds references, so that
 * its entries and registrations stay readable after later changes.
 */

enum row_type {
        ROW_ENTRY,
        ROW_REGISTRATION,
        ROW_ANSWER, /* a remembered reply */
};

struct row {
        enum row_type type;
        union {
                struct {
                        struct entry *before;       /* NULL: the key did not exist */
                        struct entry *after;        /* NULL: the key was deleted or has expired */
                        int64_t before_deadline_ns; /* monotonic; STORE_NEVER: none */
                        int64_t after_deadline_ns;
                } entry;
                struct {
                        struct registration *registration;
                        bool is_added; /* false: it has ended */
                        bool is_final; /* it ended with its connection: not restored by an undo */
                } registration;
                struct {
                        struct digest digest;
                        struct remembered_answer answer;
                        int64_t deadline_ns;
                        uint32_t slot; /* the storage slot; replaces its former content */
                } answer;
        };
};
