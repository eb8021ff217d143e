/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A batch goes through three stages: it is open and gathers what arrives; it is being stored; it is being published
 * as far as there is room. Only an open one may be added to: what arrives otherwise waits, so nothing is ever
 * executed on top of what may yet fail.
 */

#include "pipeline/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "codec/identity.h"
#include "engine/persistence.h"
#include "pipeline/hooks.h"
#include "protocol/companion.h"
#include "protocol/topics.h"
#include "storage/restore.h"

/* A batch that has grown to this is published before anything is added. */
#define BATCH_REPLIES_MAX       1000
#define BATCH_NOTIFICATIONS_MAX 10000
#define BATCH_BYTES_MAX         ((size_t)1 << 20)

/*
 * Time spent on requests before the pipeline returns to its caller, which then reads what has arrived meanwhile: a
 * request that arrives behind many others of one client is executed after a few of them. The request that exceeds the
 * slice is finished. With slow storage a slice is as long as the last commit took, within limits: a shorter one would
 * leave most of each commit's cost to few requests.
 */
#define SLICE_NS     INT64_C(1000000)
#define SLICE_NS_MAX INT64_C(10000000)

/* A commit that takes longer than this is stalled. */
#define COMMIT_STALLED_NS INT64_C(100000000)

/* After a commit has failed, what time alone would change waits this long. */
#define RETRY_AFTER_NS INT64_C(1000000000)

/* While commits fail, each so many-th pipeline_check_storage() tries another one. */
#define FAILING_CHECKS 3

static void pipeline_cleanup(struct pipeline **pipeline) {
        pipeline_free(*pipeline);
}

static int set_max_packet(struct pipeline *pipeline, uint64_t n_bytes) {
        struct packet_limits limits;
        int r;

        r = publish_packet_limits(&pipeline->encoder, n_bytes, &limits);
        if (r == 0)
                engine_set_packet_limits(pipeline->engine, &limits);
        return r;
}

int pipeline_new(struct pipeline **ret_pipeline, const struct pipeline_config *config,
                 const struct transport *transport, const struct pipeline_callbacks *callbacks,
                 struct storage *storage, struct now now) {
        CLEANUP(pipeline_cleanup) struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
        struct storage_header header;
        int r;

        if (!pipeline)
                return -ENOMEM;

        pipeline->transport = *transport;
        pipeline->callbacks = *callbacks;
        pipeline->encoder = (struct encoder){ .dialect = config->dialect, .node_id = config->node_id };
        pipeline->decoder = (struct decoder){
                .persistence_name = config->persistence_name,
                .persistence_value = slice_from_string(config->persistence_value),
        };
        pipeline->sender = (struct sender){
                .transport = &pipeline->transport,
                .counters = &pipeline->counters,
                .userdata = pipeline,
        };
        pipeline->welcome_until_ns = INT64_MAX;
        pipeline->run = config->run;
        memcpy(pipeline->companion_secret, config->companion_secret, sizeof(config->companion_secret));
        pipeline->presence_topic = config->presence_topic;

        r = restore_engine(&pipeline->engine, &header, storage, &config->engine, now);
        if (r < 0)
                return r;

        r = set_max_packet(pipeline, MESSAGE_PACKET_MAX);
        if (r < 0)
                return r;

        memcpy(pipeline->instance_id, header.instance_id, sizeof(header.instance_id));
        memcpy(pipeline->client_suffix, header.client_suffix, sizeof(header.client_suffix));
        pipeline->stored_clock = header.clock;
        pipeline->lost_persistence = header.persistence;
        pipeline->positions = pipeline->settled = pipeline->candidate = header.positions;
        pipeline->storage = storage;
        *ret_pipeline = take_ptr(&pipeline);
        return 0;
}

struct pipeline *pipeline_free(struct pipeline *pipeline) {
        if (!pipeline)
                return NULL;

        unacknowledged_deinit(&pipeline->notified);
        arrivals_deinit(&pipeline->arrivals);
        inbox_deinit(&pipeline->inbox);
        batch_deinit(&pipeline->batch);
        engine_free(pipeline->engine);
        policy_free(pipeline->policy);
        policy_free(pipeline->next_policy);
        encoder_deinit(&pipeline->encoder);
        storage_close(pipeline->storage);
        free(pipeline);
        return NULL;
}

