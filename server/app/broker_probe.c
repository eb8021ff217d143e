/* SPDX-License-Identifier: Apache-2.0 */

#include "app/broker_probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time_units.h"
#include "config/config.h"
#include "mqtt/link.h"
#include "protocol/companion.h"

struct broker_probe {
        struct link *link;
        bool requires_plugin;
        /* Each change is logged. A fault stays the same until the broker has another one, or is usable. */
        enum { PROBE_UNKNOWN, PROBE_USABLE, PROBE_DOWN, PROBE_REFUSED, PROBE_LACKS_PLUGIN } state;
        char client_id[sizeof(COMPANION_RANDOM_ID_PREFIX "standby-") + 16];
        void (*closed)(void *userdata);
        void *userdata;
};

bool broker_probe_finds_plugin(const struct link *link) {
        return link_has_refused(link, COMPANION_PROBE) && !link_has_refused(link, COMPANION_BANNER);
}

static void probe_on_up(void *userdata, bool session_present) {
        struct broker_probe *probe = userdata;
        const struct endpoint *broker = link_endpoint(probe->link);
        bool lacks_plugin = probe->requires_plugin && !broker_probe_finds_plugin(probe->link);

        (void)session_present;
        if (lacks_plugin && probe->state != PROBE_LACKS_PLUGIN)
                log_error("require-plugin is on, but the broker at %s has no plugin: load "
                          "mosquitto_statestore.so in the broker; this standby waits for it",
                          endpoint_text(broker).text);
        if (!lacks_plugin && probe->state > PROBE_USABLE)
                log_info("this standby can use the broker at %s", endpoint_text(broker).text);
        probe->state = lacks_plugin ? PROBE_LACKS_PLUGIN : PROBE_USABLE;
}

static void probe_on_down(void *userdata, const char *cause) {
        struct broker_probe *probe = userdata;

        if (probe->state > PROBE_USABLE)
                return;
        log_warning("this standby has no connection to the broker at %s: %s; retrying",
                    endpoint_text(link_endpoint(probe->link)).text, cause);
        probe->state = PROBE_DOWN;
}

static void probe_on_refused(void *userdata, const struct refusal *refusal) {
        struct broker_probe *probe = userdata;

        if (probe->state == PROBE_REFUSED)
                return;
        log_error("the broker at %s refuses this standby: %s; %s",
                  endpoint_text(link_endpoint(probe->link)).text, refusal->cause, refusal->advice);
        probe->state = PROBE_REFUSED;
}

static void ignore_event(void *userdata) {
        (void)userdata;
}

static void ignore_acknowledgement(void *userdata, uint16_t id, bool no_subscriber) {
        (void)userdata;
        (void)id;
        (void)no_subscriber;
}

static void ignore_message(void *userdata, const struct message *message) {
        (void)userdata;
        (void)message;
}

int broker_probe_open(struct broker_probe **ret_probe, uv_loop_t *loop, const struct config *config,
                      uint64_t member) {
        static const struct slice no_properties[] = { { 0 } };
        CLEANUP(cleanup_free) struct broker_probe *probe = calloc(1, sizeof(*probe));
        struct link_config link_config = {
                .brokers = { .endpoints = config->endpoints, .n_endpoints = config->n_endpoints },
                .keepalive_s = (uint16_t)(config->keepalive_ms / MS_PER_S),
                .credentials = config->credentials,
                .subscriptions = { { .filter = COMPANION_BANNER, .qos = 1, .retained = true },
                                   { .filter = COMPANION_PROBE, .qos = 1 } },
                .n_subscriptions = 2,
                .user_properties = no_properties,
                .callbacks = { .up = probe_on_up,
                               .down = probe_on_down,
                               .refused = probe_on_refused,
                               .session_discarded = ignore_event,
                               .acknowledged = ignore_acknowledgement,
                               .message = ignore_message,
                               .userdata = probe },
        };
        int r;

        if (!probe)
                return -ENOMEM;

        probe->requires_plugin = config->require_plugin;
        snprintf(probe->client_id, sizeof(probe->client_id),
                 COMPANION_RANDOM_ID_PREFIX "standby-%016" PRIx64, member);
        link_config.client_id = probe->client_id;
        r = link_open(&probe->link, loop, &link_config);
        if (r == 0)
                *ret_probe = take_ptr(&probe);
        return r;
}

bool broker_probe_is_usable(const struct broker_probe *probe) {
        return probe->state == PROBE_USABLE;
}

static void probe_on_closed(void *userdata) {
        struct broker_probe *probe = userdata;

        probe->closed(probe->userdata);
        free(probe);
}

void broker_probe_close(struct broker_probe *probe, void (*closed)(void *userdata), void *userdata) {
        probe->closed = closed;
        probe->userdata = userdata;
        link_close(probe->link, probe_on_closed);
}
