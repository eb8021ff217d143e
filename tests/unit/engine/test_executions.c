/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "engine/executions.h"

static struct executions executions;

static void setup(void) {
        executions = (struct executions){ 0 };
}

TestSuite(executions, .init = setup);

/* Each reply has a version of its own. */
static struct executed_request add(uint64_t number) {
        const struct executed_request execution = {
                .number = number,
                .result = { .version = { .wall_ms = (int64_t)number }, .has_version = true },
        };

        return executions_put(&executions, execution);
}

static bool is_known(uint64_t number) {
        const struct executed_request *found = executions_find(&executions, number);

        if (found)
                cr_expect_eq(found->result.version.wall_ms, (int64_t)number);
        return found;
}

Test(executions, are_found_by_number) {
        cr_expect_not(is_known(1));
        add(1);
        add(2);
        cr_expect(is_known(1) && is_known(2));
        cr_expect_not(is_known(3));
        cr_expect_not(is_known(1 + EXECUTIONS_PLACES));
}

Test(executions, are_known_for_all_records_without_an_end) {
        const uint64_t n_max = COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX;

        for (uint64_t number = 1; number <= 3 * EXECUTIONS_PLACES; number++) {
                add(number);
                for (uint64_t i = 0; i < n_max && i < number; i++)
                        cr_assert(is_known(number - i));
        }
        cr_expect_not(is_known(1));
}

Test(executions, replace_that_of_their_place) {
        cr_expect_eq(add(1).number, 0);
        cr_expect_eq(add(2).number, 0);
        cr_expect_eq(add(1 + EXECUTIONS_PLACES).number, 1);
        cr_expect_not(is_known(1));
        cr_expect(is_known(2));
}
