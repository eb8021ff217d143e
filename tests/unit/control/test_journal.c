/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "control/journal.h"

#define S SLICE_LITERAL

static const struct selection any;

static uint64_t add(struct ring *journal, struct slice payload) {
        return journal_add(journal, &(struct journal_entry){ .wall_ms = 5,
                                                             .client = S("c"),
                                                             .verb = VERB_GET,
                                                             .key = S("k"),
                                                             .payload = payload });
}

/* The caller frees the text. */
static char *written(const struct ring *journal, uint64_t after) {
        struct buf lines = { 0 };

        cr_assert_eq(journal_write(journal, &any, after, &lines), 0);
        buf_append(&lines, "", 1);
        return (char *)lines.data;
}

static uint64_t count(const struct ring *journal, uint64_t after) {
        uint64_t n;

        cr_assert_eq(journal_count(journal, &any, after, &n), 0);
        return n;
}

Test(journal, writes_requests_with_replies) {
        struct ring journal = JOURNAL_RING;
        char *text;

        cr_expect_eq(add(&journal, S("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")), 1);
        cr_expect_eq(add(&journal, S("\xFF")), 2);
        journal_add_reply(&journal, 1, S(":1\r\n"), S("1:2:n"));
        text = written(&journal, 0);
        cr_expect_str_eq(text,
                         "{\"number\":1,\"time\":5,\"client\":\"c\",\"verb\":\"GET\",\"key\":\"k\","
                         "\"request\":[\"GET\",\"k\"],\"reply\":\":1\\u000d\\n\",\"version\":\"1:2:n\","
                         "\"fault\":null}\n"
                         "{\"number\":2,\"time\":5,\"client\":\"c\",\"verb\":\"GET\",\"key\":\"k\","
                         "\"payload_base64\":\"/w==\",\"reply\":null,\"version\":null,\"fault\":null}\n");
        free(text);
        text = written(&journal, 2);
        cr_expect_str_eq(text, "");
        free(text);
        ring_clear(&journal);
}

Test(journal, writes_notifications) {
        struct ring journal = JOURNAL_RING;
        struct journal_entry entry = { .is_notification = true,
                                       .client = S("c"),
                                       .key = S("k"),
                                       .payload = S("v"),
                                       .version = S("1:2:n"),
                                       .rule = &(struct fault_rule){ .action = FAULT_NOTIFY_TWICE } };
        char *text;

        journal_add(&journal, &entry);
        entry.payload = (struct slice){ 0 };
        entry.rule = NULL;
        journal_add(&journal, &entry);
        text = written(&journal, 0);
        cr_expect_str_eq(text,
                         "{\"number\":1,\"time\":0,\"client\":\"c\",\"key\":\"k\",\"event\":\"SET\","
                         "\"value\":\"v\",\"version\":\"1:2:n\",\"fault\":\"notify-twice\"}\n"
                         "{\"number\":2,\"time\":0,\"client\":\"c\",\"key\":\"k\",\"event\":\"DELETE\","
                         "\"value\":null,\"version\":\"1:2:n\",\"fault\":null}\n");
        free(text);
        ring_clear(&journal);
}

Test(journal, omits_absent_fields) {
        const struct fault_rule delay = { .action = FAULT_DELAY };
        struct ring journal = JOURNAL_RING;
        char *text;

        journal_add(&journal,
                    &(struct journal_entry){ .verb = VERB_UNKNOWN, .payload = S(""), .rule = &delay });
        text = written(&journal, 0);
        cr_expect_str_eq(
                text, "{\"number\":1,\"time\":0,\"client\":null,\"verb\":null,\"key\":null,\"payload\":\"\","
                      "\"reply\":null,\"version\":null,\"fault\":\"delay\"}\n");
        free(text);
        ring_clear(&journal);
}

Test(journal, knows_the_fault_of_a_request_for_its_reply) {
        const struct fault_rule kick = { .action = FAULT_KICK };
        struct ring journal = JOURNAL_RING;
        char *text;

        journal_add(&journal, &(struct journal_entry){ .rule = &kick, .connection = 7 });
        add(&journal, S("x"));
        journal_add_reply(&journal, 1, S(":1\r\n"), (struct slice){ 0 }); /* the request has no payload */
        text = written(&journal, 0);
        cr_expect(strstr(text, "\"reply\":\":1"), "%s", text);
        free(text);
        cr_expect_eq(journal_fault_of(&journal, 1).rule, &kick);
        cr_expect_eq(journal_fault_of(&journal, 1).number, 1);
        cr_expect_eq(journal_fault_of(&journal, 1).connection, 7);
        cr_expect_null(journal_fault_of(&journal, 2).rule);
        cr_expect_null(journal_fault_of(&journal, 0).rule, "no number");
        ring_clear(&journal);
}

