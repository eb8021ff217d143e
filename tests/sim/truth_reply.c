/* SPDX-License-Identifier: Apache-2.0 */

/* Checks that a reply is possible, given the changes before the request was sent and after it. */

#include <stdio.h>

#include "base/assert.h"
#include "codec/encoder.h"
#include "protocol/resp3.h"
#include "sim/check.h"
#include "sim/truth.h"

static bool is_version(struct version a, struct version b) {
        return a.wall_ms == b.wall_ms && a.counter == b.counter;
}

static bool is_later(struct version a, struct version b) {
        return version_compare(a, b) > 0;
}

/* The last change of the key before the request was sent, or NONE. */
static size_t last_before(const struct truth *truth, const struct sim_request *request, size_t key) {
        for (size_t i = request->n_changes_before; i-- > 0;)
                if (truth->changes[i].key == key)
                        return i;
        return NONE;
}

/* The change that gave the key this version, or NONE. */
static size_t find_set(const struct truth *truth, size_t key, struct version version) {
        for (size_t i = 0; i < truth->n_changes; i++)
                if (truth->changes[i].key == key && truth->changes[i].is_set &&
                    is_version(truth->changes[i].version, version))
                        return i;
        return NONE;
}

static size_t find_deletion(const struct truth *truth, size_t key, struct version version) {
        for (size_t i = 0; i < truth->n_changes; i++)
                if (truth->changes[i].key == key && !truth->changes[i].is_set &&
                    is_version(truth->changes[i].version, version))
                        return i;
        return NONE;
}

/*
 * Check a value in a reply: it was stored, and is not older than the value when the request was
 * sent.
 */
static const struct truth_change *check_visible_value(const struct truth *truth,
                                                      const struct sim_request *request) {
        size_t seen = find_set(truth, request->key, request->version),
               before = last_before(truth, request, request->key);

        CHECK(seen != NONE, "a reply shows only values that are committed");
        CHECK(before == NONE || seen >= before, "no acknowledged write is lost");
        CHECK(truth->changes[seen].deadline_ns > request->delivered_ns, "no expired key is visible");
        return &truth->changes[seen];
}

/* Whether the key did not exist at some time since the request was sent. */
static bool was_absent(const struct truth *truth, const struct sim_request *request, size_t key,
                       int64_t now_ns) {
        size_t before = last_before(truth, request, key);

        if (before == NONE)
                return true;
        for (size_t i = before; i < truth->n_changes; i++)
                if (truth->changes[i].key == key &&
                    (!truth->changes[i].is_set || truth->changes[i].deadline_ns <= now_ns))
                        return true;
        return false;
}

/* Whether the key existed at some time since the pipeline received the request. */
static bool was_present(const struct truth *truth, const struct sim_request *request, size_t key) {
        size_t before = last_before(truth, request, key);

        for (size_t i = before == NONE ? 0 : before; i < truth->n_changes; i++)
                if (truth->changes[i].key == key && truth->changes[i].is_set &&
                    truth->changes[i].deadline_ns > request->delivered_ns)
                        return true;
        return false;
}

/* A client that has the reply knows that the watchers of its change were notified. */
static void check_notified_before(const struct truth *truth, size_t change) {
        for (size_t i = 0; i < truth->n_expected_notifications; i++)
                CHECK(truth->expected_notifications[i].change != change ||
                              truth->expected_notifications[i].attempt > 0,
                      "the notifications of a change are published before its reply");
}

static void check_done(const struct truth *truth, const struct sim_request *request) {
        size_t set;

        CHECK(is_later(request->version, request->version_before), "versions only grow");
        if (request->verb != VERB_SET)
                return;
        set = find_set(truth, request->key, request->version);
        CHECK(set != NONE && truth->changes[set].request == request,
              "the reply to a write follows its commit and has its version");
        check_notified_before(truth, set);
}

static void check_deleted(const struct truth *truth, struct sim_request *request) {
        size_t deletion = find_deletion(truth, request->key, request->version);
        struct truth_change *change;

        CHECK(deletion != NONE, "the reply to a deletion follows its commit");
        change = &truth->changes[deletion];
        CHECK(!change->deleted_by || change->deleted_by == request, "a value is deleted by one request");
        CHECK(request->deleted == NONE || request->deleted == deletion, "a deletion is executed once");
        if (request->verb == VERB_VDEL)
                CHECK(strcmp(change->request->value, request->expected) == 0,
                      "a request whose condition is not met changes nothing");
        if (change->request->has_fence)
                CHECK(request->has_fence && hlc_compare(request->fence, change->request->fence) >= 0,
                      "no stale token is accepted");
        check_notified_before(truth, deletion);
        change->deleted_by = request;
        request->deleted = deletion;
}

/* The reply says that the token is missing or too old: the key must have had a newer one. */
static void check_fenced(const struct truth *truth, const struct sim_request *request) {
        size_t before = last_before(truth, request, request->key);

        for (size_t i = before == NONE ? 0 : before; i < truth->n_changes; i++) {
                const struct truth_change *change = &truth->changes[i];

                if (change->key == request->key && change->is_set && change->request->has_fence &&
                    (!request->has_fence || hlc_compare(request->fence, change->request->fence) < 0))
                        return;
        }
        CHECK(false, "a request is refused for its token only if the key has a newer one");
}

