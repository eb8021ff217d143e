/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/invocation.h"
#include "engine/engine.h"
#include "protocol/message.h"

/* What a test double does with all that passes through the pipeline: control/control.h. A pipeline without hooks has none of it. */
struct hooks {
        /* A message on the control topic. The batch is empty, and what was asked before is answered. */
        void (*control)(void *userdata, const struct message *message, struct now now);

        /*
         * A request was decoded, and may be changed; is_answerable: it will be answered. Returns the number under which its
         * answer will be given, 0: none.
         */
        uint64_t (*request)(void *userdata, struct invocation *invocation, bool is_answerable,
                            struct now now);

        /* An answer, to be sent. */
        void (*answer)(void *userdata, uint64_t number, const struct message *answer, struct now now);

        /* How often a notification of this registration is to be sent. */
        int (*notification)(void *userdata, const struct registration *registration);

        /* Time has passed; when there is something to do, INT64_MAX: never. */
        void (*tick)(void *userdata, struct now now);
        int64_t (*next_deadline)(void *userdata);
        void *userdata;
};
