/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/array.h"
#include "engine/executions.h"

static struct executions executions;

static void setup(void) {
        executions = (struct executions){ 0 };
}

TestSuite(executions, .init = setup);

/* Each reply has a version of its own. */
static struct execution_row add(uint64_t run, uint64_t number) {
        const struct result result = { .version = { .wall_ms = (int64_t)(1000 * run + number) },
                                       .has_version = true };

        return executions_add(&executions, (struct request_id){ run, number }, result);
}

static bool is_known(uint64_t run, uint64_t number) {
        const struct executed_request *found =
                executions_find(&executions, (struct request_id){ run, number });

        if (found)
                cr_expect_eq(found->result.version.wall_ms, (int64_t)(1000 * run + number));
        return found;
}

Test(executions, are_found_by_run_and_number) {
        cr_expect_not(is_known(0, 1));
        add(7, 1);
        add(7, 2);
        cr_expect(is_known(7, 1) && is_known(7, 2));
        cr_expect_not(is_known(7, 3));
        cr_expect_not(is_known(8, 1));
        cr_expect_not(is_known(0, 1));
}

Test(executions, of_a_run_are_known_for_all_records_without_an_end) {
        const uint64_t n_max = COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX;

        for (uint64_t number = 1; number <= 3 * EXECUTIONS_SLOTS; number++) {
                add(7, number);
                for (uint64_t i = 0; i < n_max && i < number; i++)
                        cr_assert(is_known(7, number - i));
        }
        cr_expect_not(is_known(7, 1));
}

Test(executions, of_the_last_two_runs_are_known) {
        for (uint64_t run = 1; run <= 3; run++)
                for (uint64_t number = 1; number <= EXECUTIONS_SLOTS; number++)
                        add(run, number);
        for (uint64_t number = 1; number <= EXECUTIONS_SLOTS; number++) {
                cr_expect_not(is_known(1, number));
                cr_expect(is_known(2, number) && is_known(3, number));
        }

        for (uint64_t number = 1; number <= 2 * EXECUTIONS_SLOTS; number++)
                add(2, EXECUTIONS_SLOTS + number); /* the former broker is served again, for longer */
        cr_expect(is_known(3, 1) && is_known(2, 2 * EXECUTIONS_SLOTS + 1));
        add(4, 1);
        cr_expect_not(is_known(3, 1), "run 2 is newer");
        cr_expect(is_known(2, 2 * EXECUTIONS_SLOTS + 1));
}

Test(executions, are_undone) {
        struct execution_row rows[3];

        add(7, 1);
        add(8, 1);
        rows[0] = add(7, 1 + EXECUTIONS_SLOTS);
        rows[1] = add(9, 1);
        rows[2] = add(9, 2);
        for (size_t i = 3; i-- > 0;)
                executions_undo(&executions, &rows[i]);
        cr_expect(is_known(7, 1) && is_known(8, 1));
        cr_expect_not(is_known(9, 1));
        cr_expect_not(is_known(9, 2));
        cr_expect_not(is_known(7, 1 + EXECUTIONS_SLOTS));
}

Test(executions, are_equal_in_a_copy) {
        struct executions copy = { 0 };

        for (uint64_t number = 1; number <= 2 * EXECUTIONS_SLOTS; number += 3)
                for (uint64_t run = 1; run <= 3; run++) {
                        const struct execution_row row = add(run, number);

                        cr_assert_eq(executions_put(&copy, &row.after), 0);
                }
        for (size_t place = 0; place < EXECUTIONS_PLACES; place++) {
                cr_expect_eq(copy.places[place].id.broker_run, executions.places[place].id.broker_run);
                cr_expect_eq(copy.places[place].id.number, executions.places[place].id.number);
                cr_expect_eq(copy.places[place].order, executions.places[place].order);
        }
        cr_expect_eq(copy.last_order, executions.last_order);
}

static const struct {
        uint64_t number;
        uint32_t place;
        int expected;
} placements[] = {
        { 1, 0, -EBADMSG }, { 1, 2, 0 },        { 1, 3, 0 },
        { 1, 4, -EBADMSG }, { 0, 0, -EBADMSG }, { 1, EXECUTIONS_PLACES, -EBADMSG },
};

Test(executions, have_only_the_places_of_their_number) {
        for (size_t i = 0; i < ARRAY_LENGTH(placements); i++) {
                const struct executed_request execution = { .id = { 7, placements[i].number },
                                                            .order = 1,
                                                            .place = placements[i].place };

                cr_expect_eq(executions_put(&executions, &execution), placements[i].expected, "%zu", i);
        }
}
