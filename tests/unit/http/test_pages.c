/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>

#include "base/system_clock.h"
#include "base/time_units.h"
#include "http/pages.h"
#include "unit/pipeline/fake_broker.h"

static struct broker broker;
static struct buf text;
static struct cluster_view cluster;
static const char *disconnected = "";

static void setup(void) {
        broker_init_down(&broker, broker_config());
}

static void teardown(void) {
        broker_deinit(&broker);
        buf_deinit(&text);
}

TestSuite(pages, .init = setup, .fini = teardown);

/* Replace the text by the page. Returns its status. */
static unsigned int render(const struct store_page *page) {
        struct store_view view = { .pipeline = broker.pipeline,
                                   .cluster = &cluster,
                                   .disconnected = disconnected };

        buf_reset(&text);
        return page->render(&view, &text);
}

/* Whether /readyz has this status and text. */
static bool is_readiness(unsigned int status, const char *expected) {
        return render(&page_readiness) == status &&
               slice_equal(buf_slice(&text), slice_from_string(expected));
}

Test(pages, readiness_names_what_the_store_waits_for) {
        cr_expect(is_readiness(503, "not connected to a broker yet\n"));
        disconnected = "no connection to the broker at h:1: refused";
        cr_expect(is_readiness(503, "no connection to the broker at h:1: refused\n"));

        broker_say(&broker, COMPANION_BANNER, COMPANION_VERSION);
        broker_connect(&broker, false);
        cr_expect(is_readiness(503, "waiting for the reply of the plugin in the broker\n"));

        broker_welcome(&broker);
        cr_expect(is_readiness(200, "ready\n"));
}

Test(pages, readiness_names_the_required_plugin) {
        struct pipeline_config config = broker_config();

        config.requires_plugin = true;
        broker_deinit(&broker);
        broker_init_down(&broker, config);
        pipeline_connected(broker.pipeline, false);
        pipeline_advance(broker.pipeline, broker.now);
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

Test(pages, readiness_names_a_full_disk) {
        struct pipeline_config config = broker_config();

        config.is_disk_full = true;
        broker_deinit(&broker);
        broker_init(&broker, config);
        cr_expect(is_readiness(503, "the disk of the data directory is full: keys are served, but can only "
                                    "be deleted until there is room\n"));
}

/* Another member would have the same etcd. */
Test(pages, leader_with_a_full_etcd_is_ready) {
        struct pipeline_config config = broker_config();

        config.is_disk_full = true;
        broker_deinit(&broker);
        broker_init(&broker, config);
        cluster.is_member = true;
        broker.has_no_lease = true; /* a full etcd does not renew it */
        cr_expect(is_readiness(200, "ready\netcd is full: keys are read, but not written, until it is "
                                    "compacted and defragmented, and its alarm is disarmed\n"));
        broker.is_storage_waiting = true;
        cr_expect(is_readiness(503, "the lease of this member has ended: etcd confirms no commit\n"));
}

Test(pages, readiness_names_a_lease_that_has_ended) {
        broker_deinit(&broker);
        broker_init(&broker, broker_config());
        broker.has_no_lease = true;
        cr_expect(is_readiness(503, "the lease of this member has ended: etcd confirms no commit\n"));
        broker.has_no_lease = false;
        cr_expect(is_readiness(200, "ready\n"));
}

Test(pages, metrics_of_a_member_have_its_term) {
        cluster = (struct cluster_view){ .is_member = true, .leads = true, .term = 7 };
        render(&page_metrics);
        cr_expect_not_null(strstr((const char *)text.data, "\nstatestore_leads 1\n"));
        cr_expect_not_null(strstr((const char *)text.data, "\nstatestore_term 7\n"));
}

Test(pages, standby_is_not_ready) {
        struct store_view view = { .cluster = &cluster, .disconnected = disconnected };

        cluster = (struct cluster_view){ .is_member = true, .status = "standby: \"a\" leads" };
        cr_expect_eq(page_readiness.render(&view, &text), 503);
        cr_expect_eq(page_metrics.render(&view, &text), 200);
        cr_expect_eq(page_health.render(&view, &text), 200);
        cr_expect_eq(page_version.render(&view, &text), 200);
        cr_expect_not_null(buf_text(&text));
        cr_expect_not_null(strstr((const char *)text.data, "standby: \"a\" leads\n"));
        cr_expect_not_null(strstr((const char *)text.data, "\nstatestore_leads 0\n"));
}

Test(pages, readiness_warns_of_a_disk_that_is_almost_full) {
        broker_deinit(&broker);
        broker_init(&broker, broker_config());
        broker.usage = (struct storage_usage){ .n_free_bytes = 12 << 20, .n_disk_bytes = 200 << 20 };
        cr_expect(is_readiness(200, "ready\nonly 12 MiB are free on the disk of the data directory\n"));
        broker.usage.n_disk_bytes = 100 << 20; /* more than a tenth is free */
        cr_expect(is_readiness(200, "ready\n"));
        broker.usage =
                (struct storage_usage){ .n_free_bytes = STORAGE_LOW_BYTES, .n_disk_bytes = UINT64_MAX };
        cr_expect(is_readiness(200, "ready\n"));
}
