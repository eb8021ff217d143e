/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/encoder.h"
#include "engine/engine.h"
#include "observation/counters.h"
#include "protocol/frame.h"
#include "protocol/message.h"
#include "storage/storage.h"

/*
 * Requests pass four stages: queue, execute, commit, publish.
 *
 * Requests are executed in the open batch. When the batch ends, its changes are committed, and
 * then its replies and notifications are published. One batch is in flight at a time. A message
 * that arrives meanwhile waits, so no request is executed on state that may still be rolled back.
 * Without a storage nothing is committed, and each batch is published at once.
 *
 * The pipeline has no event loop, and reads no clock but callbacks.clock_ns. The caller reports
 * events: pipeline_connected(), pipeline_plugin_detected(), pipeline_receive(), pipeline_acknowledged(),
 * pipeline_request(), pipeline_committed(), pipeline_check_storage(), pipeline_disconnected(). An event
 * executes no request, begins no commit, and publishes nothing. When the caller has reported the events of a
 * wake-up, and before it waits for the next one, it calls pipeline_advance(), which does all that
 * follows from them and from the time: it identifies the broker, and executes, commits and publishes.
 *
 * The pipeline decides when a batch ends. Not thread-safe: only storage_commit() runs on another thread.
 *
 * "The plugin" is mosquitto_statestore.so in the broker: see common/protocol/companion.h.
 */
struct pipeline;
struct hooks;

/* How the pipeline publishes: the functions of the connection to the broker. */
struct transport {
        /*
         * Publish at the QoS of the message, 0 or 1. The message is borrowed for the call. Returns the
         * message id, or 0 at QoS 0; -EAGAIN if too many messages at QoS 1 are not acknowledged;
         * -EMSGSIZE if the message is larger than the broker accepts; -EINVAL if the topic or a
         * property is not valid in MQTT; or -ENOMEM. After an error the message is not sent. Topics and
         * the texts of properties are followed by NUL. Must not call the pipeline.
         *
         * QoS 1: the id is for pipeline_acknowledged(). Without a connection, the message is sent after
         * the store has reconnected.
         *
         * QoS 0: without a connection, and at the end of the connection if it is not yet written,
         * the message is lost: it is never sent on a later connection. The result is 0
         * nevertheless. No acknowledgement is reported.
         */
        int (*publish)(void *userdata, const struct message *message);

        /*
         * Return false if the broker does not keep up: too many messages at QoS 1 are not
         * acknowledged, or too many bytes at QoS 0 are not written. Publishing stops until this
         * returns true in a later pipeline_advance(). That there may be room again is an event.
         */
        bool (*has_room)(void *userdata);
        void *userdata;
};

/* What the broker provides (PROTOCOL.md "Broker abilities"). */
enum broker_kind {
        BROKER_UNKNOWN, /* not connected, or WELCOME is awaited: requests wait */
        BROKER_PLAIN,   /* no plugin: client ids are not verified; PUBACKs with 0x10 suggest disconnects */
        /* Client ids are verified; the plugin delivers notifications and reports disconnects. */
        BROKER_WITH_PLUGIN,
};

struct pipeline_callbacks {
        /*
         * Return monotonic nanoseconds, to measure how long a request takes and to limit the work
         * per call.
         */
        int64_t (*clock_ns)(void *userdata);

        /*
         * Let a worker thread call storage_commit() once with the storage and this change set, which is
         * borrowed until it returns. Then report its result with pipeline_committed(), after this function
         * has returned. Not called without a storage.
         */
        void (*start_commit)(void *userdata, const struct change_set *change_set);

        /* The store serves requests: after the start, and again after each interruption. */
        void (*serving)(void *userdata, enum broker_kind broker_kind);

        /*
         * It is unknown whether a batch is stored, or memory was too short to roll it back. End the
         * process at once: the next start loads the stored state. This function must not return, so
         * that nothing is published or stored after it. The cause is logged.
         */
        void (*fatal)(void *userdata) __attribute__((noreturn));

        void *userdata;
};

/* Strings are borrowed. */
struct pipeline_config {
        struct pipeline_callbacks callbacks;
        enum dialect dialect;
        uint64_t run; /* random number of this process: see common/protocol/companion.h */
        /* Random, new for each start: the keys of HELLO are derived from it. */
        uint8_t companion_secret[COMPANION_KEY_SIZE];

        /*
         * Topic filter of the messages that report disconnected clients on a broker without the
         * plugin; {client} stands for the level with the client id. NULL: none.
         */
        const char *presence_topic;

        bool requires_plugin; /* do not serve a broker without the plugin: wait for the plugin */

