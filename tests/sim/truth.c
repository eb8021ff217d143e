/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/truth.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/base16.h"
#include "base/cleanup.h"
#include "base/time_units.h"
#include "engine/engine.h"
#include "sim/check.h"

/* See timescale_resume(). */
#define DEADLINE_ROUNDING_NS (4 * NS_PER_MS)

static const char *const keys[N_KEYS] = { "k0", "k1", "k2", "k3", "lock" };
static const char *const clients[N_CLIENTS] = { "c0", "c1", "c2", "c3", "c4" };

struct slice truth_key(size_t key) {
        return slice_from_string(keys[key]);
}

const char *truth_client(size_t client) {
        return clients[client];
}

static size_t find_name(const char *const *names, size_t n_names, struct slice name) {
        for (size_t i = 0; i < n_names; i++)
                if (slice_equal(slice_from_string(names[i]), name))
                        return i;
        ASSERT(!"unknown name");
        return 0;
}

size_t truth_key_number(struct slice key) {
        return find_name(keys, N_KEYS, key);
}

void truth_init(struct truth *truth) {
        *truth = (struct truth){ 0 };
        for (size_t i = 0; i < N_KEYS; i++)
                truth->current[i] = NONE;
}

void truth_deinit(struct truth *truth) {
        for (size_t i = 0; i < truth->n_requests; i++)
                free(truth->requests[i]);
        free(truth->requests);
        free(truth->executions);
        free(truth->changes);
        free(truth->expected_notifications);
        free(truth->policies);
        *truth = (struct truth){ 0 };
}

struct sim_request *truth_add_request(struct truth *truth, int64_t now_ns) {
        struct sim_request *request = calloc(1, sizeof(*request));

        ASSERT(request && array_reserve((void **)&truth->requests, &truth->requests_capacity,
                                        truth->n_requests + 1, sizeof(*truth->requests)) == 0);
        request->id = truth->n_requests;
        request->sent_ns = now_ns;
        request->n_changes_before = truth->n_changes;
        request->version_before = truth->highest_replied;
        request->delivered_ns = INT64_MAX;
        request->deleted = NONE;
        truth->requests[truth->n_requests++] = request;
        return request;
}

struct sim_request *truth_find(const struct truth *truth, struct slice correlation) {
        uint64_t id;

        ASSERT(correlation.length > 0 && parse_uint64(correlation, &id) == 0 && id < truth->n_requests);
        return truth->requests[id];
}

/* 1. Commits */

static void expect_notifications(struct truth *truth, size_t change) {
        size_t key = truth->changes[change].key;

        for (size_t i = 0; i < N_CLIENTS; i++) {
                if (!truth->is_registered[i][key])
                        continue;
                ASSERT(array_reserve((void **)&truth->expected_notifications,
                                     &truth->expected_notifications_capacity,
                                     truth->n_expected_notifications + 1,
                                     sizeof(*truth->expected_notifications)) == 0);
                truth->expected_notifications[truth->n_expected_notifications++] =
                        (struct expected_notification){ .client = i,
                                                        .key = key,
                                                        .change = change,
                                                        .connection = truth->connection[i][key] };
        }
}

static void add_change(struct truth *truth, struct truth_change change) {
        ASSERT(array_reserve((void **)&truth->changes, &truth->changes_capacity, truth->n_changes + 1,
                             sizeof(*truth->changes)) == 0);
        truth->changes[truth->n_changes] = change;
        truth->current[change.key] = change.is_set ? truth->n_changes : NONE;
        expect_notifications(truth, truth->n_changes++);
}

/*
 * The token of the request that set the present value (holder) must not be newer than the token of
 * this request.
 */
static void check_token(const struct sim_request *request, const struct sim_request *holder) {
        if (holder && holder->has_fence)
                CHECK(request->has_fence && hlc_compare(request->fence, holder->fence) >= 0,
                      "no stale token is accepted");
}

