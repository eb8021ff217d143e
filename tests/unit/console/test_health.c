/* SPDX-License-Identifier: Apache-2.0 */

#include "base/system_clock.h"
#include "http/console/health.h"
#include "unit/pipeline/fake_broker.h"

static struct broker broker;
static struct buf text;
static struct cluster_view cluster;
static struct health_history history;

static void setup(void) {
        broker_init(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
        buf_deinit(&text);
}

TestSuite(health, .init = setup, .fini = teardown);

/* Whether the reply has this text. */
static bool shows_of(const struct pipeline *pipeline, bool stores_data, const char *expected) {
        const struct store_view view = { .pipeline = pipeline, .cluster = &cluster, .disconnected = "" };
        const struct health_source source = { .view = &view,
                                              .history = &history,
                                              .stores_data = stores_data,
                                              .now_ms = broker.now.wall_ms,
                                              .started_ms = 5 };

        buf_reset(&text);
        health_append(&text, &source);
        return strstr(buf_text(&text), expected);
}

static bool shows(const char *expected) {
        return shows_of(broker.pipeline, true, expected);
}

Test(health, shows_the_present_state) {
        broker_ask(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        cr_expect(shows("{\"ready\":true,\"reason\":\"\",\"warnings\":["));
        cr_expect(shows("\"broker\":{\"connected\":true,\"kind\":\"plain\"}"));
        cr_expect(shows("\"keys\":{\"n\":1,\"max\":"));
        cr_expect(shows("\"commits\":{\"n\":"));
        cr_expect(shows_of(broker.pipeline, false, "\"commits\":null,"));
        cr_expect(shows("\"cluster\":null,\"disk\":null,"));
        cr_expect(shows("\"started_ms\":5,\"samples\":{\"interval_ms\":5000,"));
        cr_expect(shows("\"requests\":{\"SET\":[null,null,"));
}

Test(health, shows_the_history) {
        health_history_add(&history, &(struct counters){ .n_replies[VERB_GET][0] = 12 },
                           &(struct gauges){ 0 }, 77);
        cr_expect(shows("\"end_ms\":77,"));
        cr_expect(shows(",null,12],\"DEL\":["));
        cr_expect(shows(",null,0]}}\n"));
}

Test(health, standby_has_a_reason_and_no_numbers) {
        cluster = (struct cluster_view){ .is_member = true, .term = 3, .status = "standby: \"a\" leads" };
        cr_expect(shows_of(NULL, true,
                           "{\"ready\":false,\"reason\":\"standby: \\\"a\\\" leads\",\"warnings\":[],"));
        cr_expect(shows_of(NULL, true, "\"cluster\":{\"leads\":false,\"term\":3}"));
}

Test(health, warns_without_the_plugin) {
        cr_expect(shows(
                "\"warnings\":[{\"text\":\"the plugin does not announce itself; without the plugin client "
                "ids are not verified, and only clients that subscribe are notified\",\"remedy\":\"load "
                "mosquitto_statestore.so if"));
}

Test(health, warns_of_a_clock_that_is_ahead) {
        broker_ask(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        broker.now.wall_ms -= 1000;
        cr_expect_not(shows("the store's clock"));
        broker.now.wall_ms -= 4000;
        cr_expect(
                shows("\"text\":\"the store's clock is 5 s ahead of this machine's; timestamps more than a "
                      "minute ahead are refused\",\"remedy\":\"synchronize the clocks"));
}

Test(health, warns_of_a_limit) {
        pipeline_set_limits(
                broker.pipeline,
                (struct engine_limits){ .max_keys = 1, .max_bytes = 1 << 20, .max_registrations = 10 });
        cr_expect_not(shows("of at most"));
        broker_ask(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("v")) });
        cr_expect(shows("\"text\":\"1 of at most 1 keys are used; beyond the limit the store refuses "
                        "more\",\"remedy\":\"delete some, or raise max-keys\"}"));
}

Test(health, warns_of_dropped_messages_and_a_disk_that_is_almost_full) {
        cr_expect_not(shows("dropped in the last"));
        broker.usage = (struct storage_usage){ .n_free_bytes = 12 << 20, .n_disk_bytes = 200 << 20 };
        health_history_add(&history, &(struct counters){ .n_drops[DROP_TOO_LARGE] = 3 },
                           &(struct gauges){ 0 }, 0);
        cr_expect(shows("\"3 requests, replies and notifications were dropped in the last 15 minutes\""));
        cr_expect(shows("\"only 12 MiB are free on the disk of the data directory\""));
        cr_expect(shows("\"disk\":{\"free_bytes\":12582912}"));
}
