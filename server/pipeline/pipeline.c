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
#include "protocol/companion.h"
#include "protocol/topics.h"
#include "storage/restore.h"

/* A batch that has grown to this is published before anything is added. */
#define BATCH_REPLIES_MAX       1000
#define BATCH_NOTIFICATIONS_MAX 10000
#define BATCH_BYTES_MAX         ((size_t)1 << 20)

/*
 * Time spent on requests before the daemon returns to its caller, which then reads what has arrived meanwhile: a
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

static void daemon_cleanup(struct daemon **daemon) {
        daemon_free(*daemon);
}

static int set_max_packet(struct daemon *daemon, uint64_t n_bytes) {
        struct packet_limits limits;
        int r;

        r = batch_packet_limits(&daemon->encoder, n_bytes, &limits);
        if (r == 0)
                engine_set_packet_limits(daemon->engine, &limits);
        return r;
}

int daemon_new(struct daemon **ret_daemon, const struct daemon_config *config, const struct outlet *outlet,
               const struct daemon_callbacks *callbacks, struct storage *storage, struct now now) {
        CLEANUP(daemon_cleanup) struct daemon *daemon = calloc(1, sizeof(*daemon));
        struct storage_header header;
        int r;

        if (!daemon)
                return -ENOMEM;

        daemon->outlet = *outlet;
        daemon->callbacks = *callbacks;
        daemon->encoder = (struct encoder){ .dialect = config->dialect, .node_id = config->node_id };
        daemon->decoder = (struct decoder){
                .persistence_name = config->persistence_name,
                .persistence_value = slice_from_string(config->persistence_value),
        };
        daemon->publisher = (struct publisher){
                .outlet = &daemon->outlet,
                .encoder = &daemon->encoder,
                .counters = &daemon->counters,
                .userdata = daemon,
        };
        daemon->welcome_until_ns = INT64_MAX;
        daemon->run = config->run;
        memcpy(daemon->companion_secret, config->companion_secret, sizeof(config->companion_secret));
        daemon->presence_topic = config->presence_topic;

        r = restore_engine(&daemon->engine, &header, storage, &config->engine, now);
        if (r < 0)
                return r;

        r = set_max_packet(daemon, MESSAGE_PACKET_MAX);
        if (r < 0)
                return r;

        memcpy(daemon->instance_id, header.instance_id, sizeof(header.instance_id));
        daemon->stored_clock = header.clock;
        daemon->lost_persistence = header.persistence;
        daemon->positions = daemon->settled = daemon->candidate = header.positions;
        *ret_daemon = take_ptr(&daemon);
        return 0;
}

struct daemon *daemon_free(struct daemon *daemon) {
        if (!daemon)
                return NULL;

        notified_deinit(&daemon->notified);
        arrivals_deinit(&daemon->arrivals);
        inbox_deinit(&daemon->inbox);
        batch_deinit(&daemon->batch);
        engine_free(daemon->engine);
        policy_free(daemon->policy);
        policy_free(daemon->next_policy);
        encoder_deinit(&daemon->encoder);
        free(daemon);
        return NULL;
}

bool daemon_is_open(const struct daemon *daemon) {
        return !daemon->is_storing && !daemon->is_publishing;
}

void daemon_charge(struct daemon *daemon) {
        int64_t now_ns;

        if (!daemon->outlet.clock_ns)
                return;

        now_ns = daemon->outlet.clock_ns(daemon->outlet.userdata);
        daemon->slice_work_ns += now_ns - daemon->turn_from_ns;
        daemon->turn_from_ns = now_ns;
}

int daemon_step(struct daemon *daemon, const struct event *event, struct now now) {
        return engine_step(daemon->engine, event, now, &daemon->batch.effects);
}

/* Until the clients that the last restart concerns are disconnected the next one concerns them too. */
uint64_t daemon_persistence(const struct daemon *daemon) {
        uint64_t present = persistence_digest(engine_config(daemon->engine));

        return daemon->lost_persistence == PERSISTENCE_ALL || daemon->lost_persistence == present
                       ? present
                       : PERSISTENCE_UNKNOWN;
}

/* 1. One batch after the other */

static bool is_topic(const struct message *message, const char *topic) {
        return slice_equal(message->topic, slice_from_string(topic));
}

