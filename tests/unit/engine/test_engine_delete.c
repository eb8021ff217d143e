/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Commands": DEL and VDEL. */

#include "unit/engine/world.h"
#include "unit/support/table.h"

static const struct {
        const char *name;
        struct request request;
        enum outcome outcome;
        bool has_version; /* then it is that of the stored value */
        bool is_left;
} deletions[] = {
        /* the key "k" has the value "v" */
        { "DEL", DEL("k"), OUTCOME_DELETED, true, false },
        { "DEL, not found", DEL("none"), OUTCOME_NOTHING, false, true },
        { "VDEL, equal", VDEL("k", "v"), OUTCOME_DELETED, true, false },
        { "VDEL, another value", VDEL("k", "w"), OUTCOME_CONDITION_NOT_MET, true, true },
        { "VDEL, the start of the value", VDEL("k", ""), OUTCOME_CONDITION_NOT_MET, true, true },
        { "VDEL, more than the value", VDEL("k", "v\0"), OUTCOME_CONDITION_NOT_MET, true, true },
        { "VDEL, not found", VDEL("none", "v"), OUTCOME_NOTHING, false, true },
        { "DEL, not found, fenced", DEL("none", FENCE(1, 0, "c")), OUTCOME_NOTHING, false, true },
        { "VDEL, not found, fenced", VDEL("none", "v", FENCE(1, 0, "c")), OUTCOME_NOTHING, false, true },
        { "DEL with a fencing token, of a key without one", DEL("k", FENCE(1, 0, "c")), OUTCOME_DELETED,
          true, false },
};

Test(delete, replies_as_the_table_of_commands_specifies) {
        for (size_t i = 0; i < N_ROWS(deletions); i++) {
                struct world world;
                const struct reply *reply;
                int64_t stored;

                world_init(&world, world_config());
                stored = version_number(ask(&world, SET("k", "v"))->result.version);
                pass_ms(&world, 10);
                reply = ask(&world, deletions[i].request);
                cr_expect_eq(reply->result.outcome, deletions[i].outcome, ROW(deletions, i));
                cr_expect_eq(reply->result.has_version, deletions[i].has_version, ROW(deletions, i));
                if (deletions[i].has_version)
                        cr_expect_eq(version_number(reply->result.version), stored, ROW(deletions, i));
                cr_expect_eq(has(&world, S("k"), S("v")), deletions[i].is_left, ROW(deletions, i));
                cr_expect_eq(has_none(&world, S("k")), !deletions[i].is_left, ROW(deletions, i));
                world_deinit(&world);
        }
}

Test(delete, finds_nothing_if_repeated) {
        struct world world;

        world_init(&world, world_config());
        ask(&world, SET("k", "v"));
        cr_expect(asked(&world, DEL("k"), OUTCOME_DELETED));
        cr_expect(asked(&world, DEL("k"), OUTCOME_NOTHING));
        cr_expect(asked(&world, VDEL("k", "v"), OUTCOME_NOTHING));
        world_deinit(&world);
}

Test(delete, removes_the_expiry_with_the_key) {
        struct world world;

        world_init(&world, world_config());
        ask(&world, SET("k", "v", PX(1000)));
        ask(&world, DEL("k"));
        cr_expect_eq(engine_next_deadline(world.engine), INT64_MAX);
        ask(&world, SET("k", "w"));
        pass_ms(&world, 5000);
        tick(&world);
        cr_expect(has(&world, S("k"), S("w")));
        world_deinit(&world);
}