Test(journal, keeps_the_first_reply) {
        struct ring journal = JOURNAL_RING;
        char *text;

        add(&journal, S("x"));
        journal_add_reply(&journal, 1, S("first"), (struct slice){ 0 });
        journal_add_reply(&journal, 1, S("second"), (struct slice){ 0 });
        journal_add_reply(&journal, 0, S("unknown"), (struct slice){ 0 });
        journal_add_reply(&journal, 2, S("unknown"), (struct slice){ 0 });
        text = written(&journal, 0);
        cr_expect_not_null(strstr(text, "\"reply\":\"first\""));
        free(text);
        ring_clear(&journal);
}

Test(journal, removes_the_oldest_above_the_number_limit) {
        struct ring journal = JOURNAL_RING;

        for (uint64_t i = 1; i <= 2 * JOURNAL_RECORDS_MAX; i++)
                cr_assert_eq(add(&journal, S("x")), i);
        cr_expect_leq(count(&journal, 0), JOURNAL_RECORDS_MAX);
        cr_expect_gt(count(&journal, 0), JOURNAL_RECORDS_MAX / 2);
        cr_expect_eq(count(&journal, 2 * JOURNAL_RECORDS_MAX - 3), 3);
        journal_add_reply(&journal, 1, S("too late"), (struct slice){ 0 });
        ring_clear(&journal);
        cr_expect_eq(journal.n_bytes, 0);
}

Test(journal, removes_the_oldest_above_the_byte_limit) {
        static uint8_t long_payload[JOURNAL_BYTES_MAX / 4];
        struct ring journal = JOURNAL_RING;

        for (int i = 0; i < 10; i++) {
                add(&journal, (struct slice){ long_payload, sizeof(long_payload) });
                cr_expect_leq(journal.n_bytes, JOURNAL_BYTES_MAX);
        }
        cr_expect_eq(count(&journal, 0), 3);
        journal_add_reply(&journal, 10, (struct slice){ long_payload, sizeof(long_payload) },
                          (struct slice){ 0 });
        cr_expect_leq(journal.n_bytes, JOURNAL_BYTES_MAX);
        cr_expect_eq(count(&journal, 0), 2);
        ring_clear(&journal);
}

Test(journal, removed_requests_keep_their_numbers_and_are_passed_over) {
        struct selection odd = { .has_client = true };
        struct ring journal = JOURNAL_RING;
        uint64_t budget = JOURNAL_STEPS_MAX;

        buf_append_string(&odd.client, "odd");
        for (uint64_t i = 1; i < JOURNAL_RECORDS_MAX; i++)
                journal_add(&journal,
                            &(struct journal_entry){ .client = i % 2 ? S("odd") : S("c"), .key = S("k") });
        journal_remove(&journal, &odd, &budget);
        journal_add_reply(&journal, 1, S(":1\r\n"), (struct slice){ 0 });
        cr_expect_gt(budget, 0);
        cr_expect_eq(count(&journal, 0), JOURNAL_RECORDS_MAX / 2 - 1);
        cr_expect_eq(add(&journal, S("x")), JOURNAL_RECORDS_MAX);
        cr_expect_eq(add(&journal, S("x")), JOURNAL_RECORDS_MAX + 1);
        cr_expect_eq(count(&journal, 2), JOURNAL_RECORDS_MAX / 2);

        selection_deinit(&odd);
        ring_clear(&journal);
        cr_expect_eq(journal.n_bytes, 0);
}

/* The pattern *aa...b is compared with the key aa... at each position. */
Test(journal, pattern_that_takes_too_long_is_refused) {
        static uint8_t key[5000], pattern[2000];
        struct selection selection = { .has_key = true };
        struct journal_entry request = { .verb = VERB_GET, .key = { key, sizeof(key) }, .payload = S("") };
        struct ring journal = JOURNAL_RING;
        struct buf lines = { 0 };
        uint64_t n = 5;

        memset(key, 'a', sizeof(key));
        memset(pattern, 'a', sizeof(pattern));
        pattern[0] = '*';
        pattern[sizeof(pattern) - 1] = 'b';
        buf_append(&selection.key, pattern, sizeof(pattern));
        for (int i = 0; i < 10; i++)
                journal_add(&journal, &request);

        cr_expect_eq(journal_count(&journal, &selection, 0, &n), -ERANGE);
        cr_expect_eq(n, 5);
        cr_expect_eq(journal_write(&journal, &selection, 0, &lines), -ERANGE);
        cr_expect_eq(journal_count(&journal, &selection, 9, &n), 0);
        cr_expect_eq(n, 0);
        cr_expect_eq(journal_write(&journal, &selection, 9, &lines), 0);
        cr_expect_eq(lines.length, 0);

        buf_deinit(&lines);
        selection_deinit(&selection);
        ring_clear(&journal);
}
