/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/message.h"
#include "core/engine.h"
#include "proto/encoder.h"

/*
 * What happens between the broker and the engine: messages in, one batch of steps, messages out. Knows every
 * layer and no event loop: whoever runs it calls it and says what time it is.
 */
struct daemon;

struct daemon_config {
        struct engine_config engine;
        enum dialect dialect;
        const char *node_id; /* borrowed; the same as the engine's */
};

/* How the daemon reaches the world. */
struct daemon_outlet {
        /* As link_publish(): 0, -EAGAIN, -EMSGSIZE, -EINVAL or -ENOMEM. The message is borrowed for the call. */
        int (*publish)(void *userdata, const struct message *message);
        void *userdata;
};

/* What has been counted since the start. */
struct daemon_counters {
        uint64_t n_requests;      /* executed */
        uint64_t n_refused;       /* answered with an error before the engine saw them */
        uint64_t n_unanswerable;  /* without a response topic, or with a forbidden one; not executed */
        uint64_t n_expired;       /* past their message expiry; not executed or not answered */
        uint64_t n_notifications; /* sent */
        uint64_t n_dropped;       /* answers, notifications and requests lost for want of memory or room */
};

/* Returns 0 or -ENOMEM; the caller owns *ret_daemon. */
int daemon_new(struct daemon **ret_daemon, const struct daemon_config *config,
               const struct daemon_outlet *outlet);

/* Accepts NULL, returns NULL. */
struct daemon *daemon_free(struct daemon *daemon);

/* A message on the invoke topic; borrowed for the call. Its answer leaves with the next daemon_flush(). */
void daemon_receive(struct daemon *daemon, const struct message *message, struct now now);

/* Time has passed. */
void daemon_tick(struct daemon *daemon, struct now now);

/* The broker no longer knows us, and with us the connections that registrations belong to. */
void daemon_session_lost(struct daemon *daemon, struct now now);

/* Ends the batch: what its steps led to is published. */
void daemon_flush(struct daemon *daemon, struct now now);

/* When daemon_tick() has something to do, as engine_next_deadline(). */
int64_t daemon_next_deadline(const struct daemon *daemon);

const struct daemon_counters *daemon_counters(const struct daemon *daemon);
