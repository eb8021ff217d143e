/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For each verb of VERBS: execute a request, store the result, load it, repeat the request, and
 * compare the replies. A new verb is tested without a change here, if a request with the key "k" and
 * further arguments "1" succeeds for a key that has the value "1".
 */

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "state/state.h"
#include "storage/sqlite/sqlite.h"
#include "storage/stored_form.h"
#include "support/limits.h"
#include "support/result.h"

#define S SLICE_LITERAL

/* A store, in the order of a batch: receive(), commit(). */
struct verb_store {
        char directory[64];
        struct storage *storage;
        struct state *state;
        struct effects effects;
        struct reply reply;
        struct buf encoded; /* see reply_append() */
};

static const struct now now = { .wall_ms = INT64_C(1696374425000), .mono_ns = NS_PER_S };

static void start(struct verb_store *store) {
        const struct engine_config config = { .node_id = S("StateStore"), .limits = TEST_LIMITS };

        cr_assert_geq(storage_sqlite_open(&store->storage, store->directory), 0);
        cr_assert_eq(storage_load_state(&store->state, store->storage, &config, now), 0);
        cr_assert_eq(storage_lead(store->storage, &store->state->header), 0);
}

static void stop(struct verb_store *store) {
        reply_deinit(&store->reply);
        effects_reset(&store->effects);
        store->state = state_free(store->state);
        store->storage = storage_close(store->storage);
}

static void verb_store_init(struct verb_store *store) {
        *store = (struct verb_store){ .directory = "/tmp/test_storage_verbs-XXXXXX" };
        cr_assert(mkdtemp(store->directory));
        start(store);
}

static void verb_store_deinit(struct verb_store *store) {
        char path[400];
        struct dirent *entry;
        DIR *directory;

        stop(store);
        effects_deinit(&store->effects);
        buf_deinit(&store->encoded);
        directory = opendir(store->directory);
        while ((entry = readdir(directory))) {
                snprintf(path, sizeof(path), "%s/%s", store->directory, entry->d_name);
                unlink(path);
        }
        closedir(directory);
        rmdir(store->directory);
}

/*
 * Execute the request in a batch of its own, and commit it. number: in the frames of the plugin; 0: a
 * request without the plugin, and with a timestamp only if the verb needs it.
 */
static void receive(struct verb_store *store, enum verb verb, uint64_t number) {
        CLEANUP(buf_deinit) struct buf payload = { 0 }, properties = { 0 };
        struct frame_to_store_record record = {
                .kind = FRAME_REQUEST,
                .number = number,
                .connection = 7,
                .client_id = S("c"),
                .request = { .qos = 1, .response_topic = S("replies"), .correlation_data = S("1") },
        };
        struct decoder decoder = { 0 };
        struct invocation invocation;
        struct change_set change_set;

        resp3_append_array(&payload, 1 + verbs[verb].n_arguments_min);
        resp3_append_blob(&payload, verbs[verb].text);
        for (size_t i = 0; i < verbs[verb].n_arguments_min; i++)
                resp3_append_blob(&payload, i == 0 ? S("k") : S("1"));
        if (number > 0 || (verbs[verb].flags & VERB_NEEDS_TIMESTAMP))
                frame_property_append(&properties, S(PROPERTY_TIMESTAMP), S("1696374425000:0:c"));
        record.request.payload = buf_slice(&payload);
        record.request.properties = buf_slice(&properties);
        invocation_decode(&decoder, &record, &invocation);
        cr_assert(invocation_is_accepted(&invocation), "%s", verbs[verb].label);
        cr_assert_eq(invocation.request.verb, verb, "%s", verbs[verb].label);

        effects_reset(&store->effects);
        reply_deinit(&store->reply);
        engine_request(store->state->engine, &invocation.request, &store->reply, now, &store->effects);
        buf_reset(&store->encoded);
        reply_append(&store->encoded, &store->reply);
        cr_assert_eq(state_stage(store->state, &store->effects), 0);
        cr_assert_eq(state_make_change_set(store->state, &store->effects, now, &change_set), 0);
        cr_assert_eq(storage_commit(store->storage, &change_set), 0, "%s", verbs[verb].label);
        state_commit(store->state, &change_set);
}

static void copy_value(const struct verb_store *store, struct buf *copy) {
        struct entry *entry = engine_find_entry(store->state->engine, S("k"));

        buf_reset(copy);
        buf_append_string(copy, entry ? "=" : "none");
        if (entry)
                buf_append_slice(copy, entry_value(entry));
}

