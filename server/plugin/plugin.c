/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <sodium.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "fair_queue/fair_queue.h"
#include "plugin/acl.h"
#include "plugin/broker.h"
#include "plugin/connections.h"
#include "plugin/from_store.h"
#include "plugin/internal.h"
#include "plugin/options.h"
#include "plugin/records.h"
#include "plugin/requests.h"
#include "plugin/slow_watchers.h"
#include "plugin/to_store.h"
#include "protocol/broker_log.h"
#include "protocol/companion.h"
#include "protocol/companion_box.h"
#include "protocol/frame.h"
#include "protocol/topics.h"

#define EXPORT __attribute__((visibility("default")))

/* An event that the headers of 2.0 do not define. */
#define EVENT_CLIENT_OFFLINE 28

/* A step of the wall clock by less than this delays no tick. */
#define TICK_BACK_S (24L * 60 * 60)

/* The state that all loads share. */
static struct plugin shared_plugin;

static int plugin_on_message(int event, void *event_data, void *userdata) {
        struct mosquitto_evt_message *message = event_data;
        const struct plugin_load *load = userdata;

        (void)event;
        requests_drop_staged(load->plugin);
        to_store_check_deadlines(load->plugin);
        if (strcmp(message->topic, TOPIC_INVOKE) == 0)
                return requests_receive(load, message);
        return acl_may_publish(load, message->client, message->topic) ? MOSQ_ERR_SUCCESS
                                                                      : MOSQ_ERR_ACL_DENIED;
}

static int plugin_on_control(int event, void *event_data, void *userdata) {
        const struct plugin_load *load = userdata;

        (void)event;
        requests_drop_staged(load->plugin);
        to_store_check_deadlines(load->plugin);
        return from_store_receive(load, event_data) < 0 ? MOSQ_ERR_NOMEM : MOSQ_ERR_SUCCESS;
}

/*
 * The delivery of a message to the store is not granted: what the plugin does with the message, it
 * does here.
 */
static int plugin_on_acl_check(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_acl_check *check = event_data;
        struct plugin_load *load = userdata;

        (void)event;
        if (check->access != MOSQ_ACL_READ)
                requests_drop_staged(load->plugin);
        else if (strcmp(check->topic, TOPIC_INVOKE) == 0 && acl_is_store(load, check->client))
                requests_take(load->plugin, check);
        else if (strcmp(check->topic, BROKER_LOG_NOTICE) == 0 && acl_is_store(load, check->client))
                slow_watchers_read_line(load->plugin, (struct slice){ check->payload, check->payloadlen });
        return acl_check(load, check);
}

/* The client is looked up by its pointer, because its client id may be NULL here. */
static int plugin_on_disconnect(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_disconnect *disconnect = event_data;
        const struct plugin_load *load = userdata;
        struct connection *connection;

        (void)event;
        requests_drop_staged(load->plugin);
        if (disconnect->client == load->plugin->hello_client)
                load->plugin->hello_client = NULL;
        connection = connections_find_client(&load->plugin->connections, disconnect->client);
        if (connection)
                to_store_report_disconnect(load->plugin, connection);
        return MOSQ_ERR_SUCCESS;
}

/*
 * Let 2.1 send a tick in each iteration of its loop, as 2.0 does, and wait no longer than until the
 * next deadline. In 2.1 the loop waits at most next_s and next_ms together (next_ms is next_ns in
 * the headers of 2.0), if this is positive. But it forgets this limit in the next iteration, unless
 * that sends a tick, too. It sends a tick when the wall clock has passed the second of the last tick
 * plus next_s, whatever next_ms is. So next_s is far in the past.
 */
static void set_next_tick(const struct plugin *plugin, struct mosquitto_evt_tick *tick) {
        int64_t left_ns;

        if (!broker_is_2_1())
                return;
        left_ns = to_store_deadline_ns(plugin) - system_clock_mono_ns();
        tick->next_s = -TICK_BACK_S;
        if (left_ns < TICK_BACK_S * NS_PER_S)
                tick->next_ns = (long)(TICK_BACK_S * MS_PER_S + 1 + (left_ns > 0 ? left_ns / NS_PER_MS : 0));
}

static int plugin_on_tick(int event, void *event_data, void *userdata) {
        struct plugin_load *load = userdata;
        struct plugin *plugin = load->plugin;

        (void)event;
        requests_drop_staged(plugin);
        connections_kick_scheduled(plugin);
        to_store_check_deadlines(plugin);
        to_store_send_if_idle(plugin);
        set_next_tick(plugin, event_data);
        load->is_order_valid = false; /* another plugin may have ended the event before plugin_on_reload() */
        return MOSQ_ERR_SUCCESS;
}

/*
 * Let the broker also call the callbacks of other plugins: SUCCESS would end the event in 2.0,
 * DEFER is an error in 2.1.
 */
static int plugin_on_reload(int event, void *event_data, void *userdata) {
        struct plugin_load *load = userdata;

        (void)event;
        (void)event_data;
        requests_drop_staged(load->plugin);
        load->is_order_valid = false;
        return broker_is_2_1() ? MOSQ_ERR_SUCCESS : MOSQ_ERR_PLUGIN_DEFER;
}