/* Room is asked for here too: answers to faults leave at once, in no batch. */
static bool can_execute(const struct daemon *daemon) {
        return daemon->side != BROKER_SIDE_UNKNOWN && daemon_is_open(daemon) && !daemon->is_lost &&
               daemon->outlet.has_room(daemon->outlet.userdata) &&
               daemon->batch.effects.n_replies < BATCH_REPLIES_MAX &&
               daemon->batch.effects.n_notifications < BATCH_NOTIFICATIONS_MAX &&
               daemon->n_batch_bytes < BATCH_BYTES_MAX;
}

static bool is_slice_over(const struct daemon *daemon) {
        int64_t slice_ns = daemon->last_commit_ns;

        if (slice_ns < SLICE_NS)
                slice_ns = SLICE_NS;
        if (slice_ns > SLICE_NS_MAX)
                slice_ns = SLICE_NS_MAX;
        return daemon->slice_work_ns >= slice_ns;
}

/* Without hooks it is a message like any other that nobody has asked for. */
static bool is_control(const struct daemon *daemon, const struct message *message) {
        return daemon->publisher.hooks && is_topic(message, TOPIC_CONTROL);
}

/* Whether it is this message's turn: what changes the store under its requests has to wait for their answers. */
static bool has_turn(const struct daemon *daemon, const struct message *message) {
        return can_execute(daemon) && (!is_control(daemon, message) || batch_is_empty(&daemon->batch));
}

static void execute(struct daemon *daemon, const struct message *message, int64_t arrived_ns,
                    struct now now) {
        daemon->n_done++;
        daemon->n_batch_bytes += message->payload.length;
        if (is_control(daemon, message))
                daemon->publisher.hooks->control(daemon->publisher.hooks->userdata, message, now);
        else if (is_topic(message, TOPIC_INVOKE))
                request_execute(daemon, message, arrived_ns, now);
        else
                broker_execute_disconnect(daemon, message, now);
}

static void drop_waiting(struct daemon *daemon, const struct message *message, int error) {
        if (error != -ENOBUFS) {
                publisher_lost(&daemon->publisher);
                return;
        }
        daemon->counters.n_drops[DROP_TOO_MANY_WAITING]++;
        log_limited_fields(
                &daemon->waiting_limit, LOG_ERROR,
                "a request was dropped: too many of its client wait already",
                (struct log_field[]){ LOG_FIELD_NUMBER("request_bytes", message->payload.length),
                                      LOG_FIELD_NUMBER("waiting_bytes", daemon_n_waiting_bytes(daemon)),
                                      LOG_FIELD_NUMBER("max_waiting_bytes", DAEMON_INBOX_MAX),
                                      { 0 } });
}

/* Whether the plugin, where there is one, lets this message pass; *ret_is_verified: it vouches for its sender. */
static bool passes_plugin(struct daemon *daemon, const struct message *message, bool has_waited,
                          bool *ret_is_verified) {
        *ret_is_verified = false;
        if (daemon->side != BROKER_SIDE_PROVEN || message->qos != 1 || !is_topic(message, TOPIC_INVOKE))
                return true; /* a request at another QoS is refused, whoever sends it */

        switch (identity_check(&daemon->positions, message, has_waited)) {
        case IDENTITY_VERIFIED:
                *ret_is_verified = true;
                return true;
        case IDENTITY_REPEATED:
                daemon->counters.n_drops[DROP_REPEATED]++;
                return false;
        case IDENTITY_UNVERIFIED:
                break;
        }
        request_drop_unverified(daemon);
        return false;
}

/* The client in whose queue the message waits. What the plugin says waits in a queue of its own. */
static struct slice queue_of(const struct daemon *daemon, const struct message *message) {
        struct slice client;

        if (is_topic(message, TOPIC_INVOKE))
                return invocation_sender(&daemon->decoder, message);
        /* the end of a client's connection comes after the requests that came over it */
        if (daemon->presence_topic &&
            topic_match_client(message->topic, slice_from_string(daemon->presence_topic), &client))
                return client;
        return message->topic;
}

