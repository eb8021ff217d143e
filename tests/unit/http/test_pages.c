/* SPDX-License-Identifier: Apache-2.0 */

#include "http/pages.h"
#include "unit/pipeline/fake_broker.h"

static struct broker broker;
static struct buf text;

static void setup(void) {
        broker_init_down(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
        buf_deinit(&text);
}

TestSuite(pages, .init = setup, .fini = teardown);

/* Whether /readyz has this status and text. */
static bool is_readiness(unsigned int status, const char *expected) {
        for (size_t i = 0; i < n_store_pages; i++)
                if (strcmp(store_pages[i].path, "/readyz") == 0) {
                        buf_reset(&text);
                        return store_pages[i].render(broker.pipeline, &text) == status &&
                               slice_equal(buf_slice(&text), slice_from_string(expected));
                }
        return false;
}

Test(pages, readiness_names_what_the_store_waits_for) {
        cr_expect(is_readiness(503, "not connected to a broker\n"));

        broker_say(&broker, COMPANION_BANNER, COMPANION_VERSION);
        broker_connect(&broker, false);
        cr_expect(is_readiness(503, "connected to the broker, but not serving yet\n"));

        broker_welcome(&broker, 'k', "0\nguarded\n0\n");
        cr_expect(is_readiness(200, "ready\n"));
}
