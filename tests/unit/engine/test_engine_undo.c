/* SPDX-License-Identifier: Apache-2.0 */

/* A batch that could not be stored is undone. A stored batch is restored after a restart. */

#include <stdio.h>
#include <stdlib.h>

#include "engine/internal.h"
#include "unit/engine/world.h"
#include "unit/support/table.h"

static struct world world;

static void setup(void) {
        world_init(&world, world_config());
}

static void teardown(void) {
        world_deinit(&world);
}

TestSuite(undo, .init = setup, .fini = teardown);

static int by_text(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

#define N_LINES_MAX 256

static void append_entry(struct buf *line, const struct keyspace *keyspace, struct entry *entry) {
        struct hlc fence;

        buf_append_slice(line, entry_key(entry));
        buf_append_string(line, "=");
        buf_append_slice(line, entry_value(entry));
        buf_append_string(line, " version ");
        buf_append_uint(line, (uint64_t)version_number(entry_version(entry)));
        buf_append_string(line, " deadline ");
        buf_append_uint(line, (uint64_t)keyspace_deadline(keyspace, entry));
        buf_append_string(line, entry->is_persistent ? " persistent" : "");
        if (entry_fence(entry, &fence)) {
                buf_append_string(line, " fence ");
                hlc_append(line, fence, HLC_UNPADDED);
        }
}

static void append_registration(struct buf *line, const struct registration *registration) {
        buf_append_slice(line, registration->client_id);
        buf_append_string(line, " watches ");
        buf_append_slice(line, registration->key_name);
        buf_append_string(line, " over ");
        buf_append_uint(line, registration->connection);
}

/* Takes ownership of the line. */
static void keep(char **lines, size_t *n_lines, struct buf *line) {
        buf_append(line, "", 1);
        cr_assert_lt(*n_lines, N_LINES_MAX);
        lines[(*n_lines)++] = (char *)line->data;
        *line = (struct buf){ 0 };
}

/* The content of an engine as text, in a fixed order. The caller frees it. */
static char *describe(const struct engine *engine) {
        char *lines[N_LINES_MAX];
        size_t n_lines = 0;
        struct keyspace_cursor cursor = { 0 };
        struct registration_cursor registrations = { 0 };
        struct entry *entry;
        struct registration *registration;
        struct buf line = { 0 };

        while ((entry = keyspace_each(engine_keyspace(engine), &cursor))) {
                append_entry(&line, &engine->keyspace, entry);
                keep(lines, &n_lines, &line);
        }
        while ((registration = registrations_each(&engine->registrations, &registrations))) {
                append_registration(&line, registration);
                keep(lines, &n_lines, &line);
        }

        qsort(lines, n_lines, sizeof(*lines), by_text);
        for (size_t i = 0; i < n_lines; i++) {
                buf_append_string(&line, lines[i]);
                buf_append_string(&line, "\n");
                free(lines[i]);
        }
        buf_append_uint(&line, engine->keyspace.n_bytes);
        buf_append_string(&line, " bytes of keys, of registrations ");
        buf_append_uint(&line, engine->registrations.n_bytes);
        buf_append(&line, "", 1);
        return (char *)line.data;
}

/* A random request about few keys and clients, so that requests affect each other. */
static struct request random_request(char *text) {
        struct request request = { .verb = (enum verb)(rand() % N_VERBS) };

        snprintf(text, 32, "k%d", rand() % 6);
        request.key = (struct slice){ (uint8_t *)text, 2 };
        snprintf(text + 4, 28, "c%d", rand() % 4);
        request.client = (struct slice){ (uint8_t *)text + 4, 2 };
        request.value = rand() % 2 ? S("v") : S("another value");
        if (request.verb == VERB_SCAN)
                request.value = (struct slice){ 0 };
        request.connection = (uint64_t)(text[5] - '0');
        request.stop = rand() % 3 == 0;
        request.has_px = rand() % 2;
        request.px_ms = 1 + rand() % 20;
        request.condition = (enum set_condition)(rand() % 3);
        request.expected = S("v");
        request.wants_persistence = rand() % 2;
        request.has_fence = rand() % 3 == 0 && request.verb <= VERB_VDEL;
        request.fence = (struct hlc){ rand() % 3, 0, S("m") };
        return request;
}

Test(undo, restores_the_state_before_the_batch) {
        int n_changing = 0;

        srand(1);
        world.engine->config.persist = PERSIST_CUSTOM;
        for (int batch = 0; batch < 2000; batch++) {
                char *before = describe(world.engine), *after;
                bool is_stored = rand() % 3 == 0;

                for (int i = rand() % 8; i >= 0; i--) {
                        char text[32];

                        if (rand() % 8 == 0) {
                                pass_ms(&world, rand() % 10);
                                happen_in_batch(&world, (struct event){ .type = EVENT_TICK });
                        } else {
                                ask_in_batch(&world, random_request(text));
                        }
                }
                if (!is_stored)
                        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
                n_changing += world.effects.n_changes > 0;
                begin_batch(&world);

                after = describe(world.engine);
                if (!is_stored)
                        cr_assert_str_eq(after, before, "batch %d:\n%s\nwas\n%s", batch, after, before);
                free(before);
                free(after);
        }
        cr_expect_gt(n_changing, 1000);
}

Test(engine, has_the_same_effects_for_the_same_events_at_the_same_times) {
        struct world worlds[2];

        world_init(&worlds[0], world_config());
        world_init(&worlds[1], world_config());
        srand(2);
        for (int i = 0; i < 5000; i++) {
                char text[32], *described[2];
                struct request request = random_request(text);
                int64_t ms = rand() % 3;

                for (size_t j = 0; j < 2; j++) {
                        ask(&worlds[j], request);
                        pass_ms(&worlds[j], ms);
                }
                cr_assert_eq(worlds[0].replies[0].result.outcome, worlds[1].replies[0].result.outcome,
                             "event %d", i);
                cr_assert_str_eq(notified(&worlds[0]), notified(&worlds[1]), "event %d", i);
                if (i % 50 != 0)
                        continue;
                described[0] = describe(worlds[0].engine);
                described[1] = describe(worlds[1].engine);
                cr_assert_str_eq(described[0], described[1], "event %d", i);
                free(described[0]);
                free(described[1]);
        }
        world_deinit(&worlds[0]);
        world_deinit(&worlds[1]);
}

Test(undo, forgets_the_remembered_replies_of_the_batch) {
        ask(&world, SET("k", "v", TS(1, 0, "c"), .timestamp_text = BYTES("1:0:c")));
        cr_expect_eq(engine_stats(world.engine).n_remembered, 1);
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_eq(engine_stats(world.engine).n_remembered, 0);
}

Test(undo, does_not_set_the_clock_back) {
        int64_t given = version_number(ask(&world, SET("k", "v"))->result.version);

        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect_gt(version_number(ask(&world, SET("k", "v"))->result.version), given);
}

Test(undo, restores_an_expired_key_with_its_deadline) {
        ask(&world, SET("k", "v", PX(10)));
        pass_ms(&world, 10);
        tick(&world);
        cr_assert_eq(engine_undo(world.engine, &world.effects), 0);
        cr_expect(has_none(&world, S("k"))); /* it has expired in any case */
        cr_expect_eq(engine_next_deadline(world.engine), world.now.mono_ns);
        tick(&world);
        cr_expect_eq(engine_stats(world.engine).n_keys, 0);
}

Test(restored, keys_keep_value_version_deadline_and_fence, .init = setup, .fini = teardown) {
        struct hlc fence = { 50, 0, S("m") };
        struct version version = { WORLD_WALL_MS - 5, 3 };
        const struct entry_fields stored[] = {
                { S("k"), S("v"), version, world.now.mono_ns + 10, &fence },
                { S("past"), S("v"), version, world.now.mono_ns - 10, NULL },
                { S("ever"), S(""), version, DEADLINE_NEVER, NULL },
        };

        world.engine->clock.last = version;
        for (size_t i = 0; i < N_ROWS(stored); i++)
                cr_assert_eq(engine_put_entry(world.engine, &stored[i]), 0);
        cr_assert_eq(engine_put_registration(world.engine, S("c"), S("u"), S("past"), 7), 0);

        cr_expect(has(&world, S("k"), S("v")));
        cr_expect_eq(version_number(ask(&world, GET("k"))->result.version), version_number(version));
        cr_expect(asked(&world, SET("k", "w"), OUTCOME_FENCE_REQUIRED));
        cr_expect(has(&world, S("ever"), S("")));
        cr_expect(has_none(&world, S("past")));
        tick(&world);
        cr_expect_str_eq(notified(&world), "c:past gone ");
        pass_ns(&world, 10);
        cr_expect(has_none(&world, S("k")));
        cr_expect_gt(version_number(ask(&world, SET("k", "w"))->result.version), version_number(version));
}

static const struct {
        const char *name;
        enum persist persist;
        const char *pattern;
        struct request request;
        bool is_persistent;
} persistence_cases[] = {
        { "all", PERSIST_ALL, NULL, SET("k", "v"), true },
        { "all, with any pattern", PERSIST_ALL, "x*", SET("k", "v"), true },
        { "none", PERSIST_NONE, "k*", SET("k", "v", .wants_persistence = true), false },
        { "custom, not requested", PERSIST_CUSTOM, NULL, SET("k", "v"), false },
        { "custom, requested", PERSIST_CUSTOM, NULL, SET("k", "v", .wants_persistence = true), true },
        { "custom, by the pattern", PERSIST_CUSTOM, "k*", SET("key", "v"), true },
        { "custom, not by the pattern", PERSIST_CUSTOM, "k*", SET("x", "v"), false },
        { "custom, not by the pattern but requested", PERSIST_CUSTOM, "k*",
          SET("x", "v", .wants_persistence = true), true },
};

Test(persistent, keys_are_selected_by_policy_and_request) {
        for (size_t i = 0; i < N_ROWS(persistence_cases); i++) {
                const struct persist_rule rule = { .text = slice_from_string(persistence_cases[i].pattern) };
                struct engine_config config = world_config();
                const struct change *change;

                config.persist = persistence_cases[i].persist;
                config.persist_rules = &rule;
                config.n_persist_rules = persistence_cases[i].pattern != NULL;
                world_init(&world, config);
                ask(&world, persistence_cases[i].request);
                change = &world.effects.changes[0];
                cr_assert_eq(change->type, CHANGE_ENTRY, ROW(persistence_cases, i));
                cr_expect_eq(change->entry.after->is_persistent, persistence_cases[i].is_persistent,
                             ROW(persistence_cases, i));
                world_deinit(&world);
        }
}
