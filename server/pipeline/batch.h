/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "codec/encoder.h"
#include "engine/effects.h"
#include "engine/engine.h"
#include "pipeline/counters.h"
#include "pipeline/hooks.h"
#include "protocol/message.h"
#include "storage/storage.h"

/*
 * One batch: what the steps that were executed together lead to, where the answers go, and how far all of it
 * has been published. Publishing stops where there is no room and goes on there: values wait as references, not
 * as copies.
 */

/* How a batch reaches the broker. */
struct transport {
        /*
         * As link_publish(): 0, -EAGAIN, -EMSGSIZE, -EINVAL or -ENOMEM. The message is borrowed for the call.
         */
        int (*publish)(void *userdata, const struct message *message, uint16_t *ret_id);

        /* Whether the broker keeps up: false stops publishing until there is. */
        bool (*has_room)(void *userdata);

        /*
         * Makes the batch safe, as storage_commit(). Returns its result, or 1: it will be given to
         * pipeline_committed(), and until then the batch is borrowed.
         */
        int (*commit)(void *userdata, const struct storage_batch *batch);
        void *userdata;

        /* Monotonic nanoseconds, for how long a step takes; NULL: that is not measured. */
        int64_t (*clock_ns)(void *userdata);
};

/* What publishing needs, whichever batch it is. All borrowed. */
struct sender {
        const struct transport *transport;
        struct encoder *encoder;
        struct counters *counters;
        struct log_limit publish_limit, memory_limit;
        bool direct;               /* the broker's plugin hands notifications to their clients itself */
        uint64_t last_sequence;    /* as common/protocol/companion.h has it */
        uint64_t n_sent;           /* messages that were published, in all */
        const struct hooks *hooks; /* NULL: none */

        /* Called for each notification that was published with its message id; NULL: not wanted. */
        void (*notified)(void *userdata, struct registration *registration, uint16_t id);
        void *userdata;
};

struct reply_address;

struct batch {
        struct effects effects;
        bool is_stored;                        /* what its rows say is safe: it may be published */
        struct reply_address *reply_addresses; /* one for each of the effects' replies */
        size_t n_reply_addresses, reply_addresses_capacity;
        struct buf texts;
        size_t n_track_changes_published, n_replies_published, n_notifications_published;
};

void batch_deinit(struct batch *batch);

/* Nothing to store, answer or tell. */
bool batch_is_empty(const struct batch *batch);

/*
 * Keeps where the answer to this message goes: the next reply that is added to the effects is for it, and will be counted
 * as this verb's. N_VERBS: it is not to be counted. Returns 0 or -ENOMEM.
 */
int batch_add_reply_address(struct batch *batch, const struct message *message, int64_t arrived_ns,
                            enum verb verb);

/* The number under which the hooks are given the last one's answer. */
void batch_number_reply(struct batch *batch, uint64_t number);

/* The last one's reply leaves after the notifications that there are by now. */
void batch_place_reply(struct batch *batch);

/* Forgets the last one: its reply will not be made. */
void batch_forget_reply(struct batch *batch);

/* Whether the message that was expected last is past its expiry. */
bool batch_is_over(const struct batch *batch, int64_t now_ns);

/* Answers the last one at once, and forgets it. */
void batch_answer_fault(struct batch *batch, struct sender *sender, enum request_fault fault,
                        struct slice value, struct now now);

/* Counts what became of the requests: to be called once, when it is known whether the batch is stored. */
void batch_count(const struct batch *batch, struct counters *counters);

/*
 * Publishes what there is room for. True: all of it is, and the batch is empty; false: call again when there
 * is room, and add nothing meanwhile.
 */
bool batch_publish(struct batch *batch, struct sender *sender, struct now now);

/*
 * What packets of at most max_bytes leave for values and replies. Notifications are measured as they are given to the
 * plugin, which is more than on a plain broker. Returns 0 or -ENOMEM.
 */
int batch_packet_limits(struct encoder *encoder, uint64_t max_bytes, struct packet_limits *ret_limits);

/* Says that something was lost for want of memory, and counts it. */
void sender_out_of_memory(struct sender *sender);

/* Publishes a message that belongs to no batch. Returns as outlet.publish. */
int sender_send(struct sender *sender, const struct message *message, uint16_t *ret_id);

/* Likewise, what is said of a connection to the broker's plugin: its number, on one of the plugin's topics. */
void sender_send_connection(struct sender *sender, struct slice topic, uint64_t connection);
