/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "engine/watch.h"
#include "pipeline/counters.h"
#include "protocol/message.h"

/* Publishes single messages through the transport, and counts and logs those that are dropped. */

/* The pipeline's connection to the broker and its other surroundings. The caller of pipeline_new() implements it. */
struct transport {
        /* As link_publish(): 0, -EAGAIN, -EMSGSIZE, -EINVAL or -ENOMEM. The message is borrowed for the call. */
        int (*publish)(void *userdata, const struct message *message, uint16_t *ret_id);

        /* Return false if the broker does not keep up: publishing stops until this returns true. */
        bool (*has_room)(void *userdata);

        /*
         * Run work(argument) on a worker thread, and then call pipeline_work_done() on the pipeline's own thread. Return 0;
         * 1 if work(argument) was run before the return, so that pipeline_work_done() is not called; or -errno if the work
         * is not run. There is at most one work at a time. Not called with a storage that never blocks.
         */
        int (*run_worker)(void *userdata, void (*work)(void *argument), void *argument);
        void *userdata;

        /* Return monotonic nanoseconds, to measure how long a request takes. NULL: durations are not measured. */
        int64_t (*clock_ns)(void *userdata);
};

struct sender {
        const struct transport *transport; /* borrowed */
        struct counters *counters;         /* borrowed */
        struct log_limit publish_limit, memory_limit;
        bool direct;            /* the plugin delivers notifications to their clients */
        uint64_t last_sequence; /* of common/protocol/companion.h */
        uint64_t n_sent;        /* messages published since the start */

        /* Called for each published notification with its message id. NULL: not called. */
        void (*notified)(void *userdata, struct registration *registration, uint16_t id);
        void *userdata;
};

/* Count and log a message that is dropped for want of memory. */
void sender_out_of_memory(struct sender *sender);

/* Publish a message. Return the result of transport.publish(). A message that is not published is counted and logged. */
int sender_send(struct sender *sender, const struct message *message, uint16_t *ret_id);

/* Publish the number of a connection on one of the plugin's topics. */
void sender_send_connection(struct sender *sender, struct slice topic, uint64_t connection);

bool sender_has_room(const struct sender *sender);
