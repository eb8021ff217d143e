/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HELLO, and frames of the store.
 *
 * The broker queues each message that a plugin publishes, and looks up the client id when it
 * processes this queue. If a client with a persistent session disconnects in the same iteration of
 * the broker's loop, it gets the notification when it reconnects.
 */

#include "plugin/from_store.h"

#include <errno.h>
#include <sodium.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "plugin/acl.h"
#include "plugin/broker.h"
#include "plugin/connections.h"
#include "plugin/internal.h"
#include "plugin/publish.h"
#include "plugin/record.h"
#include "plugin/records.h"
#include "plugin/slow_watchers.h"
#include "plugin/to_store.h"
#include "protocol/companion.h"
#include "protocol/frame.h"
#include "protocol/handshake.h"

/* 1. HELLO */

/*
 * Kick a former store with another client id, so that at most one store serves. A former
 * store with the same client id was disconnected by the broker.
 */
static int set_store_client_id(struct plugin *plugin, const char *client_id) {
        char *copy = strdup(client_id);

        if (!copy)
                return -ENOMEM;
        if (plugin->store_client_id && strcmp(plugin->store_client_id, copy) != 0)
                mosquitto_kick_client_by_clientid(plugin->store_client_id, true);
        free(plugin->store_client_id);
        plugin->store_client_id = copy;
        return 0;
}

static bool is_same_instance(const struct plugin *plugin, struct slice instance) {
        return slice_equal(instance, (struct slice){ plugin->instance, plugin->instance_length });
}

/* A new instance does not know the tracked connections. */
static void set_instance(struct plugin *plugin, const struct handshake_hello *hello,
                         const struct mosquitto *sender) {
        if (is_same_instance(plugin, hello->instance_id))
                return;
        connections_untrack_all(plugin, sender);
        plugin->position = (struct notification_position){ 0 };
        memcpy(plugin->instance, hello->instance_id.data, hello->instance_id.length);
        plugin->instance_length = hello->instance_id.length;
        plugin->first_served_broker_run = hello->served_broker_run;
}

/* Return whether the run returns after another run: two stores disconnect each other. */
static bool set_run(struct plugin *plugin, uint64_t run) {
        bool has_returned = run == plugin->former_run;

        if (run == plugin->run)
                return false;

        plugin->former_run = plugin->run;
        plugin->run = run;
        return has_returned;
}

/*
 * Return whether the instance has been served with another broker since its first HELLO to this one. What
 * this broker keeps is of that time: its sessions have missed what has happened since, and its requests may
 * have been executed.
 */
static bool has_served_another(const struct plugin *plugin, const struct handshake_hello *hello) {
        return is_same_instance(plugin, hello->instance_id) &&
               hello->served_broker_run != plugin->broker_run &&
               hello->served_broker_run != plugin->first_served_broker_run;
}

/*
 * Return whether numbered requests are sent again to this store: it remembers its executions of this broker
 * run, and no other store may have executed them. Or it is empty, which counts as a new state.
 */
static bool may_repeat_numbered(const struct plugin *plugin, const struct handshake_hello *hello) {
        return hello->served_broker_run == 0 || (hello->served_broker_run == plugin->broker_run &&
                                                 is_same_instance(plugin, hello->instance_id));
}

/* Does not return if this broker must end. */
static int accept_hello(struct plugin *plugin, const struct handshake_hello *hello,
                        const struct mosquitto *sender) {
        struct handshake_welcome welcome = { 0 };
        int r;

        if (has_served_another(plugin, hello))
                broker_end("the state store has served another broker since it served this one");
        if (!may_repeat_numbered(plugin, hello))
                records_end_all(plugin);
        plugin->hello_client = NULL;
        r = set_store_client_id(plugin, mosquitto_client_id(sender));
        if (r < 0)
                return r;
        set_instance(plugin, hello, sender);
        slow_watchers_check_log(plugin);
        welcome.is_takeover = set_run(plugin, hello->run);
        plugin->hello_number = hello->number;
        r = to_store_send_welcome(plugin, hello->key, &welcome);
        if (r < 0)
                return r;

        plugin->hello_client = sender;
        plugin->has_frame_failed = false;
        return 0;
}

/*
 * After the loss of the connection, the store's MQTT client repeats a HELLO without PUBACK, perhaps
 * behind a new one. Ignore it: the store has dropped its key.
 */