static int admit(struct daemon *daemon, const struct message *message, struct now now) {
        struct message copy;
        bool is_verified;

        if (!passes_plugin(daemon, message, false, &is_verified))
                return 0;
        if (is_verified) {
                copy = *message;
                copy.is_verified = true;
                message = &copy;
        }
        if (!inbox_is_empty(&daemon->inbox) || is_slice_over(daemon) || !has_turn(daemon, message))
                return inbox_add(&daemon->inbox, queue_of(daemon, message), message, now.mono_ns,
                                 DAEMON_INBOX_MAX);

        daemon->turn_from_ns = now.mono_ns;
        execute(daemon, message, now.mono_ns, now);
        return 0;
}

void daemon_admit_arrivals(struct daemon *daemon) {
        const struct message *message;
        int64_t arrived_ns;

        while ((message = arrivals_first(&daemon->arrivals, &arrived_ns))) {
                struct message copy = *message;

                if (passes_plugin(daemon, message, true, &copy.is_verified)) {
                        int r = inbox_add(&daemon->inbox, queue_of(daemon, &copy), &copy, arrived_ns,
                                          DAEMON_INBOX_MAX);

                        if (r < 0)
                                drop_waiting(daemon, message, r);
                }
                arrivals_drop(&daemon->arrivals);
        }
}

void daemon_receive(struct daemon *daemon, const struct message *message, struct now now) {
        int r;

        if (is_topic(message, COMPANION_BANNER)) {
                broker_receive_banner(daemon, message);
                return;
        }
        if (is_topic(message, COMPANION_WELCOME)) {
                broker_receive_welcome(daemon, message, now);
                return;
        }
        if (is_topic(message, COMPANION_TAKEOVER)) {
                broker_receive_takeover(daemon);
                return;
        }
        broker_wait_on(daemon, now);
        if (daemon->side == BROKER_SIDE_UNKNOWN)
                r = arrivals_add(&daemon->arrivals, message, now.mono_ns,
                                 DAEMON_INBOX_MAX - daemon->inbox.n_bytes);
        else
                r = admit(daemon, message, now);
        if (r < 0)
                drop_waiting(daemon, message, r);
}

void daemon_dropped(struct daemon *daemon) {
        publisher_lost(&daemon->publisher);
}

/* The commit has ended: the batch is safe, or has not been. */
static void settle(struct daemon *daemon, int result, struct now now) {
        daemon->n_done++;
        daemon->is_storing = false;
        daemon->batch.is_stored = true;
        if (result == 0) {
                batch_count(&daemon->batch, &daemon->counters);
                return;
        }

        daemon->is_storage_failing = true;
        daemon->counters.n_failed_commits++;

        log_limited(&daemon->storage_limit, LOG_ERROR,
                    "%zu changes could not be stored and are taken back: %s", daemon->batch.effects.n_rows,
                    strerror(-result));
        if (engine_undo(daemon->engine, &daemon->batch.effects) < 0 || result == -ESTALE) {
                daemon->is_lost = true;
                daemon->callbacks.lost(daemon->callbacks.userdata);
        }
        effects_fail(&daemon->batch.effects, result == -ENOSPC ? OUTCOME_DISK_FULL : OUTCOME_STORAGE_FAILED);
        batch_count(&daemon->batch, &daemon->counters);
        daemon->tick_from_ns = now.mono_ns + RETRY_AFTER_NS;
}

static void note_commit(struct daemon *daemon) {
        daemon->is_storage_failing = false;
        daemon->stored_clock = daemon->stored.clock;
}

/*
 * Whether a reply carries a version that the stored clock does not cover. KEYNOTIFY answers with the present HLC and
 * may change no row. If that version were sent before a commit, the HLC could go back below it after a crash.
 */
static bool has_uncovered_version(const struct daemon *daemon) {
        const struct effects *effects = &daemon->batch.effects;

        for (size_t i = 0; i < effects->n_replies; i++)
                if (effects->replies[i].has_version &&
                    version_compare(effects->replies[i].version, daemon->stored_clock) > 0)
                        return true;
        return false;
}

static void settle_positions(struct daemon *daemon) {
        if (daemon->n_acknowledged >= daemon->candidate_n_sent)
                daemon->settled = daemon->candidate;
}

