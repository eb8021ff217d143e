/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The broker queues each message that a plugin publishes, and looks up the client id when it
 * processes this queue. If the client reconnected in between, the new connection would get a
 * notification for the old one. So the plugin keeps the frames until the tick, and looks up the
 * connections then. mosquitto 2.0 processes its queue directly after the tick, before it reads any
 * packet.
 *
 * mosquitto 2.1 reads packets after the tick, so there the plugin publishes at once. If a client
 * with a persistent session disconnects in the same iteration of the broker's loop, it gets the
 * notification when it reconnects.
 *
 * The plugin interface has no publish to several clients: each recipient needs its own list of
 * properties and payload.
 */

#include <errno.h>
#include <limits.h>

#include "base/cleanup.h"
#include "plugin/internal.h"
#include "protocol/companion_frame.h"

struct delivery {
        struct delivery *next;
        struct buf bytes;             /* the frame as it arrived */
        struct companion_frame frame; /* borrows from bytes */
        size_t next_recipient;        /* index in this frame; the recipients before it are finished */
        mosquitto_property *properties;
};

static struct delivery *delivery_free(struct delivery *delivery) {
        if (!delivery)
                return NULL;

        mosquitto_property_free_all(&delivery->properties);
        buf_deinit(&delivery->bytes);
        free(delivery);
        return NULL;
}

static void cleanup_delivery(struct delivery **delivery) {
        delivery_free(*delivery);
}

/* For properties_copy(). */
static int is_forwarded(const mosquitto_property *property) {
        switch (mosquitto_property_identifier(property)) {
        case MQTT_PROP_PAYLOAD_FORMAT_INDICATOR:
        case MQTT_PROP_CONTENT_TYPE:
        case MQTT_PROP_USER_PROPERTY:
                return 1;
        default:
                return 0;
        }
}

static int delivery_new(struct delivery **ret_delivery, const struct mosquitto_evt_control *message) {
        CLEANUP(cleanup_delivery) struct delivery *delivery = NULL;
        int r;

        delivery = calloc(1, sizeof(*delivery));
        if (!delivery)
                return -ENOMEM;
        buf_append(&delivery->bytes, message->payload, message->payloadlen);
        if (buf_failed(&delivery->bytes))
                return -ENOMEM;

        r = companion_frame_read(buf_slice(&delivery->bytes), &delivery->frame);
        if (r < 0)
                return r;
        r = properties_copy(&delivery->properties, message->properties, is_forwarded);
        if (r < 0)
                return r;

        *ret_delivery = take_ptr(&delivery);
        return 0;
}

/*
 * Skip the recipients that earlier frames contained, and set the position to the end of this frame.
 * Return false if the frame adds nothing: drop it.
 */
static bool skip_repeated(struct frame_position *position, struct delivery *delivery) {
        const struct companion_frame *frame = &delivery->frame;
        uint32_t end = frame->index + (uint32_t)companion_frame_n_recipients(frame);

        if (frame->sequence < position->sequence)
                return false;
        if (frame->sequence == position->sequence) {
                if (position->is_complete || end < position->n_recipients ||
                    (end == position->n_recipients && !frame->is_last))
                        return false;
                if (frame->index < position->n_recipients)
                        delivery->next_recipient = position->n_recipients - frame->index;
        }

        *position = (struct frame_position){ frame->sequence, end, frame->is_last };
        return true;
}

/*
 * If the plugin drops a frame that requests an acknowledgement, the store sends the frame again
 * after WELCOME.
 */
static bool will_be_repeated(const struct mosquitto_evt_control *message) {
        struct companion_frame frame;

        return companion_frame_read((struct slice){ message->payload, message->payloadlen }, &frame) == 0 &&
               frame.wants_acknowledgement;
}

int deliver_queue(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        CLEANUP(cleanup_delivery) struct delivery *delivery = NULL;
        int r;

        if (plugin->hello_client != message->client && will_be_repeated(message))
                return 0; /* an earlier frame may be lost */
        r = delivery_new(&delivery, message);
        if (r == -ENOMEM)
                plugin->hello_client = NULL;
        if (r < 0)
                return r;

        /* also for a repeated frame: the store may not have received the first acknowledgement */
        if (delivery->frame.wants_acknowledgement)
                plugin->is_acknowledgement_pending = true;
        if (skip_repeated(&plugin->position, delivery)) {
                *plugin->deliveries_tail = delivery;
                plugin->deliveries_tail = &delivery->next;
                delivery = NULL;
        }
        if (!plugin->has_ticked || broker_is_2_1())
                deliver_publish(plugin);
        return 0;
}

static int publish(const struct delivery *delivery, const char *client_id, struct buf *topic) {
        CLEANUP(cleanup_properties) mosquitto_property *properties = NULL;
        const struct slice payload = delivery->frame.payload;
        int r;

        buf_reset(topic);
        topic_append_notify(topic, slice_from_string(client_id), delivery->frame.key);
        if (topic->length > TOPIC_LENGTH_MAX)
                return -EINVAL;
        buf_append(topic, "", 1);
        if (buf_failed(topic))
                return -ENOMEM;
        r = properties_copy(&properties, delivery->properties, NULL);
        if (r < 0)
                return r;

        r = broker_errno(mosquitto_broker_publish_copy(client_id, (const char *)topic->data,
                                                       (int)payload.length, payload.data, 1, false,
                                                       properties));
        if (r == 0)
                properties = NULL; /* owned by the broker */
        return r;
}

/* Return false if memory is short: the next tick continues with the same recipient. */
static bool publish_frame(struct plugin *plugin, struct delivery *delivery) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        const struct companion_frame *frame = &delivery->frame;

        for (; delivery->next_recipient < companion_frame_n_recipients(frame); delivery->next_recipient++) {
                uint64_t number = companion_frame_recipient(frame, delivery->next_recipient);
                const struct connection *connection = connections_find(&plugin->connections, number);

                if (connection && publish(delivery, connection->client_id, &topic) == -ENOMEM)
                        return false;
        }
        if (frame->is_last)
                plugin->delivered_sequence = frame->sequence;
        return true;
}

void deliver_publish(struct plugin *plugin) {
        struct delivery *delivery;

        while ((delivery = plugin->deliveries) && publish_frame(plugin, delivery)) {
                plugin->deliveries = delivery->next;
                delivery_free(delivery);
        }
        if (plugin->deliveries)
                return;

        plugin->deliveries_tail = &plugin->deliveries;
        if (plugin->is_acknowledgement_pending && send_delivered(plugin) == 0)
                plugin->is_acknowledgement_pending = false;
}

void deliver_forget(struct plugin *plugin, const struct mosquitto *client) {
        if (plugin->hello_client == client)
                plugin->hello_client = NULL;
}

void deliver_reset(struct plugin *plugin) {
        while (plugin->deliveries) {
                struct delivery *next = plugin->deliveries->next;

                delivery_free(plugin->deliveries);
                plugin->deliveries = next;
        }
        plugin->deliveries_tail = &plugin->deliveries;
        plugin->position = (struct frame_position){ 0 };
        plugin->delivered_sequence = 0;
        plugin->is_acknowledgement_pending = false;
}
