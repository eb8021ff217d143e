/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>

#include "core/slots.h"

#define N_MANY (10 * SLOTS_A_SLAB)

/* Takes a slot and leaves its number in it. */
static uint32_t take(struct slots *slots) {
        uint32_t slot, *item;

        cr_assert_eq(slots_reserve(slots), 0);
        item = slots_take(slots, &slot);
        *item = slot;
        return slot;
}

Test(slots, are_each_in_use_once_and_stay_where_they_are) {
        static uint32_t *taken[N_MANY];
        struct slots slots;

        slots_init(&slots, 12);
        for (uint32_t i = 0; i < N_MANY; i++) {
                uint32_t slot = take(&slots);

                cr_assert_lt(slot, N_MANY);
                cr_assert_null(taken[slot]);
                taken[slot] = slots_at(&slots, slot);
        }
        for (uint32_t slot = 0; slot < N_MANY; slot++) {
                cr_assert_eq(*taken[slot], slot);
                cr_assert_eq(slots_at(&slots, slot), taken[slot]);
        }
        slots_deinit(&slots);
}

Test(slots, are_used_again) {
        static bool is_free[2 * SLOTS_A_SLAB];
        struct slots slots;
        uint64_t n_bytes;

        slots_init(&slots, 48);
        for (uint32_t i = 0; i < 2 * SLOTS_A_SLAB; i++)
                take(&slots);
        n_bytes = slots_bytes(&slots);
        for (uint32_t slot = 0; slot < 2 * SLOTS_A_SLAB; slot += 3) {
                slots_release(&slots, slot);
                is_free[slot] = true;
        }
        for (uint32_t slot = 0; slot < 2 * SLOTS_A_SLAB; slot += 3) {
                uint32_t again = take(&slots);

                cr_assert(is_free[again], "slot %u", again);
                is_free[again] = false;
        }
        cr_expect_eq(slots_bytes(&slots), n_bytes);
        slots_deinit(&slots);
}

Test(slots, give_their_slabs_back) {
        struct slots slots;
        uint64_t n_bytes_of_one;

        slots_init(&slots, 48);
        take(&slots);
        n_bytes_of_one = slots_bytes(&slots);
        for (uint32_t i = 1; i < N_MANY; i++)
                take(&slots);
        cr_expect_eq(slots_bytes(&slots), 10 * n_bytes_of_one);
        for (uint32_t slot = 0; slot < N_MANY; slot++)
                slots_release(&slots, slot);
        cr_expect_eq(slots_bytes(&slots), 0);
        for (uint32_t i = 0; i < N_MANY; i++)
                cr_assert_lt(take(&slots), N_MANY);
        cr_expect_eq(slots_bytes(&slots), 10 * n_bytes_of_one);
        slots_deinit(&slots);
}

Test(slots, can_be_taken_by_number_in_ascending_order_alone) {
        static const uint32_t numbers[] = { 3, 4, 700, SLOTS_A_SLAB + 5, 5 * SLOTS_A_SLAB };
        struct slots slots;
        void *item;

        slots_init(&slots, 48);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                cr_assert_eq(slots_take_at(&slots, numbers[i], &item), 0, "%u", numbers[i]);
                cr_expect_eq(item, slots_at(&slots, numbers[i]));
                cr_expect_eq(slots_take_at(&slots, numbers[i], &item), -EBADMSG, "%u", numbers[i]);
        }
        cr_expect_eq(slots_take_at(&slots, 2, &item), -EBADMSG);
        cr_expect_eq(slots_take_at(&slots, 3 * SLOTS_A_SLAB, &item),
                     -EBADMSG); /* a slab that was passed over */

        for (uint32_t i = 0; i < 6 * SLOTS_A_SLAB - 5; i++) {
                uint32_t slot = take(&slots);

                for (size_t j = 0; j < sizeof(numbers) / sizeof(numbers[0]); j++)
                        cr_assert_neq(slot, numbers[j]);
        }
        slots_deinit(&slots);
}
