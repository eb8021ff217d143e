/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/invocation.h"
#include "engine/engine.h"
#include "protocol/message.h"
#include "state/notification_queue.h"

/*
 * Callbacks with which test control (control/control.h) observes and changes messages. A pipeline
 * without hooks ignores messages on the control topic.
 */
struct hooks {
        /*
         * Execute a message on the control topic. The batch is empty. Without the plugin, all
         * earlier requests have their replies; with it, some may wait in the plugin. NULL: such
         * messages are ignored.
         */
        void (*control)(void *userdata, const struct message *message, struct now now);

        /* Called after a request was decoded; may change it. hook_number is for `reply`. */
        void (*request)(void *userdata, struct invocation *invocation, struct now now);

        /*
         * A reply is ready. Return true: the pipeline publishes it. false: the hook publishes,
         * delays or drops it. hook_number: as `request` has set it.
         */
        bool (*reply)(void *userdata, uint64_t hook_number, const struct message *reply, struct now now);

        /*
         * Return how many times to publish the notification to this client. client: empty if it has no
         * registration any more.
         */
        int (*notification)(void *userdata, struct slice client,
                            const struct pending_notification *notification);

        void *userdata;
};
