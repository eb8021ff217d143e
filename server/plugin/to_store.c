/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <limits.h>
#include <sodium.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "plugin/internal.h"

/*
 * Publish to this client only, or to all subscribers if client_id is NULL. On success, the broker
 * owns properties.
 */
static int publish(const char *client_id, const char *topic, struct slice payload, bool retain,
                   mosquitto_property *properties) {
        if (payload.length > INT_MAX)
                return -ENOMEM;

        return broker_errno(mosquitto_broker_publish_copy(client_id, topic, (int)payload.length,
                                                          payload.data, 1, retain, properties));
}

int send_banner(void) {
        return publish(NULL, COMPANION_BANNER, SLICE_LITERAL(COMPANION_VERSION), true, NULL);
}

static int publish_to_store(const struct plugin *plugin, const char *topic, struct slice payload) {
        return plugin->store_client_id ? publish(plugin->store_client_id, topic, payload, false, NULL) : 0;
}

static int publish_number(const struct plugin *plugin, const char *topic, uint64_t number) {
        char digits[UINT64_DIGITS_MAX];
        size_t length = format_uint64(digits, number, 1);

        return publish_to_store(plugin, topic, (struct slice){ (const uint8_t *)digits, length });
}

int send_disconnected(const struct plugin *plugin, uint64_t number) {
        return publish_number(plugin, COMPANION_DISCONNECTED, number);
}

int send_slow_watcher(const struct plugin *plugin, struct slice client_id) {
        return publish_to_store(plugin, COMPANION_SLOW_WATCHER, client_id);
}

int send_takeover(const struct plugin *plugin) {
        return publish_to_store(plugin, COMPANION_TAKEOVER, SLICE_LITERAL(""));
}

int send_delivered(const struct plugin *plugin) {
        return publish_number(plugin, COMPANION_DELIVERED, plugin->delivered_sequence);
}

static int append_welcome(struct buf *text, const struct plugin *plugin, const struct hello *hello) {
        CLEANUP(buf_deinit) struct buf numbers = { 0 };
        struct companion_welcome welcome = { .sequence = plugin->request_sequence,
                                             .is_guarded = hello->is_connect_checked,
                                             .delivered = plugin->delivered_sequence };

        connections_append_tracked(&plugin->connections, &numbers);
        if (buf_failed(&numbers))
                return -ENOMEM;

        welcome.connections = (uint64_t *)numbers.data;
        welcome.n_connections = numbers.length / sizeof(*welcome.connections);
        memcpy(welcome.mac_key, plugin->mac_key, sizeof(welcome.mac_key));
        companion_welcome_append(text, &welcome);
        sodium_memzero(welcome.mac_key, sizeof(welcome.mac_key));
        return 0;
}

/* Encrypt the text and erase it. */
static int encrypt_text(struct buf *text, const struct hello *hello, uint8_t **ret_box) {
        uint8_t nonce[COMPANION_NONCE_SIZE];
        uint8_t *box;

        if (buf_failed(text))
                return -ENOMEM;
        box = malloc(text->length + COMPANION_BOX_EXTRA);
        if (!box)
                return -ENOMEM;

        random_fill(nonce, sizeof(nonce));
        companion_box_seal(buf_slice(text), hello->payload.key, nonce, box);
        sodium_memzero(text->data, text->length);
        *ret_box = box;
        return 0;
}

int send_welcome(const struct plugin *plugin, const struct hello *hello) {
        CLEANUP(cleanup_properties) mosquitto_property *properties = NULL;
        CLEANUP(buf_deinit) struct buf text = { 0 };
        CLEANUP(cleanup_free) uint8_t *box = NULL;
        struct companion_number_pair pair = companion_number_pair(hello->run, hello->number);
        int r;

        r = broker_errno(mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA, pair.text,
                                                       (uint16_t)pair.length));
        if (r < 0)
                return r;
        r = append_welcome(&text, plugin, hello);
        if (r == 0)
                r = encrypt_text(&text, hello, &box);
        if (r < 0)
                return r;

        r = publish(plugin->store_client_id, COMPANION_WELCOME,
                    (struct slice){ box, text.length + COMPANION_BOX_EXTRA }, false, properties);
        if (r == 0)
                properties = NULL; /* owned by the broker */
        return r;
}