        bool is_disk_full; /* storage_lead() returned STORAGE_FULL */

        const char *persistence_name; /* the user property with which a SET requests persistence */
        const char *persistence_value;
};

/*
 * Create a pipeline that executes requests on the state and commits them to the storage, which has
 * loaded this state and leads. storage NULL: nothing is stored. Returns 0 or -ENOMEM. The caller
 * owns *ret_pipeline, which owns the state and the storage. After an error the caller still owns
 * both.
 */
int pipeline_new(struct pipeline **ret_pipeline, const struct pipeline_config *config, struct state *state,
                 struct storage *storage);

/* Accepts NULL, returns NULL. No commit may be running. */
struct pipeline *pipeline_free(struct pipeline *pipeline);

/*
 * Publish with this transport. Call before pipeline_connected(). pipeline_free() does not use it, so the
 * connection to the broker may be closed first.
 */
void pipeline_set_transport(struct pipeline *pipeline, struct transport transport);

/* 1. Events */

/*
 * The store is connected and subscribed, or its connection has ended. If the broker has the plugin,
 * the caller must pass its banner to pipeline_receive() or call pipeline_plugin_detected() before
 * pipeline_connected().
 */
void pipeline_connected(struct pipeline *pipeline, bool session_present);
void pipeline_disconnected(struct pipeline *pipeline);

/*
 * The broker has the plugin, although its banner may not have arrived yet. Call before
 * pipeline_connected().
 */
void pipeline_plugin_detected(struct pipeline *pipeline);

/*
 * A message has arrived. It is borrowed for the call: requests and disconnects wait in the queue
 * (pipeline/queue.h) for pipeline_advance(). NULL: it was dropped, because memory is exhausted; this is
 * counted and logged.
 */
void pipeline_receive(struct pipeline *pipeline, const struct message *message, struct now now);

/*
 * The broker has acknowledged the message at QoS 1 to which transport.publish() gave this id.
 * Report each published message at QoS 1 once, in the order of publishing, also across connections:
 * they are counted.
 */
void pipeline_acknowledged(struct pipeline *pipeline, uint16_t id, bool no_subscriber, struct now now);

/*
 * All events of a wake-up are reported, or the time of pipeline_next_deadline() has come. Do what is due,
 * such as expiring keys. Serve what waits in the open batch, commit it and publish it. Repeat until nothing
 * waits, the time for this call is over (pipeline/work_clock.h), a commit is in flight, or the transport has
 * no room. A call for no reason is harmless.
 */
void pipeline_advance(struct pipeline *pipeline, struct now now);

/*
 * The commit that callbacks.start_commit() has started has ended: storage_commit() has returned this result.
 * The batch is stored, or is rolled back now.
 */
void pipeline_committed(struct pipeline *pipeline, int result, struct now now);

/*
 * When to call pipeline_advance(), also without an event: monotonic nanoseconds, in the past if work is
 * overdue; INT64_MAX for never.
 */
int64_t pipeline_next_deadline(const struct pipeline *pipeline);

/*
 * Call every second. Requires the commit of a batch, even without changes, if state_needs_commit() or if
 * there was no commit yet. While commits fail, requires one every few calls, so that a storage that works
 * again is noticed although no client writes. When commits succeed again, the broker is identified again if
 * a failed one has restored registrations.
 */
void pipeline_check_storage(struct pipeline *pipeline, struct now now);

/*
 * A client inside the process: a user of the console. The broker need not know the user. The policy
 * sees a verified client with the id INNER_CLIENT_PREFIX and the name of the user.
 */
#define INNER_CLIENT_PREFIX "console/"
struct inner_client {
        struct slice user; /* copied; has no NUL */
        /* Of SET, DEL and VDEL: checked in the step that changes the key. */
        enum version_condition version_condition;
        struct version expected_version;

        /*
         * The request has ended. Called once, after pipeline_request() has returned; perhaps by
         * pipeline_free(). Must not call a function of the pipeline, except those of "State".
         *
         * message: the reply, without a topic; borrowed. NULL: there is none, because it came not in
         * time, or memory was short; the request may have been executed. reply: what the message was
         * made from; borrowed. NULL: a reply of test control, or to wrong user properties.
         */
        void (*ended)(void *userdata, const struct reply *reply, const struct message *message);
        void *userdata;
};

/* After this time without a reply, a request of an inner client ends. */
#define INNER_REQUEST_TIMEOUT_S 10