static void check_set(const struct truth *truth, const struct change *change,
                      const struct sim_request *request, struct now now) {
        size_t current = truth->current[request->key];
        const struct sim_request *holder = current == NONE ? NULL : truth->changes[current].request;
        struct version version = entry_version(change->entry.after);

        CHECK(request->verb == VERB_SET && request->n_set == 0, "a request is executed once");
        CHECK(version_compare(version, truth->last_set) > 0, "versions only grow");
        CHECK(version.wall_ms > request->timestamp.wall_ms ||
                      (version.wall_ms == request->timestamp.wall_ms &&
                       version.counter > request->timestamp.counter),
              "a version is greater than its request's timestamp");
        if (holder && request->condition != SET_ALWAYS)
                CHECK(request->condition == SET_IF_ABSENT_OR_EQUAL &&
                              strcmp(holder->value, request->expected) == 0,
                      "a request whose condition is not met changes nothing");
        check_token(request, holder);

        if (request->has_px)
                CHECK(change->entry.after_deadline_ns >= request->sent_ns + request->px_ms * 1000000 &&
                              change->entry.after_deadline_ns <= now.mono_ns + request->px_ms * 1000000,
                      "a deadline is the requested one");
        else
                CHECK(change->entry.after_deadline_ns == DEADLINE_NEVER, "without PX there is no deadline");
}

void truth_execute(struct truth *truth, struct sim_request *request, size_t n_changes) {
        if (n_changes == 0) /* perhaps a new batch; no former request of this one has a change */
                truth->n_executions = 0;
        ASSERT(array_reserve((void **)&truth->executions, &truth->executions_capacity,
                             truth->n_executions + 1, sizeof(*truth->executions)) == 0);
        truth->executions[truth->n_executions++] = (struct truth_execution){ request, n_changes };
}

/* Return the request whose execution added the change with this number. */
static struct sim_request *executed_in(const struct truth *truth, size_t change_number) {
        for (size_t i = truth->n_executions; i-- > 0;)
                if (truth->executions[i].n_batch_changes_before <= change_number)
                        return truth->executions[i].request;
        CHECK(false, "every change of a value belongs to a request");
        return NULL;
}

static void commit_entry(struct truth *truth, const struct change *change, size_t change_number,
                         struct now now) {
        struct entry *entry = change->entry.after ? change->entry.after : change->entry.before;
        struct truth_change made = {
                .key = truth_key_number(entry_key(entry)),
                .version = entry_version(entry),
                .is_set = change->entry.after,
                .at_ns = now.mono_ns,
        };
        size_t current = truth->current[made.key];

        if (made.is_set) {
                made.request = executed_in(truth, change_number);
                CHECK(made.request->key == made.key &&
                              slice_equal_string(entry_value(entry), made.request->value),
                      "a request sets its own key to its own value");
                made.deadline_ns = change->entry.after_deadline_ns;
                check_set(truth, change, made.request, now);
                made.request->n_set++;
                truth->last_set = made.version;
        } else {
                CHECK(current != NONE && version_compare(truth->changes[current].version, made.version) == 0,
                      "a deletion removes the stored value");
                made.request = truth->changes[current].request;
                made.is_expiry = truth->changes[current].deadline_ns <= now.mono_ns;
                CHECK(change->entry.before_deadline_ns == truth->changes[current].deadline_ns,
                      "a deadline stays as it was");
        }
        add_change(truth, made);
}

static void set_registered(struct truth *truth, const struct registration *registration,
                           bool is_registered) {
        size_t client_number = find_name(clients, N_CLIENTS, registration->client_id);
        size_t key_number = truth_key_number(registration->key_name);

        truth->is_registered[client_number][key_number] = is_registered;
        truth->connection[client_number][key_number] = registration->connection;
}

/* Whether no earlier change of the batch is of the same registration. */
static bool is_first_change(const struct effects *effects, size_t at) {
        const struct registration *registration = effects->changes[at].registration.registration;

        for (size_t i = 0; i < at; i++) {
                const struct change *change = &effects->changes[i];

                if (change->type == CHANGE_REGISTRATION &&
                    slice_equal(change->registration.registration->client_id, registration->client_id) &&
                    slice_equal(change->registration.registration->key_name, registration->key_name))
                        return false;
        }
        return true;
}