bool pipeline_is_open(const struct pipeline *pipeline) {
        return !pipeline->is_storing && !pipeline->is_publishing;
}

void pipeline_charge(struct pipeline *pipeline) {
        int64_t now_ns;

        if (!pipeline->transport.clock_ns)
                return;

        now_ns = pipeline->transport.clock_ns(pipeline->transport.userdata);
        pipeline->slice_work_ns += now_ns - pipeline->turn_from_ns;
        pipeline->turn_from_ns = now_ns;
}

int pipeline_step(struct pipeline *pipeline, const struct event *event, struct now now) {
        return engine_step(pipeline->engine, event, now, &pipeline->batch.effects);
}

/* Until the clients that the last restart concerns are disconnected the next one concerns them too. */
uint64_t pipeline_persistence(const struct pipeline *pipeline) {
        uint64_t present = persistence_digest(engine_config(pipeline->engine));

        return pipeline->lost_persistence == PERSISTENCE_ALL || pipeline->lost_persistence == present
                       ? present
                       : PERSISTENCE_UNKNOWN;
}

/* 1. One batch after the other */

static bool is_topic(const struct message *message, const char *topic) {
        return slice_equal(message->topic, slice_from_string(topic));
}

/* Room is asked for here too: answers to faults leave at once, in no batch. */
static bool can_execute(const struct pipeline *pipeline) {
        return pipeline->broker_kind != BROKER_UNKNOWN && pipeline_is_open(pipeline) &&
               !pipeline->is_desynchronized && pipeline->transport.has_room(pipeline->transport.userdata) &&
               pipeline->batch.n_replies < BATCH_REPLIES_MAX &&
               pipeline->batch.effects.n_notifications < BATCH_NOTIFICATIONS_MAX &&
               pipeline->n_batch_bytes < BATCH_BYTES_MAX;
}

static bool is_slice_over(const struct pipeline *pipeline) {
        int64_t slice_ns = pipeline->last_commit_ns;

        if (slice_ns < SLICE_NS)
                slice_ns = SLICE_NS;
        if (slice_ns > SLICE_NS_MAX)
                slice_ns = SLICE_NS_MAX;
        return pipeline->slice_work_ns >= slice_ns;
}

/* Without hooks it is a message like any other that nobody has asked for. */
static bool is_control(const struct pipeline *pipeline, const struct message *message) {
        return pipeline->hooks && is_topic(message, TOPIC_CONTROL);
}

/* Whether it is this message's turn: what changes the store under its requests has to wait for their answers. */
static bool has_turn(const struct pipeline *pipeline, const struct message *message) {
        return can_execute(pipeline) && (!is_control(pipeline, message) || batch_is_empty(&pipeline->batch));
}

static void execute(struct pipeline *pipeline, const struct message *message, int64_t arrived_ns,
                    struct now now) {
        pipeline->n_done++;
        pipeline->n_batch_bytes += message->payload.length;
        if (is_control(pipeline, message))
                pipeline->hooks->control(pipeline->hooks->userdata, message, now);
        else if (is_topic(message, TOPIC_INVOKE))
                request_execute(pipeline, message, arrived_ns, now);
        else
                broker_execute_disconnect(pipeline, message, now);
}

static void drop_waiting(struct pipeline *pipeline, const struct message *message, int error) {
        if (error != -ENOBUFS) {
                sender_out_of_memory(&pipeline->sender);
                return;
        }
        pipeline->counters.n_drops[DROP_TOO_MANY_WAITING]++;
        log_limited_fields(
                &pipeline->waiting_limit, LOG_ERROR,
                "a request was dropped: too many of its client wait already",
                (struct log_field[]){ LOG_FIELD_NUMBER("request_bytes", message->payload.length),
                                      LOG_FIELD_NUMBER("waiting_bytes", pipeline_n_waiting_bytes(pipeline)),
                                      LOG_FIELD_NUMBER("max_waiting_bytes", PIPELINE_INBOX_MAX),
                                      { 0 } });
}

