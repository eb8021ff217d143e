/* SPDX-License-Identifier: Apache-2.0 */

/* Verification of identity properties; each sequence is accepted once. */

#include <criterion/criterion.h>

#include "pipeline/verification.h"
#include "unit/support/plugin_messages.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static struct companion_key_states key_states;

static void setup(void) {
        uint8_t key[COMPANION_KEY_SIZE];

        key_states = (struct companion_key_states){ 0 };
        repeat_key('a', key);
        cr_assert(verification_set_key(&key_states, key));
}

TestSuite(verification, .init = setup);

static enum verification_result check(char key, uint64_t sequence, bool is_before_welcome) {
        struct message message = { .payload = S("payload"), .qos = 1 };
        struct sender sender = { key, S("c"), S("u"), 7, sequence };
        struct companion_mac mac;

        add_identity(&message, &sender, &mac);
        return verification_check(&key_states, &message, is_before_welcome);
}

Test(verification, is_accepted_once_in_growing_order) {
        cr_expect_eq(check('a', 1, false), VERIFICATION_PASSED);
        cr_expect_eq(check('a', 1, false), VERIFICATION_REPEATED);
        cr_expect_eq(check('a', 9, false), VERIFICATION_PASSED);
        cr_expect_eq(check('a', 5, false), VERIFICATION_REPEATED);
        cr_expect_eq(check('a', 10, true), VERIFICATION_PASSED);
}

Test(verification, with_another_key_is_rejected) {
        cr_expect_eq(check('b', 1, false), VERIFICATION_FAILED);
        cr_expect_eq(check('b', 1, true), VERIFICATION_FAILED);
        cr_expect_eq(check('\0', 1, true), VERIFICATION_FAILED, "an unknown key is not the key of zeros");
}

Test(verification, with_the_former_key_is_accepted_for_waiting_requests) {
        uint8_t key[COMPANION_KEY_SIZE];

        cr_expect_eq(check('a', 5, false), VERIFICATION_PASSED);
        repeat_key('b', key);
        cr_assert(verification_set_key(&key_states, key));
        cr_expect_eq(check('a', 6, false), VERIFICATION_FAILED);
        cr_expect_eq(check('a', 5, true), VERIFICATION_REPEATED);
        cr_expect_eq(check('a', 6, true), VERIFICATION_PASSED);
        cr_expect_eq(check('b', 1, true), VERIFICATION_PASSED);
        cr_expect_not(verification_set_key(&key_states, key));

        repeat_key('a', key); /* reconnect to the first broker, which was not restarted */
        cr_assert(verification_set_key(&key_states, key));
        cr_expect_eq(check('a', 6, true), VERIFICATION_REPEATED);
        cr_expect_eq(check('b', 2, true), VERIFICATION_PASSED);
}

Test(verification, older_than_welcome_is_accepted_for_waiting_requests) {
        cr_expect_eq(check('a', 5, true), VERIFICATION_PASSED);
        verification_skip_to(&key_states, 9);
        cr_expect_eq(check('a', 9, false), VERIFICATION_REPEATED);
        cr_expect_eq(check('a', 10, false), VERIFICATION_PASSED);
        verification_skip_to(&key_states, 9);
        cr_expect_eq(check('a', 10, false), VERIFICATION_REPEATED);
}

Test(verification, requires_a_client_and_a_connection) {
        const struct sender incomplete[] = { { 'a', S(""), { 0 }, 7, 1 }, { 'a', S("c"), { 0 }, 0, 1 } };
        struct message none = { .qos = 1 };

        for (size_t i = 0; i < N_ROWS(incomplete); i++) {
                struct message message = { .qos = 1 };
                struct companion_mac mac;

                add_identity(&message, &incomplete[i], &mac);
                cr_expect_eq(verification_check(&key_states, &message, false), VERIFICATION_FAILED);
        }
        cr_expect_eq(verification_check(&key_states, &none, false), VERIFICATION_FAILED);
}