static bool is_repeated(const struct plugin *plugin, const struct handshake_hello *hello) {
        return hello->run == plugin->run && hello->number <= plugin->hello_number;
}

static int handle_hello(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct handshake_hello hello;
        int r;

        r = handshake_hello_read((struct slice){ message->payload, message->payloadlen }, &hello);
        if (r == 0 && !is_repeated(plugin, &hello))
                r = accept_hello(plugin, &hello, message->client);
        sodium_memzero(hello.key, sizeof(hello.key));
        return r;
}

/* 2. Frames */

/* Ignore the reply to a request that is not kept. */
static int process_reply(struct plugin *plugin, const struct frame_reply *reply) {
        struct record *record = records_find(&plugin->records, reply->record_number);
        int r = 0;

        if (!record)
                return 0;
        if (reply->tracking != FRAME_TRACKING_UNCHANGED) {
                record->connection->is_tracked = reply->tracking == FRAME_TRACKED;
                slow_watchers_check(plugin, record->connection);
        }
        if (reply->has_message)
                r = publish_reply(plugin, record, reply);
        if (r == -ENOMEM)
                return r;
        records_end(plugin, reply->record_number);
        return r;
}

static void process_kick(struct plugin *plugin, uint64_t number) {
        const struct connection *connection = connections_find(&plugin->connections, number);

        if (connection && connection->client != plugin->hello_client)
                mosquitto_kick_client_by_clientid(connection->client_id, true);
}

static int process_record(struct plugin *plugin, const struct frame_to_plugin_record *record) {
        int r;

        switch (record->kind) {
        case FRAME_REPLY:
                return process_reply(plugin, &record->reply);
        case FRAME_NOTIFICATION:
                to_store_demand_frame(plugin);
                return publish_notification(plugin, &record->notification);
        case FRAME_KICK:
                process_kick(plugin, record->connection);
                return 0;
        case FRAME_END:
                r = records_end(plugin, record->end.record_number);
                if (r == 0)
                        to_store_ended(plugin, record->end.record_number, record->end.work_ns);
                return r;
        }
        return 0;
}

/*
 * Process the records of a frame. What the broker refuses to publish, or names an unknown number, is
 * skipped. If memory is short, skip the number of a frame to the store instead: the
 * store sends HELLO, and repeats what was not processed.
 */
static int handle_frame(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct frame_to_plugin_record record;
        struct slice records;
        int r;

        r = frame_to_plugin_read((struct slice){ message->payload, message->payloadlen }, &records);
        if (r < 0)
                return r;

        to_store_begin_serving(plugin);
        if (records.length == 0)
                to_store_demand_frame(plugin);
        while (r != -ENOMEM && frame_to_plugin_next(&records, &record)) {
                r = process_record(plugin, &record);
                if (r < 0 && r != -ENOMEM)
                        mosquitto_log_printf(MOSQ_LOG_WARNING,
                                             "statestore: record of the store ignored: kind=%d",
                                             (int)record.kind);
        }
        if (r == -ENOMEM) {
                plugin->has_frame_failed = true;
                to_store_skip_frame(plugin);
        }
        to_store_fill_window(plugin);
        return 0;
}

/* 3. Messages */

/*
 * The broker calls the access checks for a client's message, but not for a bridge's: check each
 * sender here. Only HELLO is accepted over another connection than that of the last HELLO.
 */
static bool is_accepted(const struct plugin_load *load, const struct mosquitto *sender, bool is_hello) {
        return mosquitto_client_id(sender) && acl_is_store(load, sender) &&
               (is_hello || (sender == load->plugin->hello_client && !load->plugin->has_frame_failed));
}

/*
 * Ignore a malformed message: most releases of mosquitto close the connection on an error, so a
 * store of another version could not connect.
 */
int from_store_receive(const struct plugin_load *load, const struct mosquitto_evt_control *message) {
        bool is_hello = strcmp(message->topic, COMPANION_HELLO) == 0;
        int r;

        if (!is_accepted(load, message->client, is_hello))
                return 0;

        r = is_hello ? handle_hello(load->plugin, message) : handle_frame(load->plugin, message);
        if (r < 0 && r != -ENOMEM)
                mosquitto_log_printf(MOSQ_LOG_WARNING, "statestore: malformed message ignored: topic=%s",
                                     message->topic);
        return r == -ENOMEM ? r : 0;
}
