/* SPDX-License-Identifier: Apache-2.0 */

#include "io/link.h"

#include <errno.h>
#include <stdlib.h>

#include "common/assert.h"
#include "common/cleanup.h"
#include "io/client.h"
#include "io/link_state.h"
#include "io/mqtt.h"
#include "io/wakeup_pair.h"

#define MISC_INTERVAL_MS 1000 /* the library's own timers count in seconds */
#define CLOSE_TIMEOUT_MS 2000

/* What may wait for the broker before we hold back: libmosquitto keeps a copy of all of it. */
#define ROOM_MESSAGES 50000
#define ROOM_BYTES    (64 << 20)

static void free_link(struct link *link) {
        if (link->client)
                mosquitto_destroy(link->client);
        free(link);
        mosquitto_lib_cleanup();
}

static void free_link_cleanup(struct link **link) {
        if (*link)
                free_link(*link);
}

static void start_timers(struct link *link) {
        uv_timer_init(link->loop, &link->misc_timer);
        uv_timer_init(link->loop, &link->retry_timer);
        link->misc_timer.data = link;
        link->retry_timer.data = link;
        uv_timer_start(&link->misc_timer, link_misc, MISC_INTERVAL_MS, MISC_INTERVAL_MS);
        uv_timer_start(&link->retry_timer, link_attempt, 0, 0);
}

int link_open(struct link **ret_link, uv_loop_t *loop, const struct link_config *config) {
        CLEANUP(free_link_cleanup) struct link *link = NULL;
        int r;

        mosquitto_lib_init();
        link = calloc(1, sizeof(*link));
        if (!link) {
                mosquitto_lib_cleanup();
                return -ENOMEM;
        }

        link->config = *config;
        link->loop = loop;
        link->backoff_ms = BACKOFF_FIRST_MS;
        link->send_maximum = CLIENT_SEND_MAXIMUM;
        link->max_packet_bytes = MESSAGE_PACKET_MAX;
        wakeup_pair_withhold(true);
        r = client_new(&link->client, config->client_id, &config->credentials, link);
        wakeup_pair_withhold(false);
        if (r < 0)
                return r;

        link_set_callbacks(link->client);

        start_timers(link);
        *ret_link = take_ptr(&link);
        return 0;
}

bool link_is_closing(const struct link *link) {
        return uv_is_closing((const uv_handle_t *)&link->misc_timer);
}

void link_release(struct link *link) {
        void (*closed)(void *userdata) = link->closed;
        void *userdata = link->config.userdata;

        if (--link->n_open > 0)
                return;
        free_link(link);
        closed(userdata);
}

static void timer_closed(uv_handle_t *handle) {
        link_release(handle->data);
}

static bool is_subscribed(const struct link *link) {
        return link->poll && link->n_subscribed == link->config.n_subscriptions;
}

void link_finish_close(struct link *link) {
        bool was_subscribed = is_subscribed(link);

        if (link_is_closing(link))
                return;

        link->state = LINK_WAITING; /* nothing that the library still tells leads to another attempt */
        link_drop_poll(link);
        if (was_subscribed)
                client_disconnect(link->client);
        link->n_open = 2 + link->is_resolving;
        if (link->is_resolving)
                uv_cancel((uv_req_t *)&link->resolution);
        uv_close((uv_handle_t *)&link->misc_timer, timer_closed);
        uv_close((uv_handle_t *)&link->retry_timer, timer_closed);
}

void link_close(struct link *link, void (*closed)(void *userdata)) {
        ASSERT(!link->closed);

        link->closed = closed;
        link->state = LINK_CLOSING;
        link->close_until_ms = uv_now(link->loop) + CLOSE_TIMEOUT_MS;
        if (is_subscribed(link))
                link_update_poll(link);
        else
                link_finish_close(link);
}

int link_publish(struct link *link, const struct message *message, uint16_t *ret_id) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        int id = 0;
        int r;

        if (link->n_outstanding >= LINK_OUTSTANDING_MAX)
                return -EAGAIN;
        /* the library counts a byte or two less, and the broker closes the connection of a client that sends too much */
        if (message_packet_size(message) > link->max_packet_bytes)
                return -EMSGSIZE;

        r = mqtt_properties_new(&properties, message);
        if (r < 0)
                return r;

        r = mqtt_error(mosquitto_publish_v5(link->client, &id, (const char *)message->topic.data,
                                            (int)message->payload.length, message->payload.data, 1, false,
                                            properties));
        /* without a connection, or where it broke just now, the library keeps the message and sends it later */
        if (r < 0 && r != -ENOTCONN && r != -EIO)
                return r;

        link->n_outstanding++;
        link->n_bytes_of[id] = (uint32_t)message_size(message);
        link->n_outstanding_bytes += link->n_bytes_of[id];
        *ret_id = (uint16_t)id;
        return 0;
}

bool link_has_room(const struct link *link) {
        return link->n_outstanding < ROOM_MESSAGES && link->n_outstanding_bytes < ROOM_BYTES;
}

uint32_t link_max_packet_bytes(const struct link *link) {
        return link->max_packet_bytes;
}

void link_set_reading(struct link *link, enum link_reading reading) {
        if (link->reading == reading)
                return;

        link->reading = reading;
        link_update_poll(link);
}

const struct endpoint *link_endpoint(const struct link *link) {
        return &link->config.endpoints[link->endpoint];
}