static const struct {
        int event;
        MOSQ_FUNC_generic_callback function;
        const char *topic; /* of MOSQ_EVT_CONTROL */
} callbacks[] = {
        { MOSQ_EVT_DISCONNECT, plugin_on_disconnect, NULL },
        { MOSQ_EVT_MESSAGE, plugin_on_message, NULL },
        { MOSQ_EVT_TICK, plugin_on_tick, NULL },
        { MOSQ_EVT_RELOAD, plugin_on_reload, NULL },
        { MOSQ_EVT_ACL_CHECK, plugin_on_acl_check, NULL },
        { MOSQ_EVT_CONTROL, plugin_on_control, COMPANION_HELLO },
        { MOSQ_EVT_CONTROL, plugin_on_control, COMPANION_FRAME_TO_PLUGIN },
};

/*
 * 2.1 reports the end of a connection as DISCONNECT if the session also ends, else as
 * CLIENT_OFFLINE. The data of both events have the same layout. 2.0 reports each end as DISCONNECT
 * and refuses to register CLIENT_OFFLINE: this reveals the version.
 */
static int register_offline(struct plugin_load *load) {
        int result;

        result = mosquitto_callback_register(load->id, EVENT_CLIENT_OFFLINE, plugin_on_disconnect, NULL,
                                             load);
        if (result == MOSQ_ERR_NOMEM)
                return -ENOMEM;
        broker_set_2_1(result == MOSQ_ERR_SUCCESS);
        return 0;
}

static int register_all(struct plugin_load *load) {
        int r, result;

        r = register_offline(load);
        for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(callbacks); i++) {
                result = mosquitto_callback_register(load->id, callbacks[i].event, callbacks[i].function,
                                                     callbacks[i].topic, load);
                /*
                 * 2.1 accepts one callback for each control topic, not one for each listener: the
                 * first load has it.
                 */
                if (!callbacks[i].topic || result != MOSQ_ERR_ALREADY_EXISTS)
                        r = broker_errno(result);
        }
        return r;
}

static void unregister_all(struct plugin_load *load) {
        for (size_t i = 0; i < ARRAY_LENGTH(callbacks); i++)
                mosquitto_callback_unregister(load->id, callbacks[i].event, callbacks[i].function,
                                              callbacks[i].topic);
        mosquitto_callback_unregister(load->id, MOSQ_EVT_ACL_CHECK, acl_on_undecided, NULL);
        if (broker_is_2_1())
                mosquitto_callback_unregister(load->id, EVENT_CLIENT_OFFLINE, plugin_on_disconnect, NULL);
}

static int set_up_plugin(struct plugin *plugin) {
        int r;

        r = companion_box_init();
        if (r < 0)
                return r;

        *plugin = (struct plugin){ .to_store.timeout_ns = INT64_MAX,
                                   .wait_s = COMPANION_WAIT_S_DEFAULT,
                                   .queue_bytes_max = COMPANION_QUEUE_BYTES_DEFAULT };
        random_fill(&plugin->broker_run, sizeof(plugin->broker_run));
        connections_init(&plugin->connections);
        return 0;
}

static void tear_down_plugin(struct plugin *plugin) {
        requests_drop_staged(plugin);
        records_deinit(plugin);
        connections_deinit(plugin);
        fair_queues_deinit(&plugin->records.queues);
        free(plugin->store_client_id);
        free(plugin->reply_prefix);
        sodium_memzero(plugin, sizeof(*plugin));
}

static struct plugin_load *load_free(struct plugin_load *load) {
        if (!load)
                return NULL;

        unregister_all(load);
        if (--load->plugin->n_loads == 0)
                tear_down_plugin(load->plugin);
        free(load->username);
        free(load);
        return NULL;
}

CLEANUP_FUNCTION(cleanup_load, struct plugin_load *, load_free)

static int load_plugin(struct plugin_load **ret_load, mosquitto_plugin_id_t *id,
                       const struct mosquitto_opt *options, int n_options) {
        CLEANUP(cleanup_load) struct plugin_load *load = NULL;
        int r = shared_plugin.n_loads == 0 ? set_up_plugin(&shared_plugin) : 0;

        if (r < 0)
                return r;
        load = calloc(1, sizeof(*load));
        if (!load)
                return -ENOMEM;
        *load = (struct plugin_load){ .plugin = &shared_plugin, .id = id };
        shared_plugin.n_loads++;

        r = options_set(load, options, n_options);
        if (r == 0)
                r = register_all(load);
        if (r == 0)
                r = to_store_send_banner();
        if (r < 0)
                return r;

        mosquitto_log_printf(MOSQ_LOG_NOTICE, "statestore: plugin loaded: version=%s store_username=%s",
                             STATESTORED_VERSION, load->username ? load->username : "(none)");
        *ret_load = take_ptr(&load);
        return 0;
}

EXPORT int mosquitto_plugin_version(int n_versions, const int *versions) {
        for (int i = 0; i < n_versions; i++)
                if (versions[i] == MOSQ_PLUGIN_VERSION)
                        return MOSQ_PLUGIN_VERSION;
        return -1;
}

EXPORT int mosquitto_plugin_init(mosquitto_plugin_id_t *id, void **ret_userdata,
                                 struct mosquitto_opt *options, int n_options) {
        struct plugin_load *load;

        switch (load_plugin(&load, id, options, n_options)) {
        case 0:
                *ret_userdata = load;
                return MOSQ_ERR_SUCCESS;
        case -ENOMEM:
                return MOSQ_ERR_NOMEM;
        default:
                return MOSQ_ERR_INVAL;
        }
}

EXPORT int mosquitto_plugin_cleanup(void *userdata, struct mosquitto_opt *options, int n_options) {
        (void)options;
        (void)n_options;
        load_free(userdata);
        return MOSQ_ERR_SUCCESS;
}