struct truth_page truth_read_page(struct slice payload) {
        struct truth_page page = { 0 };
        struct resp3_item outer, inner, item;

        CHECK(resp3_read(&payload, &outer) == 0 && outer.type == RESP3_ARRAY &&
                      resp3_read(&payload, &inner) == 0 && inner.type == RESP3_ARRAY,
              "a page is an array whose first element is an array");
        for (int64_t i = 0; i < inner.number; i++) {
                CHECK(resp3_read(&payload, &item) == 0 && item.type == RESP3_BLOB, "a page lists keys");
                page.n_listed[truth_key_number(item.text)]++;
        }
        if (outer.number == 2) {
                CHECK(resp3_read(&payload, &item) == 0 && item.text.length == SCAN_TOKEN_LENGTH,
                      "every page but the last one ends with a token");
                page.token = item.text;
        }
        CHECK(payload.length == 0, "a page has no trailing bytes");
        return page;
}

static void check_page(const struct truth *truth, const struct sim_request *request, int64_t now_ns) {
        const struct sim_request *first = request->first_page;
        struct truth_page page = truth_read_page(slice_from_string(request->reply));
        bool may_read_nothing =
                truth_was_granted(truth, request->client, VERB_SCAN, false, first->sent_ns, now_ns);

        for (size_t key = 0; key < N_KEYS; key++) {
                CHECK(page.n_listed[key] + request->is_listed[key] <= 1, "a scan lists no key twice");
                CHECK(page.n_listed[key] == 0 || was_present(truth, request, key),
                      "a scan lists only keys that exist");
                CHECK(page.token.data || page.n_listed[key] > 0 || request->is_listed[key] ||
                              may_read_nothing || was_absent(truth, first, key, now_ns),
                      "a scan lists each key that exists throughout");
        }
}

/* Return whether the policy may have denied the request at some time since it was sent. */
static bool was_denied(const struct truth *truth, const struct sim_request *request, int64_t now_ns) {
        return truth_was_granted(truth, request->client, request->verb, false, request->sent_ns, now_ns);
}

static bool is_payload(enum outcome outcome, struct slice payload) {
        struct encoder encoder = { .node_id = SLICE_LITERAL("StateStore") };
        const struct reply reply = { .result = { .outcome = outcome } };
        struct message message;

        switch (outcomes[outcome].built_from) {
        case PAYLOAD_CONSTANT:
                ASSERT(encoder_reply(&encoder, &reply, &message) == 0);
                return slice_equal(message.payload, payload);
        case PAYLOAD_ENTRY:
                return slice_starts_with(payload, SLICE_LITERAL("$")) &&
                       !slice_starts_with(payload, SLICE_LITERAL("$-"));
        case PAYLOAD_PAGE:
                return slice_starts_with(payload, SLICE_LITERAL("*"));
        }
        return false;
}

enum outcome truth_outcome(const struct sim_request *request, struct slice payload) {
        for (enum outcome outcome = 0; outcome < N_OUTCOMES; outcome++)
                if (outcome_is_possible(request->verb, outcome) && is_payload(outcome, payload))
                        return outcome;
        CHECK(false, "a reply has an outcome that its command can have");
        return OUTCOME_DONE;
}

/* The value in a reply is one that a request has set. */
static void check_value(const struct truth *truth, const struct sim_request *request) {
        const struct truth_change *seen = check_visible_value(truth, request);
        char expected[48];

        snprintf(expected, sizeof(expected), "$%zu\r\n%s\r\n", strlen(seen->request->value),
                 seen->request->value);
        CHECK(strcmp(request->reply, expected) == 0, "a version has one value");
}

static void check_condition(const struct truth *truth, const struct sim_request *request) {
        const struct truth_change *seen = check_visible_value(truth, request);

        CHECK(request->condition == SET_IF_ABSENT || strcmp(seen->request->value, request->expected) != 0,
              "a condition that is met is not refused");
}

static bool has_version(enum outcome outcome) {
        return outcome == OUTCOME_DONE || outcome == OUTCOME_VALUE || outcome == OUTCOME_DELETED ||
               outcome == OUTCOME_CONDITION_NOT_MET;
}