/*
 * Send a request of an inner client. Topic, payload and user properties of the message are used, and
 * borrowed for the call. The topic is TOPIC_INVOKE, or TOPIC_CONTROL for a command of test control.
 * The request waits and is executed as those of the clients of a broker without the plugin, also if
 * the broker has the plugin, and has its reply after its commit. Differences:
 * - KEYNOTIFY is an unknown command.
 * - Requests are never repeated: two equal ones are executed both.
 * - Hooks do not see requests and replies. The command `wait-for` of test control has no reply.
 *
 * Returns 0; -ENOBUFS if too many requests wait; -ENOTSUP for a topic that is not served; or -ENOMEM.
 * After an error, client->ended is not called.
 */
int pipeline_request(struct pipeline *pipeline, const struct message *message,
                     const struct inner_client *client, struct now now);

/* 2. Settings */

/*
 * Observe and change requests and replies, for test control. Borrowed; NULL: none. Call before the
 * first message.
 */
void pipeline_set_hooks(struct pipeline *pipeline, const struct hooks *hooks);

/*
 * The broker's maximum packet size in bytes; MESSAGE_PACKET_MAX before the first call. Applies to
 * later requests.
 */
void pipeline_set_max_packet(struct pipeline *pipeline, uint64_t n_bytes);

/* Whether log lines about refused requests have the key; false before the first call. */
void pipeline_set_log_keys(struct pipeline *pipeline, bool shows_keys);

/* As engine_set_limits(). */
void pipeline_set_limits(struct pipeline *pipeline, struct engine_limits limits);

/*
 * Replace the policy; the pipeline takes ownership. NULL allows everything. The new policy takes
 * effect when the batch in flight has ended and a broker is served; until then no request is
 * executed. Registrations that it does not grant end. If there are many, several ticks end them.
 */
void pipeline_set_policy(struct pipeline *pipeline, struct policy *policy);

/* 3. State */

/* Return true if no message waits, and no batch is being committed or published. */
bool pipeline_is_idle(const struct pipeline *pipeline);

/*
 * Return true if the commit in flight takes unusually long; the caller may then stop reading.
 * Continue to read during a normal commit: the queue serves the clients in turn, but only those
 * whose requests were read.
 */
bool pipeline_is_commit_stalled(const struct pipeline *pipeline, struct now now);

/*
 * For a watchdog that calls periodically. Return false if there was work at the last call and there
 * is work now, but no message was executed and no commit has ended in between.
 *
 * Messages that wait for the broker are not work: a restart would not help. A failed commit is
 * progress: each of its requests gets an error.
 */
bool pipeline_check_progress(struct pipeline *pipeline);

/*
 * Return the bytes of waiting messages. Above PIPELINE_WAITING_PAUSE the caller stops reading while
 * the broker accepts no replies or a commit is stalled. Clients share PIPELINE_WAITING_MAX by the
 * rule of fair_queue/fair_queue.h. A message that exceeds its client's share is dropped and counted.
 */
#define PIPELINE_WAITING_PAUSE ((size_t)16 << 20)
#define PIPELINE_WAITING_MAX   ((size_t)512 << 20)
size_t pipeline_n_waiting_bytes(const struct pipeline *pipeline);

const struct counters *pipeline_counters(const struct pipeline *pipeline);

struct gauges {
        uint64_t n_keys;
        uint64_t n_bytes; /* of keys, values and registrations; limited by max_bytes */
        uint64_t n_registrations;
        uint64_t n_remembered_replies;
        uint64_t n_remembered_dropped_early; /* replies dropped before their deadline, since the start */
        uint64_t n_pending_notifications;    /* changes with notifications that are not acknowledged */
        uint64_t n_waiting_bytes;            /* pipeline_n_waiting_bytes() */
        struct frame_counters plugin;        /* what the plugin has counted, at its last frame */
        uint64_t max_keys, max_bytes, max_registrations, max_waiting_bytes;
        uint64_t clock_ahead_ms; /* of the version clock, relative to the wall clock */
        enum broker_kind broker_kind;
        bool is_connected;
        bool is_plugin_detected; /* the broker has the plugin, which may not have replied yet */
        bool is_plugin_required; /* pipeline_config.requires_plugin */
        bool is_storage_failing; /* the last commit failed, or the disk has no room to add something */
        bool is_disk_full;       /* is_storage_failing, because the disk is full */
        int64_t lease_left_ns;   /* storage_lease_left_ns(); INT64_MAX without a storage */
        bool is_storage_waiting; /* storage_is_waiting() */
        bool has_disk;           /* `disk` is valid */
        struct storage_usage disk;
};
void pipeline_read_gauges(const struct pipeline *pipeline, int64_t wall_ms, struct gauges *ret_gauges);
