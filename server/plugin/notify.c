/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <limits.h>

#include "base/cleanup.h"
#include "plugin/internal.h"

/* To this client alone, or with NULL to all who subscribe. */
static int send(const char *client_id, const char *topic, struct slice payload, bool retain,
                mosquitto_property *properties) {
        if (payload.length > INT_MAX)
                return -ENOMEM;

        return broker_error(mosquitto_broker_publish_copy(client_id, topic, (int)payload.length,
                                                          payload.data, 1, retain, properties));
}

int tell_banner(void) {
        return send(NULL, COMPANION_BANNER, SLICE_LITERAL(COMPANION_VERSION), true, NULL);
}

int tell_disconnected(const struct plugin *plugin, struct slice number) {
        return plugin->peer_id ? send(plugin->peer_id, COMPANION_DISCONNECTED, number, false, NULL) : 0;
}

int tell_takeover(const struct plugin *plugin) {
        return send(plugin->peer_id, COMPANION_TAKEOVER, SLICE_LITERAL(""), false, NULL);
}

static const char *guard_word(const struct plugin *plugin, const struct hello *hello) {
        if (hello->is_guarded)
                return COMPANION_GUARDED;
        return plugin->is_client_id_fixed ? COMPANION_FIXED : COMPANION_UNGUARDED;
}

static void append_welcome(struct buf *text, const struct plugin *plugin, const struct hello *hello) {
        buf_append(text, plugin->mac_key, sizeof(plugin->mac_key));
        buf_append_uint(text, plugin->last_request);
        buf_append_string(text, "\n");
        buf_append_string(text, guard_word(plugin, hello));
        buf_append_string(text, "\n");
        for (const struct connection *c = plugin->connections.by_client; c; c = c->by_client.next) {
                if (!c->is_tracked)
                        continue;
                buf_append_string(text, c->number_text);
                buf_append_string(text, "\n");
        }
}

static int plugin_token(struct buf *text, const struct hello *hello, uint8_t **ret_box) {
        uint8_t *box;

        if (buf_failed(text))
                return -ENOMEM;
        box = malloc(text->length + COMPANION_BOX_EXTRA);
        if (!box)
                return -ENOMEM;

        companion_box_seal(buf_slice(text), hello->key, box);
        sodium_memzero(text->data, text->length);
        *ret_box = box;
        return 0;
}

int plugin_send_welcome(const struct plugin *plugin, const struct hello *hello) {
        CLEANUP(cleanup_properties) mosquitto_property *properties = NULL;
        CLEANUP(buf_deinit) struct buf text = { 0 };
        CLEANUP(cleanup_free) uint8_t *box = NULL;
        struct companion_pair pair = companion_pair(hello->run, hello->sequence);
        int r;

        r = broker_error(mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA, pair.text,
                                                       (uint16_t)pair.length));
        if (r < 0)
                return r;
        append_welcome(&text, plugin, hello);
        r = plugin_token(&text, hello, &box);
        if (r < 0)
                return r;

        r = send(plugin->peer_id, COMPANION_WELCOME,
                 (struct slice){ box, text.length + COMPANION_BOX_EXTRA }, false, properties);
        if (r == 0)
                properties = NULL; /* the broker's now */
        return r;
}