void truth_refuse(struct truth *truth, const struct effects *effects) {
        for (size_t i = 0; i < effects->n_changes; i++) {
                const struct change *change = &effects->changes[i];

                if (change->type == CHANGE_REGISTRATION && !change->registration.is_added &&
                    !change->registration.is_stopped && is_first_change(effects, i))
                        set_registered(truth, change->registration.registration, false);
        }
}

void truth_commit(struct truth *truth, const struct effects *effects, struct now now) {
        for (size_t i = 0; i < effects->n_changes; i++) {
                const struct change *change = &effects->changes[i];

                if (change->type == CHANGE_ENTRY)
                        commit_entry(truth, change, i, now);
                if (change->type == CHANGE_REGISTRATION)
                        set_registered(truth, change->registration.registration,
                                       change->registration.is_added);
        }
}

/* A restart rounds deadlines up. */
static void restart_deadline(struct truth *truth, const struct engine *engine, size_t key) {
        struct entry *entry = engine_find_entry(engine, truth_key(key));
        struct truth_change *change;
        int64_t deadline_ns;

        if (!entry || truth->current[key] == NONE)
                return; /* a read finds the difference */

        change = &truth->changes[truth->current[key]];
        deadline_ns = keyspace_deadline(engine_keyspace(engine), entry);
        CHECK(deadline_ns >= change->deadline_ns &&
                      deadline_ns - change->deadline_ns <= DEADLINE_ROUNDING_NS,
              "a restart does not change a deadline by more than it is rounded");
        change->deadline_ns = deadline_ns;
}

void truth_restart(struct truth *truth, const struct engine *engine) {
        struct registration_cursor cursor = { 0 };
        const struct registration *registration;

        truth_begin_attempt(truth);
        memset(truth->is_registered, 0, sizeof(truth->is_registered));
        while ((registration = registrations_each(engine_registrations(engine), &cursor)))
                set_registered(truth, registration, true);
        for (size_t i = 0; i < N_KEYS; i++)
                restart_deadline(truth, engine, i);
}

/* 2. Notifications; replies are in truth_reply.c */

/* The content of a notification. */
struct notified_change {
        size_t client, key;
        struct hlc hlc;
        bool is_set;
};

static struct notified_change notified_change_of(const struct message *notification) {
        CLEANUP(buf_deinit) struct buf client_id = { 0 }, key_name = { 0 };
        struct notified_change notified = { .is_set = slice_starts_with(notification->payload,
                                                                        SLICE_LITERAL("*4")) };
        struct slice topic = notification->topic, client, key, rest;

        for (int level = 0; level < 4; level++) /* clients/statestore/v1/... */
                slice_split(topic, '/', &topic);
        client = slice_split(topic, '/', &rest);
        slice_split(rest, '/', &rest);
        slice_split(rest, '/', &key);
        ASSERT(base16_append_decoded(&client_id, client) == 0 && base16_append_decoded(&key_name, key) == 0);
        notified.client = find_name(clients, N_CLIENTS, buf_slice(&client_id));
        notified.key = truth_key_number(buf_slice(&key_name));
        ASSERT(hlc_parse(message_property(notification, "__ts"), &notified.hlc) == 0);
        return notified;
}

static bool is_of(const struct notified_change *notified, const struct truth_change *change) {
        return notified->hlc.wall_ms == change->version.wall_ms &&
               notified->hlc.counter == change->version.counter && notified->is_set == change->is_set;
}

void truth_begin_attempt(struct truth *truth) {
        truth->attempt++;
        memset(truth->n_published, 0, sizeof(truth->n_published));
}

void truth_end_registrations(struct truth *truth) {
        for (size_t i = 0; i < truth->n_expected_notifications; i++)
                if (!truth->expected_notifications[i].is_received)
                        truth->expected_notifications[i].connection = UINT64_MAX;
}