/* Whether the plugin, where there is one, lets this message pass; *ret_is_verified: it vouches for its sender. */
static bool passes_plugin(struct pipeline *pipeline, const struct message *message, bool has_waited,
                          bool *ret_is_verified) {
        *ret_is_verified = false;
        if (pipeline->broker_kind != BROKER_WITH_PLUGIN || message->qos != 1 ||
            !is_topic(message, TOPIC_INVOKE))
                return true; /* a request at another QoS is refused, whoever sends it */

        switch (identity_check(&pipeline->positions, message, has_waited)) {
        case IDENTITY_VERIFIED:
                *ret_is_verified = true;
                return true;
        case IDENTITY_REPEATED:
                pipeline->counters.n_drops[DROP_REPEATED]++;
                return false;
        case IDENTITY_UNVERIFIED:
                break;
        }
        request_drop_unverified(pipeline);
        return false;
}

/* The client in whose queue the message waits. What the plugin says waits in a queue of its own. */
static struct slice queue_of(const struct pipeline *pipeline, const struct message *message) {
        struct slice client;

        /* test control takes effect in the order of arrival: all messages share one queue */
        if (pipeline->hooks && pipeline->hooks->control)
                return (struct slice){ 0 };
        if (is_topic(message, TOPIC_INVOKE))
                return invocation_sender(&pipeline->decoder, message);
        /* the end of a client's connection comes after the requests that came over it */
        if (pipeline->presence_topic &&
            topic_match_client(message->topic, slice_from_string(pipeline->presence_topic), &client))
                return client;
        return message->topic;
}

static int admit(struct pipeline *pipeline, const struct message *message, struct now now) {
        struct message copy;
        bool is_verified;

        if (!passes_plugin(pipeline, message, false, &is_verified))
                return 0;
        if (is_verified) {
                copy = *message;
                copy.is_verified = true;
                message = &copy;
        }
        if (!inbox_is_empty(&pipeline->inbox) || is_slice_over(pipeline) || !has_turn(pipeline, message))
                return inbox_add(&pipeline->inbox, queue_of(pipeline, message), message, now.mono_ns,
                                 PIPELINE_INBOX_MAX);

        pipeline->turn_from_ns = now.mono_ns;
        execute(pipeline, message, now.mono_ns, now);
        return 0;
}

void pipeline_admit_arrivals(struct pipeline *pipeline) {
        const struct message *message;
        int64_t arrived_ns;

        while ((message = arrivals_first(&pipeline->arrivals, &arrived_ns))) {
                struct message copy = *message;

                if (passes_plugin(pipeline, message, true, &copy.is_verified)) {
                        int r = inbox_add(&pipeline->inbox, queue_of(pipeline, &copy), &copy, arrived_ns,
                                          PIPELINE_INBOX_MAX);

                        if (r < 0)
                                drop_waiting(pipeline, message, r);
                }
                arrivals_drop(&pipeline->arrivals);
        }
}

void pipeline_receive(struct pipeline *pipeline, const struct message *message, struct now now) {
        int r;

        if (is_topic(message, COMPANION_BANNER)) {
                broker_receive_banner(pipeline, message);
                return;
        }
        if (is_topic(message, COMPANION_WELCOME)) {
                companion_receive_welcome(pipeline, message, now);
                return;
        }
        if (is_topic(message, COMPANION_TAKEOVER)) {
                broker_receive_takeover(pipeline);
                return;
        }
        companion_wait_on(pipeline, now);
        if (pipeline->broker_kind == BROKER_UNKNOWN)
                r = arrivals_add(&pipeline->arrivals, message, now.mono_ns,
                                 PIPELINE_INBOX_MAX - pipeline->inbox.n_bytes);
        else
                r = admit(pipeline, message, now);
        if (r < 0)
                drop_waiting(pipeline, message, r);
        /* no commit is waited for: the broker forwards this reply while the next request is read */
        if (storage_is_immediate(pipeline->storage) && pipeline_n_waiting_bytes(pipeline) == 0)
                pipeline_flush(pipeline, now);
}

void pipeline_add_dropped(struct pipeline *pipeline) {
        sender_out_of_memory(&pipeline->sender);
}

