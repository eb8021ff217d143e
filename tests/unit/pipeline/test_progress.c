/* SPDX-License-Identifier: Apache-2.0 */

/* What the watchdog is to see, and what it is not to take for a hang. */

#include "pipeline/progress.h"

#include <errno.h>

#include "unit/pipeline/fake_broker.h"

static struct broker broker;
static struct progress progress;

static void setup(void) {
        broker_init(&broker, broker_config());
        progress = (struct progress){ 0 };
}

static void teardown(void) {
        broker_deinit(&broker);
}

TestSuite(progress, .init = setup, .fini = teardown);

static bool look(void) {
        return progress_look(&progress, broker.pipeline);
}

static void send_set(const char *key) {
        broker_send(&broker, (struct sending){ WORDS(S("SET"), slice_from_string(key), S("v")) });
}

Test(progress, is_there_while_nobody_asks_for_anything) {
        cr_expect(look());
        cr_expect(look());
}

Test(progress, ends_with_a_commit_that_does_not_end) {
        broker.commit_result = 1;
        send_set("k");
        broker_flush(&broker);
        cr_expect(look(), "it has had no time yet");
        cr_expect_not(look());
        cr_expect_not(look(), "and that does not wear off");

        send_set("l"); /* waits, so it is nothing that was done */
        cr_expect_not(look());

        pipeline_disconnected(broker.pipeline);
        cr_expect_not(look(), "a disk hangs whether the broker is there or not");

        broker.commit_result = 0;
        broker_committed(&broker, 0);
        cr_expect(look());
        cr_expect(look());
}

Test(progress, goes_on_from_commit_to_commit) {
        broker.commit_result = 1;
        send_set("k");
        broker_flush(&broker);
        cr_expect(look());
        send_set("l");
        broker_committed(&broker, 0);
        cr_expect_not(pipeline_is_idle(broker.pipeline), "the next one is under way");
        cr_expect(look());
        cr_expect_not(look());
        broker_committed(&broker, 0);
}

Test(progress, is_a_commit_that_fails) {
        broker.commit_result = -EIO;
        for (int i = 0; i < 3; i++) {
                send_set("k");
                broker_flush(&broker);
                cr_expect(look());
        }
}

Test(progress, is_not_asked_for_while_the_broker_takes_nothing) {
        broker.room = 0;
        send_set("k");
        broker_flush(&broker);
        cr_expect_not(pipeline_is_idle(broker.pipeline));
        cr_expect(look());
        cr_expect(look());

        broker.room = 10;
        cr_expect(look(), "now it is in hand");
        cr_expect_not(look());
}

Test(progress, is_not_asked_for_while_there_is_no_broker) {
        pipeline_disconnected(broker.pipeline);
        send_set("k");
        broker_flush(&broker);
        cr_expect_not(pipeline_is_idle(broker.pipeline));
        cr_expect(look());
        cr_expect(look());

        pipeline_connected(broker.pipeline, false, broker.now);
        cr_expect(pipeline_is_idle(broker.pipeline));
        cr_expect(look());
}