static void check_reply(const struct truth *truth, struct sim_request *request, int64_t now_ns) {
        switch (request->outcome) {
        case OUTCOME_DONE:
                check_done(truth, request);
                break;
        case OUTCOME_VALUE:
                check_value(truth, request);
                break;
        case OUTCOME_DELETED:
                check_deleted(truth, request);
                break;
        case OUTCOME_CONDITION_NOT_MET:
                check_condition(truth, request);
                break;
        case OUTCOME_NO_VALUE:
        case OUTCOME_NOTHING:
                if (request->verb != VERB_KEYNOTIFY)
                        CHECK(was_absent(truth, request, request->key, now_ns),
                              "no acknowledged write is lost, and no key expires early");
                break;
        case OUTCOME_PAGE:
                check_page(truth, request, now_ns);
                break;
        case OUTCOME_NOT_AUTHORIZED:
                CHECK(was_denied(truth, request, now_ns), "a request that the policy grants is not refused");
                request->is_failed = true;
                break;
        case OUTCOME_DISK_FULL:
        case OUTCOME_STORAGE_FAILED:
                CHECK(truth->commits_may_fail, "no commit fails while the disk works");
                request->is_failed = true;
                break;
        case OUTCOME_FENCE_REQUIRED:
        case OUTCOME_FENCE_TOO_OLD:
                check_fenced(truth, request);
                break;
        case OUTCOME_TIMESTAMP_TOO_FAR:
        case OUTCOME_FENCE_TOO_FAR:
                CHECK(truth->is_stepped, "no request fails");
                /* the engine does not remember this reply to a request that the policy denies */
                request->is_failed = was_denied(truth, request, now_ns);
                break;
        case OUTCOME_VERSION_CHANGED: /* only clients inside the process can get it */
        case OUTCOME_SYNTAX_ERROR:
        case OUTCOME_UNKNOWN_COMMAND:
        case OUTCOME_WRONG_NUMBER_OF_ARGUMENTS:
        case OUTCOME_EMPTY_KEY:
        case OUTCOME_MISSING_TIMESTAMP:
        case OUTCOME_MALFORMED_TIMESTAMP:
        case OUTCOME_CLIENT_UNKNOWN:
        case OUTCOME_KEY_TOO_LONG_TO_NOTIFY:
        case OUTCOME_QUOTA_EXCEEDED:
        case OUTCOME_VALUE_TOO_LARGE:
        case OUTCOME_REPLY_TOO_LARGE:
        case OUTCOME_OUT_OF_MEMORY:
        case N_OUTCOMES:
                CHECK(false, "no request fails");
        }
}

/*
 * Every copy of a write gets the first reply, unless that reply was a failed commit. A request that
 * only its number identifies is executed again after an error.
 */
static void check_same(const struct sim_request *before, const struct sim_request *request) {
        bool is_write = verbs[request->verb].access == ACCESS_WRITE;
        bool may_differ = before->is_failed || (before->is_single && outcome_is_error(before->outcome));

        if (before->has_reply && !may_differ && !request->is_failed && is_write)
                CHECK(strcmp(before->reply, request->reply) == 0 &&
                              is_version(before->version, request->version),
                      "copies of a request get the same reply");
}

void truth_reply(struct truth *truth, const struct message *reply, struct now now) {
        struct sim_request *request = truth_find(truth, reply->correlation_data);
        struct slice timestamp = message_property(reply, "__ts");
        struct sim_request before = *request;
        struct hlc hlc = { 0 };

        ASSERT(reply->payload.length < sizeof(request->reply));
        if (timestamp.data)
                ASSERT(hlc_parse(timestamp, &hlc) == 0);
        CHECK(request->delivered_ns <= now.mono_ns, "every reply belongs to a request");
        CHECK(!reply->has_expiry || reply->expiry_s > 0, "no reply is published after its expiry");

        snprintf(request->reply, sizeof(request->reply), "%.*s", (int)reply->payload.length,
                 (const char *)reply->payload.data);
        request->version = (struct version){ hlc.wall_ms, (uint32_t)hlc.counter };
        request->outcome = truth_outcome(request, reply->payload);
        request->is_failed = false;
        request->has_reply = true;
        CHECK(has_version(request->outcome) == (timestamp.data != NULL),
              "a reply has a version if its outcome has one");
        CHECK(outcome_is_error(request->outcome) || truth_was_granted(truth, request->client, request->verb,
                                                                      true, request->sent_ns, now.mono_ns),
              "no request is executed that the policy does not grant");
        check_reply(truth, request, now.mono_ns);
        check_same(&before, request);
        if (before.has_reply && !before.is_failed && request->is_failed)
                *request = before; /* keep the first reply: only the commit of a later copy has failed */
        if (is_later(request->version, truth->highest_replied))
                truth->highest_replied = request->version;
}

/* The change that the request has made with this version, or NONE. */
static size_t own_change(const struct truth *truth, const struct sim_request *request,
                         struct version version) {
        size_t set = find_set(truth, request->key, version);
        size_t deletion = find_deletion(truth, request->key, version);

        if (set != NONE && truth->changes[set].request == request)
                return set;
        return deletion != NONE && truth->changes[deletion].deleted_by == request ? deletion : NONE;
}

void truth_receive_reply(const struct truth *truth, const struct message *reply,
                         const uint64_t *connections) {
        const struct sim_request *request = truth_find(truth, reply->correlation_data);
        struct slice timestamp = message_property(reply, "__ts");
        struct hlc hlc = { 0 };
        size_t change;

        if (!timestamp.data)
                return;
        ASSERT(hlc_parse(timestamp, &hlc) == 0);
        change = own_change(truth, request, (struct version){ hlc.wall_ms, (uint32_t)hlc.counter });
        CHECK(change == NONE || truth_is_notified(truth, change, connections),
              "the notifications of a change reach the clients before its reply");
}