/* Call once per batch, when its commit has ended. */
static void count_replies(struct pipeline *pipeline) {
        struct counters *counters = &pipeline->counters;

        for (size_t i = 0; i < pipeline->batch.n_replies; i++) {
                const struct pending_reply *pending = &pipeline->batch.replies[i];

                if (pending->verb == N_VERBS)
                        continue;
                counters->n_answers[pending->verb][pending->reply.outcome]++;
                if (pending->reply.is_repeated)
                        counters->n_repeated++;
                else if (pending->verb == VERB_SET && pending->reply.is_insertion)
                        counters->n_insertions++;
        }
}

/* The commit has ended: publish the batch, or undo it in memory if the commit failed. */
static void settle(struct pipeline *pipeline, int result, struct now now) {
        pipeline->n_done++;
        pipeline->is_storing = false;
        pipeline->batch.is_stored = true;
        if (result == 0) {
                count_replies(pipeline);
                return;
        }

        pipeline->is_storage_failing = true;
        pipeline->counters.n_failed_commits++;

        log_limited(&pipeline->storage_limit, LOG_ERROR,
                    "%zu changes could not be stored and are taken back: %s", pipeline->batch.effects.n_rows,
                    strerror(-result));
        if (engine_undo(pipeline->engine, &pipeline->batch.effects) < 0 || result == -ESTALE) {
                pipeline->is_desynchronized = true;
                pipeline->callbacks.desynchronized(pipeline->callbacks.userdata);
        }
        batch_fail(&pipeline->batch, result == -ENOSPC ? OUTCOME_DISK_FULL : OUTCOME_STORAGE_FAILED);
        count_replies(pipeline);
        pipeline->tick_from_ns = now.mono_ns + RETRY_AFTER_NS;
}

static void note_commit(struct pipeline *pipeline) {
        pipeline->is_storage_failing = false;
        pipeline->stored_clock = pipeline->stored.clock;
}

/*
 * Whether a reply carries a version that the stored clock does not cover. KEYNOTIFY answers with the present HLC and
 * may change no row. If that version were sent before a commit, the HLC could go back below it after a crash.
 */
static bool has_uncovered_version(const struct pipeline *pipeline) {
        const struct batch *batch = &pipeline->batch;

        for (size_t i = 0; i < batch->n_replies; i++) {
                const struct reply *reply = &batch->replies[i].reply;

                if (reply->has_version && version_compare(reply->version, pipeline->stored_clock) > 0)
                        return true;
        }
        return false;
}

static void settle_positions(struct pipeline *pipeline) {
        if (pipeline->n_acknowledged >= pipeline->candidate_n_sent)
                pipeline->settled = pipeline->candidate;
}

/* All answers are published: once the broker has acknowledged them, it delivers none of their requests again. */
static void take_positions(struct pipeline *pipeline) {
        settle_positions(pipeline);
        if (pipeline->n_acknowledged < pipeline->candidate_n_sent || !inbox_is_empty(&pipeline->inbox) ||
            pipeline->arrivals.first)
                return;

        pipeline->candidate = pipeline->positions;
        pipeline->candidate_n_sent = pipeline->sender.n_sent;
}

/* Runs on a worker thread, unless the storage never blocks. */
static void run_commit(void *argument) {
        struct pipeline *pipeline = argument;

        pipeline->commit_result = storage_commit(pipeline->storage, &pipeline->stored);
}

/* Return the result of the commit, or 1: pipeline_work_done() will be called. */
static int commit(struct pipeline *pipeline) {
        int r;

        if (storage_is_immediate(pipeline->storage))
                return storage_commit(pipeline->storage, &pipeline->stored);

        r = pipeline->transport.run_worker(pipeline->transport.userdata, run_commit, pipeline);
        if (r < 0)
                return -EIO;
        return r == 0 ? 1 : pipeline->commit_result;
}

/* Return false if the commit has not ended yet. */
static bool store(struct pipeline *pipeline, struct now now) {
        const struct effects *effects = &pipeline->batch.effects;
        int r = 0;

        settle_positions(pipeline);
        if (effects->n_rows > 0 || pipeline->is_commit_pending || has_uncovered_version(pipeline)) {
                pipeline->is_commit_pending = false;
                pipeline->stored = storage_batch_from(pipeline->engine, effects, now);
                pipeline->stored.persistence = pipeline_persistence(pipeline);
                pipeline->stored.positions = pipeline->settled;
                pipeline->stored.client_suffix = pipeline->client_suffix;
                pipeline->commit_from_ns = now.mono_ns;
                r = commit(pipeline);
                if (r == 0)
                        note_commit(pipeline);
        }
        if (r > 0) {
                pipeline->is_storing = true;
                return false;
        }
        settle(pipeline, r, now);
        return true;
}