/* Expect the reply that the first execution had, and the value that it left. */
static void expect_repeat(struct verb_store *store, enum verb verb, uint64_t number, const char *reply,
                          const char *value) {
        CLEANUP(buf_deinit) struct buf present = { 0 };
        bool is_remembered = verbs[verb].flags & VERB_IS_REMEMBERED;

        receive(store, verb, number);
        copy_value(store, &present);
        cr_expect_str_eq(buf_text(&store->encoded), reply, "%s", verbs[verb].label);
        cr_expect_str_eq(buf_text(&present), value, "%s", verbs[verb].label);
        cr_expect_eq(store->reply.execution == EXECUTION_REPEATED, is_remembered, "%s", verbs[verb].label);
        cr_expect_eq(store->effects.n_watched_changes, 0, "%s", verbs[verb].label);
}

static void check_verb(enum verb verb) {
        CLEANUP(buf_deinit) struct buf reply = { 0 }, value = { 0 };
        struct verb_store store;
        enum outcome outcome;

        verb_store_init(&store);
        receive(&store, VERB_SET, 1);
        if (verb != VERB_SET)
                receive(&store, verb, 2);
        outcome = store.reply.result.outcome;
        cr_expect_not(outcome_is_error(outcome), "%s: %s", verbs[verb].label, outcome_name(outcome));
        cr_expect(outcome_is_possible(verb, outcome), "%s: %s", verbs[verb].label, outcome_name(outcome));
        buf_append_slice(&reply, buf_slice(&store.encoded));
        copy_value(&store, &value);

        stop(&store);
        start(&store);
        expect_repeat(&store, verb, verb == VERB_SET ? 1 : 2, buf_text(&reply), buf_text(&value));
        expect_repeat(&store, verb, 3, buf_text(&reply), buf_text(&value)); /* the same content */
        verb_store_deinit(&store);
}

Test(verbs, repeat_their_replies_after_a_restart) {
        for (enum verb verb = 0; verb < N_VERBS; verb++)
                check_verb(verb);
}

/* A flag that only writes have, and another access, would let a reader write. */
Test(verbs, that_write_are_fenced_and_remembered) {
        const unsigned int of_writes = VERB_IS_FENCED | VERB_STORES_VALUE;

        for (enum verb verb = 0; verb < N_VERBS; verb++)
                if (verbs[verb].access == ACCESS_WRITE || verbs[verb].flags & of_writes) {
                        cr_expect_eq(verbs[verb].access, ACCESS_WRITE, "%s", verbs[verb].label);
                        cr_expect(verbs[verb].flags & VERB_IS_FENCED, "%s", verbs[verb].label);
                        cr_expect(verbs[verb].flags & VERB_IS_REMEMBERED, "%s", verbs[verb].label);
                }
}

/*
 * The store may execute a repeated request without a timestamp again. It must not change a key or a
 * registration again.
 */
Test(verbs, that_change_a_key_again_need_a_timestamp) {
        for (enum verb verb = 0; verb < N_VERBS; verb++) {
                struct verb_store store;

                if (verbs[verb].flags & VERB_NEEDS_TIMESTAMP)
                        continue;
                verb_store_init(&store);
                receive(&store, VERB_SET, 1);
                receive(&store, verb, 0);
                receive(&store, verb, 0);
                cr_expect_neq(store.reply.execution, EXECUTION_REPEATED, "%s", verbs[verb].label);
                cr_expect_eq(store.effects.n_keyed_changes, 0, "%s", verbs[verb].label);
                verb_store_deinit(&store);
        }
}

static struct result *result_of(struct row *row) {
        return row->type == ROW_REPLY ? &row->reply.result : &row->execution.result;
}

static void expect_stored(enum row_type type, struct result result) {
        CLEANUP(buf_deinit) struct buf given = { 0 }, bytes = { 0 }, loaded = { 0 };
        struct row row = { .type = type };

        if (type == ROW_EXECUTION)
                row.execution.number = 1;
        *result_of(&row) = result;
        result_append(&given, result);
        stored_row_append(&bytes, &row);
        cr_assert_eq(stored_row_read(buf_slice(&bytes), type, &row), 0, "%s", buf_text(&given));
        result_append(&loaded, *result_of(&row));
        cr_expect_str_eq(buf_text(&loaded), buf_text(&given));
}

Test(results, are_stored_with_all_their_fields) {
        for (enum outcome outcome = 0; outcome < N_OUTCOMES; outcome++) {
                if (!outcome_is_in_result(outcome))
                        continue;
                expect_stored(ROW_REPLY, result_extreme(outcome));
                expect_stored(ROW_EXECUTION, result_extreme(outcome));
        }
}

Test(verbs, are_remembered_only_with_results) {
        for (enum verb verb = 0; verb < N_VERBS; verb++)
                for (enum outcome outcome = 0; outcome < N_OUTCOMES; outcome++)
                        if (verbs[verb].flags & VERB_IS_REMEMBERED && outcome_is_possible(verb, outcome))
                                cr_expect(outcome_is_in_result(outcome), "%s: %s", verbs[verb].label,
                                          outcome_name(outcome));
}