/* All answers are published: once the broker has acknowledged them, it delivers none of their requests again. */
static void take_positions(struct daemon *daemon) {
        settle_positions(daemon);
        if (daemon->n_acknowledged < daemon->candidate_n_sent || !inbox_is_empty(&daemon->inbox) ||
            daemon->arrivals.first)
                return;

        daemon->candidate = daemon->positions;
        daemon->candidate_n_sent = daemon->publisher.n_sent;
}

/* False: it is not known yet. */
static bool store(struct daemon *daemon, struct now now) {
        const struct effects *effects = &daemon->batch.effects;
        int r = 0;

        settle_positions(daemon);
        if (effects->n_rows > 0 || daemon->is_commit_due || has_uncovered_version(daemon)) {
                daemon->is_commit_due = false;
                daemon->stored = (struct storage_batch){
                        .node_id = engine_config(daemon->engine)->node_id,
                        .rows = effects->rows,
                        .n_rows = effects->n_rows,
                        .clock = engine_stats(daemon->engine).clock,
                        .n_departures = engine_stats(daemon->engine).n_departures,
                        .persistence = daemon_persistence(daemon),
                        .positions = daemon->settled,
                        .now = now,
                };
                daemon->commit_from_ns = now.mono_ns;
                r = daemon->outlet.commit(daemon->outlet.userdata, &daemon->stored);
                if (r == 0)
                        note_commit(daemon);
        }
        if (r > 0) {
                daemon->is_storing = true;
                return false;
        }
        settle(daemon, r, now);
        return true;
}

/* Executes a slice of what waits. The rest follows after what arrives meanwhile: see daemon_next_deadline(). */
static void execute_waiting(struct daemon *daemon, struct now now) {
        if (inbox_is_empty(&daemon->inbox))
                return; /* the slice of what is executed at once goes on */

        daemon->slice_work_ns = 0;
        if (daemon->outlet.clock_ns) /* publishing has taken its time */
                daemon->turn_from_ns = daemon->outlet.clock_ns(daemon->outlet.userdata);
        while (!inbox_is_empty(&daemon->inbox) && !is_slice_over(daemon)) {
                int64_t arrived_ns;
                const struct message *message = inbox_first(&daemon->inbox, &arrived_ns);
                bool is_last = is_control(daemon, message); /* it may change what time it is */

                if (!has_turn(daemon, message))
                        return;
                execute(daemon, message, arrived_ns, now);
                inbox_drop(&daemon->inbox);
                if (is_last)
                        return;
        }
}

void daemon_end_wakeup(struct daemon *daemon) {
        daemon->slice_work_ns = 0;
}

/* What else may be due waits for a batch that is not open: one that is not empty, or whose commit's end flushes. */
bool daemon_has_work(const struct daemon *daemon) {
        return !batch_is_empty(&daemon->batch) || !inbox_is_empty(&daemon->inbox) || daemon->is_commit_due;
}

void daemon_flush(struct daemon *daemon, struct now now) {
        bool has_executed = false;

        if (daemon->turn_from_ns < now.mono_ns)
                daemon->turn_from_ns = now.mono_ns;
        do {
                if (daemon->is_storing || (!daemon->batch.is_stored && !store(daemon, now)))
                        return;
                daemon->is_publishing = !batch_publish(&daemon->batch, &daemon->publisher, now);
                daemon_charge(daemon);
                if (daemon->is_publishing)
                        return;
                daemon->n_batch_bytes = 0;

                take_positions(daemon);
                daemon_apply_policy(daemon, now);
                broker_greet(daemon, now);
                if (!has_executed)
                        execute_waiting(daemon, now);
                has_executed = true;
        } while (!batch_is_empty(&daemon->batch));
}

void daemon_commit(struct daemon *daemon, struct now now) {
        if (!daemon_is_open(daemon) || daemon->welcome_until_ns != INT64_MAX)
                return;

        daemon->is_commit_due = true;
        daemon_flush(daemon, now);
}

static void count_commit(struct daemon *daemon, struct now now) {
        struct counters *counters = &daemon->counters;

        counters->n_commits++;
        counters->n_rows += daemon->stored.n_rows;
        daemon->last_commit_ns = now.mono_ns - daemon->commit_from_ns;
        histogram_add(&counters->latencies[STAGE_COMMIT], daemon->last_commit_ns);
}

void daemon_committed(struct daemon *daemon, int result, struct now now) {
        if (result == 0) {
                note_commit(daemon);
                count_commit(daemon, now);
        }
        settle(daemon, result, now);
        daemon_flush(daemon, now);
}