/* Executes a slice of what waits. The rest follows after what arrives meanwhile: see pipeline_next_deadline(). */
static void execute_waiting(struct pipeline *pipeline, struct now now) {
        if (inbox_is_empty(&pipeline->inbox))
                return; /* the slice of what is executed at once goes on */

        pipeline->slice_work_ns = 0;
        if (pipeline->transport.clock_ns) /* publishing has taken its time */
                pipeline->turn_from_ns = pipeline->transport.clock_ns(pipeline->transport.userdata);
        while (!inbox_is_empty(&pipeline->inbox) && !is_slice_over(pipeline)) {
                int64_t arrived_ns;
                const struct message *message = inbox_first(&pipeline->inbox, &arrived_ns);
                bool is_last = is_control(pipeline, message); /* it may change what time it is */

                if (!has_turn(pipeline, message))
                        return;
                execute(pipeline, message, arrived_ns, now);
                inbox_drop(&pipeline->inbox);
                if (is_last)
                        return;
        }
}

void pipeline_end_wakeup(struct pipeline *pipeline) {
        pipeline->slice_work_ns = 0;
}

/* What else may be due waits for a batch that is not open: one that is not empty, or whose commit's end flushes. */
bool pipeline_has_work(const struct pipeline *pipeline) {
        return !batch_is_empty(&pipeline->batch) || !inbox_is_empty(&pipeline->inbox) ||
               pipeline->is_commit_pending;
}

void pipeline_flush(struct pipeline *pipeline, struct now now) {
        bool has_executed = false;

        if (pipeline->turn_from_ns < now.mono_ns)
                pipeline->turn_from_ns = now.mono_ns;
        do {
                if (pipeline->is_storing || (!pipeline->batch.is_stored && !store(pipeline, now)))
                        return;
                pipeline->is_publishing = !publish_batch(pipeline, now);
                pipeline_charge(pipeline);
                if (pipeline->is_publishing)
                        return;
                pipeline->n_batch_bytes = 0;

                take_positions(pipeline);
                pipeline_apply_policy(pipeline, now);
                companion_greet(pipeline, now);
                if (!has_executed)
                        execute_waiting(pipeline, now);
                has_executed = true;
        } while (!batch_is_empty(&pipeline->batch));
}

void pipeline_commit(struct pipeline *pipeline, struct now now) {
        if (!pipeline_is_open(pipeline) || pipeline->welcome_until_ns != INT64_MAX)
                return;

        pipeline->is_commit_pending = true;
        pipeline_flush(pipeline, now);
}

void pipeline_check_storage(struct pipeline *pipeline, struct now now) {
        bool is_needed;

        if (pipeline->is_storing) /* the worker thread uses the storage */
                return;

        is_needed = storage_needs_commit(pipeline->storage, now);
        if (pipeline->is_storage_failing && ++pipeline->n_failing_checks % FAILING_CHECKS == 0)
                is_needed = true;
        if (is_needed)
                pipeline_commit(pipeline, now);
}

static void count_commit(struct pipeline *pipeline, struct now now) {
        struct counters *counters = &pipeline->counters;

        counters->n_commits++;
        counters->n_rows += pipeline->stored.n_rows;
        pipeline->last_commit_ns = now.mono_ns - pipeline->commit_from_ns;
        histogram_add(&counters->latencies[STAGE_COMMIT], pipeline->last_commit_ns);
}

void pipeline_work_done(struct pipeline *pipeline, int error, struct now now) {
        int result = error < 0 ? error : pipeline->commit_result;

        if (result == 0) {
                note_commit(pipeline);
                count_commit(pipeline, now);
        }
        settle(pipeline, result, now);
        pipeline_flush(pipeline, now);
}

/* 2. Time */

