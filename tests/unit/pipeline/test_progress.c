/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Progress for the watchdog: a commit that does not end is a hang; an idle store or an absent
 * broker is not.
 */

#include <errno.h>

#include "unit/pipeline/fake_broker.h"

static struct broker broker;

static void setup(void) {
        broker_init(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
}

TestSuite(progress, .init = setup, .fini = teardown);

static bool has_progress(void) {
        return pipeline_check_progress(broker.pipeline);
}

static void send_set(const char *key) {
        broker_send(&broker, (struct sending){ WORDS(S("SET"), slice_from_string(key), S("v")) });
}

Test(progress, idle_pipeline_is_not_a_hang) {
        cr_expect(has_progress());
        cr_expect(has_progress());
}

Test(progress, commit_that_does_not_end_is_a_hang) {
        broker.commit_result = 1;
        send_set("k");
        broker_flush(&broker);
        cr_expect(has_progress(), "the commit has just begun");
        cr_expect_not(has_progress());
        cr_expect_not(has_progress(), "the hang stays reported");

        send_set("l"); /* a waiting request is not progress */
        cr_expect_not(has_progress());

        pipeline_disconnected(broker.pipeline);
        cr_expect_not(has_progress(), "the hang does not depend on the connection");

        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect(has_progress());
        cr_expect(has_progress());
}

Test(progress, each_finished_commit_is_progress) {
        broker.commit_result = 1;
        send_set("k");
        broker_flush(&broker);
        cr_expect(has_progress());
        send_set("l");
        broker_committed(&broker, 0);
        cr_expect_not(pipeline_is_idle(broker.pipeline), "the next commit is in progress");
        cr_expect(has_progress());
        cr_expect_not(has_progress());
        broker_committed(&broker, 0);
}

Test(progress, failed_commit_is_progress) {
        broker.commit_result = -EIO;
        for (int i = 0; i < 3; i++) {
                send_set("k");
                broker_flush(&broker);
                cr_expect(has_progress());
        }
}

Test(progress, waiting_for_room_is_not_a_hang) {
        broker.room = 0;
        send_set("k");
        broker_flush(&broker);
        cr_expect_not(pipeline_is_idle(broker.pipeline));
        cr_expect(has_progress());
        cr_expect(has_progress());

        broker.room = 10;
        cr_expect(has_progress(), "there is room now, so work is pending");
        cr_expect_not(has_progress());
}

Test(progress, waiting_for_a_connection_is_not_a_hang) {
        pipeline_disconnected(broker.pipeline);
        send_set("k");
        broker_flush(&broker);
        cr_expect_not(pipeline_is_idle(broker.pipeline));
        cr_expect(has_progress());
        cr_expect(has_progress());

        broker_connect(&broker, false);
        cr_expect(pipeline_is_idle(broker.pipeline));
        cr_expect(has_progress());
}

Test(progress, commit_that_waits_for_another_machine_is_not_a_hang) {
        broker.commit_result = 1;
        broker.is_storage_waiting = true;
        send_set("k");
        broker_flush(&broker);
        cr_expect(has_progress());
        cr_expect(has_progress());

        broker.is_storage_waiting = false;
        cr_expect(has_progress(), "the wait has ended, so there is work again");
        cr_expect_not(has_progress());
        broker.commit_result = 0;
        broker_committed(&broker, 0);
}