/* 2. Time */

/* While nobody can ask or be told keys may stay: what they are notified by depends on the broker's side. */
static bool can_tick(const struct daemon *daemon) {
        return daemon->side != BROKER_SIDE_UNKNOWN && daemon_is_open(daemon);
}

void daemon_tick(struct daemon *daemon, struct now now) {
        struct event tick = { .type = EVENT_TICK };

        if (now.mono_ns >= daemon->welcome_until_ns)
                broker_give_up_welcome(daemon, now);
        if (daemon->publisher.hooks)
                daemon->publisher.hooks->tick(daemon->publisher.hooks->userdata, now);
        if (can_tick(daemon) && now.mono_ns >= daemon->tick_from_ns && daemon_step(daemon, &tick, now) < 0)
                daemon->tick_from_ns = now.mono_ns + RETRY_AFTER_NS;
        daemon_flush(daemon, now);
}

int64_t daemon_next_deadline(const struct daemon *daemon) {
        int64_t engine = can_tick(daemon) ? engine_next_deadline(daemon->engine) : INT64_MAX;

        int64_t hooks = INT64_MAX;

        if (engine < daemon->tick_from_ns)
                engine = daemon->tick_from_ns;
        if (daemon->publisher.hooks)
                hooks = daemon->publisher.hooks->next_deadline(daemon->publisher.hooks->userdata);
        if (hooks < engine)
                engine = hooks;
        if (!inbox_is_empty(&daemon->inbox) && can_execute(daemon))
                return 0;
        return engine < daemon->welcome_until_ns ? engine : daemon->welcome_until_ns;
}

bool daemon_is_idle(const struct daemon *daemon) {
        return inbox_is_empty(&daemon->inbox) && !daemon->arrivals.first && daemon_is_open(daemon);
}

size_t daemon_n_waiting_bytes(const struct daemon *daemon) {
        return daemon->inbox.n_bytes + daemon->arrivals.n_bytes;
}

bool daemon_is_commit_stalled(const struct daemon *daemon, struct now now) {
        return daemon->is_storing && now.mono_ns - daemon->commit_from_ns > COMMIT_STALLED_NS;
}

bool daemon_is_storage_failing(const struct daemon *daemon) {
        return daemon->is_storage_failing;
}

void daemon_read_gauges(const struct daemon *daemon, int64_t wall_ms, struct gauges *ret_gauges) {
        const struct engine *engine = daemon->engine;
        int64_t ahead_ms = engine_stats(engine).clock.wall_ms - wall_ms;

        *ret_gauges = (struct gauges){
                .n_keys = engine_stats(engine).n_keys,
                .n_bytes = engine_stats(engine).n_bytes,
                .n_registrations = engine_stats(engine).n_registrations,
                .n_remembered_answers = engine_stats(engine).n_remembered,
                .n_answers_dropped_early = engine_stats(engine).n_dropped_early,
                .n_waiting_bytes = daemon_n_waiting_bytes(daemon),
                .max_keys = engine_config(engine)->max_keys,
                .max_bytes = engine_config(engine)->max_bytes,
                .max_registrations = engine_config(engine)->max_registrations,
                .max_waiting_bytes = DAEMON_INBOX_MAX,
                .clock_ahead_ms = ahead_ms > 0 ? (uint64_t)ahead_ms : 0,
                .side = daemon->side,
                .is_connected = daemon->is_connected,
                .is_guarded = daemon->side == BROKER_SIDE_PROVEN && daemon->is_guarded,
                .is_storage_failing = daemon->is_storage_failing,
        };
}

const struct counters *daemon_counters(const struct daemon *daemon) {
        return &daemon->counters;
}

void daemon_set_hooks(struct daemon *daemon, const struct hooks *hooks) {
        daemon->publisher.hooks = hooks;
}

void daemon_set_limits(struct daemon *daemon, const struct engine_config *config) {
        engine_set_limits(daemon->engine, config);
}

void daemon_set_max_packet(struct daemon *daemon, uint64_t n_bytes) {
        if (set_max_packet(daemon, n_bytes) < 0) /* what does not fit is dropped where it is published */
                publisher_lost(&daemon->publisher);
}
