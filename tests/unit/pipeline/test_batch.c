/* SPDX-License-Identifier: Apache-2.0 */

/* The replies of a batch: their texts, their cost, and what a failed commit makes of them. */

#include <criterion/criterion.h>
#include <stdio.h>

#include "pipeline/batch.h"
#include "pipeline/queue.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static struct batch batch;

static void setup(void) {
        batch.limits = STORAGE_NO_LIMITS;
}

static void teardown(void) {
        batch_deinit(&batch);
}

TestSuite(batch, .init = setup, .fini = teardown);

/* The request that a reply belongs to. */
struct replied {
        struct slice response_topic, correlation_data, fault_value;
        enum request_fault fault;
        uint64_t number;
};

static struct pending_reply *add(struct replied replied) {
        const struct invocation invocation = { .fault = replied.fault,
                                               .fault_value = replied.fault_value,
                                               .request = {
                                                       .response_topic = replied.response_topic,
                                                       .correlation_data = replied.correlation_data,
                                                       .number = replied.number,
                                               } };
        struct pending_reply *added = batch_add_reply(&batch, &(struct queue_item){ 0 }, &invocation);

        cr_assert_not_null(added);
        return added;
}

/* Add a reply to a faulty request. Its texts are in memory that changes afterwards. */
static void add_from_changing_memory(int i) {
        static char topic[16], correlation[16], value[16];
        struct replied replied = { .fault = REQUEST_FAULT_VERSION };

        snprintf(topic, sizeof(topic), "topic-%d", i);
        snprintf(correlation, sizeof(correlation), "%d", i);
        snprintf(value, sizeof(value), "2.%d", i);
        replied.response_topic = slice_from_string(topic);
        replied.correlation_data = slice_from_string(correlation);
        replied.fault_value = slice_from_string(value);
        add(replied);
        memset(topic, 'x', sizeof(topic));
        memset(correlation, 'x', sizeof(correlation));
        memset(value, 'x', sizeof(value));
}

static void expect_text(struct slice found, const char *expected) {
        cr_assert(slice_equal(found, slice_from_string(expected)), "%s", expected);
        cr_assert_eq(found.data[found.length], '\0', "%s", expected);
}

Test(batch, keeps_the_texts_of_each_reply_in_order) {
        char text[16];

        for (int i = 0; i < BATCH_ITEMS_MAX; i++)
                add_from_changing_memory(i);
        for (int i = 0; i < BATCH_ITEMS_MAX; i++) {
                const struct pending_reply *pending = &batch.replies[i];

                snprintf(text, sizeof(text), "topic-%d", i);
                expect_text(pending->response_topic, text);
                snprintf(text, sizeof(text), "%d", i);
                expect_text(pending->correlation_data, text);
                snprintf(text, sizeof(text), "2.%d", i);
                expect_text(pending->fault_value, text);
        }
}

Test(batch, distinguishes_absent_from_empty_correlation_data) {
        add((struct replied){ .response_topic = S("t"), .fault = REQUEST_FAULT_CORRELATION });
        add((struct replied){ .response_topic = S("t"), .correlation_data = S("") });
        cr_expect_null(batch.replies[0].correlation_data.data);
        cr_expect_eq(batch.replies[0].fault, REQUEST_FAULT_CORRELATION);
        cr_expect_not_null(batch.replies[1].correlation_data.data);
        cr_expect_eq(batch.replies[1].correlation_data.length, 0);
}

/* The value of a property may be as long as a packet. */
Test(batch, costs_the_texts_of_its_replies) {
        static const char long_text[1000];
        const struct slice text = { (const uint8_t *)long_text, sizeof(long_text) };
        const struct replied rows[] = { { .response_topic = text },
                                        { .response_topic = S("t"), .correlation_data = text },
                                        { .response_topic = S("t"), .fault_value = text } };

        for (size_t i = 0; i < N_ROWS(rows); i++) {
                size_t before = batch_n_bytes(&batch);

                add(rows[i]);
                cr_expect_geq(batch_n_bytes(&batch) - before, sizeof(long_text) + BATCH_ITEM_BYTES,
                              "row %zu", i);
                cr_expect_leq(batch_n_bytes(&batch) - before, sizeof(long_text) + BATCH_ITEM_BYTES + 1,
                              "row %zu", i);
        }
}

/* A fault is found before the execution: the failed commit changes nothing about it. */
Test(batch, keeps_faults_when_it_fails) {
        add((struct replied){ .response_topic = S("t"), .number = 1 })->reply.result.outcome =
                OUTCOME_DELETED;
        add((struct replied){ .response_topic = S("t"),
                              .number = 2,
                              .fault = REQUEST_FAULT_VERSION,
                              .fault_value = S("2.0") });
        batch_fail(&batch, OUTCOME_QUOTA_EXCEEDED);
        cr_expect_eq(batch.replies[0].reply.result.outcome, OUTCOME_QUOTA_EXCEEDED);
        cr_expect_eq(batch.replies[0].fault, REQUEST_FAULT_NONE);
        cr_expect_eq(batch.replies[1].record_number, 2);
        cr_expect_eq(batch.replies[1].fault, REQUEST_FAULT_VERSION);
        cr_expect(slice_equal(batch.replies[1].fault_value, S("2.0")));
}

Test(batch, is_empty_after_a_reset) {
        add((struct replied){ .response_topic = S("t"), .number = 7 });
        batch_add_item(&batch, 10, 7);
        cr_expect_eq(batch.last_record_number, 7);
        batch.work_ns = 5;
        cr_expect_not(batch_is_empty(&batch));
        batch_reset(&batch);
        cr_expect(batch_is_empty(&batch));
        cr_expect_eq(batch.n_replies, 0);
        cr_expect_eq(batch_n_bytes(&batch) + batch.last_record_number, 0);
        cr_expect_eq(batch.work_ns, 0);
}