static struct expected_notification *find_expected(struct truth *truth,
                                                   const struct notified_change *notified) {
        for (size_t i = 0; i < truth->n_expected_notifications; i++) {
                struct expected_notification *expected = &truth->expected_notifications[i];

                if (expected->client == notified->client && expected->key == notified->key &&
                    is_of(notified, &truth->changes[expected->change]))
                        return expected;
        }
        CHECK(false, "a notification is published after its commit, and only to registered clients");
        return NULL;
}

/* An earlier notification of the client must not be skipped. */
static void check_none_skipped(const struct truth *truth, const struct expected_notification *expected) {
        for (const struct expected_notification *earlier = truth->expected_notifications; earlier < expected;
             earlier++)
                CHECK(earlier->client != expected->client || earlier->attempt > 0,
                      "notifications are in the order of the changes");
}

void truth_notify(struct truth *truth, const struct message *notification) {
        struct notified_change notified = notified_change_of(notification);
        struct expected_notification *expected = find_expected(truth, &notified);
        int64_t at_ns = truth->changes[expected->change].at_ns;

        CHECK(expected->attempt < truth->attempt, "a notification is published once");
        CHECK(expected->change >= truth->n_published[notified.client],
              "notifications are published in the order of the changes");
        check_none_skipped(truth, expected);
        CHECK(truth_was_granted(truth, notified.client, VERB_GET, true, at_ns, at_ns),
              "no client is notified of a key that it may not read");
        expected->attempt = truth->attempt;
        truth->n_published[notified.client] = expected->change + 1;
}

void truth_receive(struct truth *truth, const struct message *notification) {
        struct notified_change notified = notified_change_of(notification);
        struct expected_notification *expected = find_expected(truth, &notified);

        CHECK(expected->attempt > 0, "clients get only notifications that the pipeline published");
        CHECK(!expected->is_received, "no client gets a notification twice");
        CHECK(expected->change >= truth->n_received[notified.client],
              "a client gets its notifications in the order of the changes");
        expected->is_received = true;
        truth->n_received[notified.client] = expected->change + 1;
}

/*
 * Check that each deletion has a request: either its reply reports the deletion, or it is one of
 * the DEL and VDEL requests whose result is unknown, because they have no reply or a reply that
 * reports a failed commit.
 */
static void check_deletions(const struct truth *truth, size_t key) {
        size_t n_unreported = 0, n_in_doubt = 0;

        for (size_t i = 0; i < truth->n_changes; i++) {
                const struct truth_change *change = &truth->changes[i];

                n_unreported +=
                        change->key == key && !change->is_set && !change->is_expiry && !change->deleted_by;
        }
        for (size_t i = 0; i < truth->n_requests; i++) {
                const struct sim_request *request = truth->requests[i];

                n_in_doubt += request->key == key &&
                              (request->verb == VERB_DEL || request->verb == VERB_VDEL) &&
                              (!request->has_reply || request->is_failed);
        }
        CHECK(n_unreported <= n_in_doubt, "a deletion is executed once");
}

bool truth_is_notified(const struct truth *truth, size_t change, const uint64_t *connections) {
        for (size_t i = 0; i < truth->n_expected_notifications; i++) {
                const struct expected_notification *expected = &truth->expected_notifications[i];

                if ((change == NONE || expected->change == change) && !expected->is_received &&
                    connections[expected->client] == expected->connection)
                        return false;
        }
        return true;
}

void truth_check_notified(const struct truth *truth, const uint64_t *connections) {
        for (size_t i = 0; i < truth->n_expected_notifications; i++)
                CHECK(truth->expected_notifications[i].attempt > 0, "every registered client is notified");
        CHECK(!connections || truth_is_notified(truth, NONE, connections),
              "every client whose connection is open has received its notifications");
}

void truth_end(const struct truth *truth) {
        for (size_t i = 0; i < N_KEYS; i++)
                check_deletions(truth, i);
        for (size_t i = 0; i < truth->n_requests; i++) {
                const struct sim_request *request = truth->requests[i];

                CHECK(request->is_settled, "every request has its reply in the end");
                CHECK(!request->is_refused || !request->is_single ||
                              (!request->has_reply && request->n_set == 0),
                      "a request that the plugin has refused is not executed");
        }
}
