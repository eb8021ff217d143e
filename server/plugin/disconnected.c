/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The broker drops DISCONNECTED if the queue of the store's session is full, which clients can
 * cause, and does not tell the plugin. So the plugin repeats DISCONNECTED until the store
 * acknowledges it. A lost DISCONNECTED would leave registrations in the store that count against
 * its quota, until the next HELLO or the client's next KEYNOTIFY.
 *
 * The list is bounded by the number of connections that the store has tracked. mosquitto before
 * 2.0.15 with per_listener_settings sends no ticks, so there the plugin does not repeat
 * DISCONNECTED.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/system_clock.h"
#include "base/time_units.h"
#include "plugin/internal.h"

#define REPEAT_INTERVAL_NS NS_PER_S

/*
 * Maximum number of DISCONNECTED that one tick repeats: more would leave less room for requests in
 * the store's queue.
 */
#define REPEATED_MAX 100

struct disconnected_connection {
        UT_hash_handle by_number;
        uint64_t number;
};

static struct disconnected_connection *find(const struct disconnected_connections *disconnected,
                                            uint64_t number) {
        struct disconnected_connection *connection;

        HASH_FIND(by_number, disconnected->by_number, &number, sizeof(number), connection);
        return connection;
}

static int add(struct disconnected_connections *disconnected, uint64_t number) {
        struct disconnected_connection *connection;

        if (find(disconnected, number))
                return 0;
        if (!disconnected->by_number)
                disconnected->repeat_at_ns = system_clock_mono_ns() + REPEAT_INTERVAL_NS;

        connection = calloc(1, sizeof(*connection));
        if (!connection)
                return -ENOMEM;
        connection->number = number;
        HASH_ADD(by_number, disconnected->by_number, number, sizeof(connection->number), connection);
        if (connection->by_number.tbl)
                return 0;
        free(connection);
        return -ENOMEM;
}

static void drop(struct disconnected_connections *disconnected, struct disconnected_connection *connection) {
        HASH_DELETE(by_number, disconnected->by_number, connection);
        free(connection);
}

int disconnected_report(struct plugin *plugin, uint64_t number) {
        int r = add(&plugin->disconnected, number);
        int r_sent = send_disconnected(plugin, number);

        return r < 0 ? r : r_sent;
}

void disconnected_acknowledge(struct disconnected_connections *disconnected, uint64_t number) {
        struct disconnected_connection *connection = find(disconnected, number);

        if (!connection)
                return;
        drop(disconnected, connection);
        disconnected->is_acknowledging = true;
}

/*
 * If no acknowledgement has arrived since the last repetition, the store is slow or stopped, and
 * the messages may still wait in its queue. Then repeat one only: its acknowledgement shows that
 * the store receives messages again.
 */
void disconnected_repeat(struct plugin *plugin) {
        struct disconnected_connections *disconnected = &plugin->disconnected;
        size_t n = disconnected->is_acknowledging ? REPEATED_MAX : 1;
        int64_t now_ns;

        if (!disconnected->by_number || !plugin->hello_client)
                return;
        now_ns = system_clock_mono_ns();
        if (now_ns < disconnected->repeat_at_ns)
                return;

        disconnected->repeat_at_ns = now_ns + REPEAT_INTERVAL_NS;
        disconnected->is_acknowledging = false;
        for (const struct disconnected_connection *c = disconnected->by_number; c && n > 0;
             c = c->by_number.next, n--)
                if (send_disconnected(plugin, c->number) < 0)
                        return; /* memory is short: repeat at a later tick */
}

void disconnected_clear(struct disconnected_connections *disconnected) {
        struct disconnected_connection *connection, *next;

        HASH_ITER(by_number, disconnected->by_number, connection, next)
        drop(disconnected, connection);
}