/* While nobody can ask or be told keys may stay: what they are notified by depends on the broker's side. */
static bool can_tick(const struct pipeline *pipeline) {
        return pipeline->broker_kind != BROKER_UNKNOWN && pipeline_is_open(pipeline);
}

void pipeline_tick(struct pipeline *pipeline, struct now now) {
        struct event tick = { .type = EVENT_TICK };

        if (now.mono_ns >= pipeline->welcome_until_ns)
                companion_give_up_welcome(pipeline, now);
        if (pipeline->hooks)
                pipeline->hooks->tick(pipeline->hooks->userdata, now);
        if (can_tick(pipeline) && now.mono_ns >= pipeline->tick_from_ns &&
            pipeline_step(pipeline, &tick, now) < 0)
                pipeline->tick_from_ns = now.mono_ns + RETRY_AFTER_NS;
        pipeline_flush(pipeline, now);
}

int64_t pipeline_next_deadline(const struct pipeline *pipeline) {
        int64_t engine = can_tick(pipeline) ? engine_next_deadline(pipeline->engine) : INT64_MAX;

        int64_t hooks = INT64_MAX;

        if (engine < pipeline->tick_from_ns)
                engine = pipeline->tick_from_ns;
        if (pipeline->hooks)
                hooks = pipeline->hooks->next_deadline(pipeline->hooks->userdata);
        if (hooks < engine)
                engine = hooks;
        if (!inbox_is_empty(&pipeline->inbox) && can_execute(pipeline))
                return 0;
        return engine < pipeline->welcome_until_ns ? engine : pipeline->welcome_until_ns;
}

bool pipeline_is_idle(const struct pipeline *pipeline) {
        return inbox_is_empty(&pipeline->inbox) && !pipeline->arrivals.first && pipeline_is_open(pipeline);
}

size_t pipeline_n_waiting_bytes(const struct pipeline *pipeline) {
        return pipeline->inbox.n_bytes + pipeline->arrivals.n_bytes;
}

bool pipeline_is_commit_stalled(const struct pipeline *pipeline, struct now now) {
        return pipeline->is_storing && now.mono_ns - pipeline->commit_from_ns > COMMIT_STALLED_NS;
}

void pipeline_read_gauges(const struct pipeline *pipeline, int64_t wall_ms, struct gauges *ret_gauges) {
        const struct engine *engine = pipeline->engine;
        int64_t ahead_ms = engine_stats(engine).clock.wall_ms - wall_ms;

        *ret_gauges = (struct gauges){
                .n_keys = engine_stats(engine).n_keys,
                .n_bytes = engine_stats(engine).n_bytes,
                .n_registrations = engine_stats(engine).n_registrations,
                .n_remembered_answers = engine_stats(engine).n_remembered,
                .n_answers_dropped_early = engine_stats(engine).n_dropped_early,
                .n_waiting_bytes = pipeline_n_waiting_bytes(pipeline),
                .max_keys = engine_config(engine)->max_keys,
                .max_bytes = engine_config(engine)->max_bytes,
                .max_registrations = engine_config(engine)->max_registrations,
                .max_waiting_bytes = PIPELINE_INBOX_MAX,
                .clock_ahead_ms = ahead_ms > 0 ? (uint64_t)ahead_ms : 0,
                .broker_kind = pipeline->broker_kind,
                .is_connected = pipeline->is_connected,
                .is_guarded = pipeline->broker_kind == BROKER_WITH_PLUGIN && pipeline->is_guarded,
                .is_storage_failing = pipeline->is_storage_failing,
        };
}

const char *pipeline_client_suffix(const struct pipeline *pipeline) {
        return pipeline->client_suffix;
}

const struct counters *pipeline_counters(const struct pipeline *pipeline) {
        return &pipeline->counters;
}

void pipeline_set_hooks(struct pipeline *pipeline, const struct hooks *hooks) {
        pipeline->hooks = hooks;
}

void pipeline_set_limits(struct pipeline *pipeline, const struct engine_config *config) {
        engine_set_limits(pipeline->engine, config);
}

void pipeline_set_max_packet(struct pipeline *pipeline, uint64_t n_bytes) {
        if (set_max_packet(pipeline, n_bytes) < 0) /* what does not fit is dropped where it is published */
                sender_out_of_memory(&pipeline->sender);
}
