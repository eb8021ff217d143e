/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <limits.h>

#include "common/cleanup.h"
#include "plugin/internal.h"

/* To this client alone, or with NULL to all who subscribe. */
static int tell(const char *client_id, const char *topic, struct slice payload, bool retain,
                mosquitto_property *properties) {
        if (payload.length > INT_MAX)
                return -ENOMEM;

        return broker_error(mosquitto_broker_publish_copy(client_id, topic, (int)payload.length,
                                                          payload.data, 1, retain, properties));
}

int tell_plugin(void) {
        return tell(NULL, COMPANION_BANNER, SLICE_LITERAL(COMPANION_VERSION), true, NULL);
}

int tell_left(const struct plugin *plugin, struct slice number) {
        return plugin->peer_id ? tell(plugin->peer_id, COMPANION_DISCONNECTED, number, false, NULL) : 0;
}

int tell_rival(const struct plugin *plugin) {
        return tell(plugin->peer_id, COMPANION_TAKEOVER, SLICE_LITERAL(""), false, NULL);
}

int tell_welcome(const struct plugin *plugin, struct companion_pair hello) {
        CLEANUP(cleanup_properties) mosquitto_property *properties = NULL;
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        int r;

        r = broker_error(mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA, hello.text,
                                                       (uint16_t)hello.length));
        if (r < 0)
                return r;

        buf_append_string(&payload, plugin->connections.seal);
        buf_append_string(&payload, "\n");
        for (const struct connection *c = plugin->connections.by_client; c; c = c->by_client.next) {
                if (!c->held)
                        continue;
                buf_append_slice(&payload, connection_number(c));
                buf_append_string(&payload, "\n");
        }
        if (buf_failed(&payload))
                return -ENOMEM;

        r = tell(plugin->peer_id, COMPANION_WELCOME, buf_slice(&payload), false, properties);
        if (r == 0)
                properties = NULL; /* the broker's now */
        return r;
}
