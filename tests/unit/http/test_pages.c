/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>

#include "http/pages.h"
#include "unit/pipeline/fake_broker.h"

static struct broker broker;
static struct buf text;
static const char *disconnected = "";

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
        struct store_view view = { broker.pipeline, disconnected };
        struct http_pages shown = store_pages(&view);

        for (size_t i = 0; i < shown.n_pages; i++)
                if (strcmp(shown.pages[i].path, "/readyz") == 0) {
                        buf_reset(&text);
                        return shown.pages[i].render(shown.userdata, &text) == status &&
                               slice_equal(buf_slice(&text), slice_from_string(expected));
                }
        return false;
}

Test(pages, readiness_names_what_the_store_waits_for) {
        cr_expect(is_readiness(503, "not connected to a broker yet\n"));
        disconnected = "no connection to the broker at h:1: refused";
        cr_expect(is_readiness(503, "no connection to the broker at h:1: refused\n"));

        broker_say(&broker, COMPANION_BANNER, COMPANION_VERSION);
        broker_connect(&broker, false);
        cr_expect(is_readiness(503, "waiting for the reply of the plugin in the broker\n"));

        broker_welcome(&broker, 'k', "0\nguarded\n0\n");
        cr_expect(is_readiness(200, "ready\n"));
}

Test(pages, readiness_names_the_required_plugin) {
        struct pipeline_config config = broker_config();

        config.requires_plugin = true;
        broker_deinit(&broker);
        broker_init_down(&broker, config);
        pipeline_connected(broker.pipeline, false, broker.now);
        cr_expect(is_readiness(503, "waiting for the plugin: the broker has not announced one, and "
                                    "require-plugin is on\n"));

        broker_say(&broker, COMPANION_BANNER, COMPANION_VERSION);
        cr_expect(is_readiness(503, "waiting for the reply of the plugin in the broker\n"));
}

Test(pages, readiness_names_a_failed_commit) {
        broker_deinit(&broker);
        broker_init(&broker, broker_config());
        cr_expect(is_readiness(200, "ready\n"));

        broker.commit_result = -EIO;
        broker_send(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        broker_flush(&broker);
        cr_expect(is_readiness(503, "the last commit failed: see the log\n"));
}
