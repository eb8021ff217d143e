/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How mosquitto 2.0 decides an access: it calls the callbacks in the order of their registration,
 * those of plugins before that of acl_file, and takes the first result other than DEFER. If all
 * callbacks defer, it calls the plugins of older interfaces. If these also defer, it denies the
 * access. Only a broker that has no callback and no such plugin grants the access. So on a broker
 * without acl_file, a plugin that always defers makes the broker deny everything. A plugin that
 * returns SUCCESS overrules acl_file and later plugins.
 *
 * Therefore the plugin registers two callbacks. The first calls acl_check(), which decides on the
 * store's topics only: those of find_rule(), and a client's own topics. acl_on_undecided() is the
 * last: an access reaches it if no other callback decides it. The callback of acl_file
 * decides every access, so an access reaches acl_on_undecided() only on a broker without acl_file.
 * With plugin_opt_undecided allow, acl_on_undecided() grants the access. This cannot be the
 * default: another plugin that defers may intend a denial, and the broker does not list its
 * plugins. With deny, acl_on_undecided() is not registered.
 *
 * A reload registers acl_file's callback again. acl_check() registers acl_on_undecided() behind it
 * at the first access check after a reload or a tick. A later event would be too late: the broker
 * publishes wills during the reload, and checks their access. Registering within a callback is
 * safe, because the broker looks up the next callback after the present one has returned.
 *
 * mosquitto 2.1 has the result IGNORE for an access that a plugin does not decide, so it needs only
 * acl_check().
 */

#include "plugin/acl.h"

#include "plugin/broker.h"
#include "plugin/internal.h"
#include "plugin/subscriptions.h"
#include "protocol/broker_log.h"
#include "protocol/companion.h"
#include "protocol/frame.h"
#include "protocol/topics.h"

#define CONTROL_TOPICS "$CONTROL/statestore/"
#define SYS_TOPICS     "$SYS/statestore/"

/* Clients with longer ids read no replies to other clients. */
#define MONITOR_ID_LENGTH_MAX 1024

/*
 * A result that the headers of 2.0 do not define: the broker decides as if the callback were not
 * registered. After DEFER, 2.1 denies the access unless a later callback returns another result.
 */
#define RESULT_IGNORE 32

#define STARTS_WITH(text, literal) (strncmp(text, literal, sizeof(literal) - 1) == 0)

bool acl_is_store(const struct plugin_load *load, const struct mosquitto *client) {
        const char *username = mosquitto_client_username(client), *client_id = mosquitto_client_id(client);

        if (load->username)
                return username && strcmp(load->username, username) == 0;
        return !username && client_id && STARTS_WITH(client_id, COMPANION_CLIENT_ID_PREFIX);
}

bool acl_may_publish(const struct plugin_load *load, const struct mosquitto *client, const char *topic) {
        if (STARTS_WITH(topic, SYS_TOPICS) || strcmp(topic, BROKER_LOG_NOTICE) == 0)
                return false;
        if (!STARTS_WITH(topic, TOPIC_NOTIFY_PREFIX) && !STARTS_WITH(topic, CONTROL_TOPICS))
                return true;
        return acl_is_store(load, client);
}

/* Whether the topic begins with "clients/" or with plugin_opt_statestored_reply_prefix. */
static bool has_reply_prefix(const struct plugin *plugin, struct slice topic) {
        struct slice prefix = slice_from_string(plugin->reply_prefix);

        return slice_starts_with(topic, SLICE_LITERAL(TOPIC_REPLY_PREFIX)) ||
               (prefix.data && slice_starts_with(topic, prefix));
}

bool acl_may_reply(const struct plugin_load *load, struct slice topic) {
        return (load->undecided == UNDECIDED_ALLOW && !load->is_write_decided) ||
               has_reply_prefix(load->plugin, topic);
}

enum rule {
        RULE_NONE,
        RULE_ONLY_STORE,  /* grant the access to the store, deny it to all others */
        RULE_ALLOW_STORE, /* grant the access to the store, no decision for others */
        RULE_ALLOW_ALL,   /* grant the access to all clients */
        RULE_DENY_ALL,    /* deny the access to all clients */
};

/*
 * The store subscribes to requests and to BROKER_LOG_NOTICE only so that the broker asks the plugin
 * about their delivery: requests.c takes the requests, and slow_watchers.c reads the lines. So READ
 * is denied also to the store, and before any other callback is asked: a granted delivery of a line
 * and the checks of acl_file can log further lines, whose delivery is checked again, and so on until
 * mosquitto has no stack left (2.0.11 to 2.1.2, and the development branch). acl_file logs a client
 * id with a wildcard, and mosquitto a message above a client's Maximum Packet Size.
 */
static enum rule find_rule(const struct plugin *plugin, const struct mosquitto_evt_acl_check *check) {
        const char *topic = check->topic;

        switch (check->access) {
        case MOSQ_ACL_READ:
                if (strcmp(topic, TOPIC_INVOKE) == 0 || STARTS_WITH(topic, BROKER_LOG_TOPICS))
                        return RULE_DENY_ALL;
                if (strcmp(topic, COMPANION_FRAME_TO_STORE) == 0)
                        return RULE_ONLY_STORE;
                break;
        case MOSQ_ACL_SUBSCRIBE:
                if (strcmp(topic, COMPANION_PROBE) == 0)
                        return RULE_DENY_ALL;
                if (strcmp(topic, TOPIC_INVOKE) == 0 || STARTS_WITH(topic, BROKER_LOG_TOPICS) ||
                    strcmp(topic, COMPANION_FRAME_TO_STORE) == 0 ||
                    subscription_is_denied(plugin, mosquitto_client_id(check->client), topic))
                        return RULE_ONLY_STORE;
                break;
        case MOSQ_ACL_WRITE:
                return STARTS_WITH(topic, TOPIC_NOTIFY_PREFIX) || STARTS_WITH(topic, CONTROL_TOPICS)
                               ? RULE_ONLY_STORE
                               : RULE_NONE;
        default:
                return RULE_NONE;
        }
        if (strcmp(topic, COMPANION_BANNER) == 0)
                return RULE_ALLOW_ALL;
        return STARTS_WITH(topic, SYS_TOPICS) ? RULE_ALLOW_STORE : RULE_NONE;
}

int acl_on_undecided(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_acl_check *check = event_data;
        struct plugin_load *load = userdata;

        (void)event;
        if (check->access == MOSQ_ACL_WRITE)
                load->is_write_decided = false;
        if (load->undecided == UNDECIDED_ALLOW)
                return MOSQ_ERR_SUCCESS;
        if (load->is_undecided_logged)
                return MOSQ_ERR_PLUGIN_DEFER;
        load->is_undecided_logged = true;
        mosquitto_log_printf(MOSQ_LOG_WARNING,
                             "statestore: neither acl_file nor a plugin decided an access, so the broker "
                             "denies it; to grant such accesses, write: plugin_opt_undecided allow");
        return MOSQ_ERR_PLUGIN_DEFER;
}

/*
 * Register acl_on_undecided() behind all other callbacks. If memory is short, the next access check
 * tries again.
 */
static void register_last(struct plugin_load *load) {
        load->is_order_valid = true;
        if (load->undecided == UNDECIDED_DENY)
                return;

        mosquitto_callback_unregister(load->id, MOSQ_EVT_ACL_CHECK, acl_on_undecided, NULL);
        if (mosquitto_callback_register(load->id, MOSQ_EVT_ACL_CHECK, acl_on_undecided, NULL, load))
                load->is_order_valid = false;
}

/*
 * A client id with a wildcard is no level of a topic, so its client has no topics of its own.
 * acl_file denies it what a pattern might grant, and logs each such check.
 *
 * The broker asks at each delivery, and an id can have 64 KiB: two searches with strchr() take a
 * third of the time of strpbrk().
 */
static bool has_wildcard_id(const struct mosquitto *client) {
        const char *client_id = mosquitto_client_id(client);

        return client_id && (strchr(client_id, '+') || strchr(client_id, '#'));
}

/*
 * Whether the client reads a reply or a notification to itself, or subscribes to replies to itself.
 * The plugin grants this, whatever acl_file says, so acl_file needs no rule for each client. It also
 * cannot have one for each: a pattern of mosquitto has no client id in base16, and in 2.1 none with
 * '/'.
 *
 * The plugin hands notifications to the broker without an access check (publish.c). But at a
 * reconnect mosquitto checks what waits in the session, and discards what the client may not read.
 */
static bool accesses_own_topic(const struct mosquitto_evt_acl_check *check) {
        const char *client_id = mosquitto_client_id(check->client);

        switch (check->access) {
        case MOSQ_ACL_READ:
                return client_id && (topic_is_reply_of(check->topic, client_id) ||
                                     topic_is_notify_of(check->topic, client_id));
        case MOSQ_ACL_SUBSCRIBE:
                return client_id && topic_is_reply_of(check->topic, client_id);
        default:
                return false;
        }
}

/*
 * Whether the check is the delivery of a message with the topic of a reply to another client, whose
 * id is long. A client id can have 64 KiB, and acl_file searches the whole id at each check: 300 idle
 * connections with such ids and the filter "#" would delay each reply by 16 ms.
 */
static bool is_costly_delivery(const struct plugin *plugin, const struct mosquitto_evt_acl_check *check) {
        const char *client_id = mosquitto_client_id(check->client);

        return check->access == MOSQ_ACL_READ && client_id &&
               has_reply_prefix(plugin, slice_from_string(check->topic)) &&
               strnlen(client_id, MONITOR_ID_LENGTH_MAX + 1) > MONITOR_ID_LENGTH_MAX &&
               !accesses_own_topic(check);
}

int acl_check(struct plugin_load *load, const struct mosquitto_evt_acl_check *check) {
        enum rule rule;

        if (!broker_is_2_1() && !load->is_order_valid)
                register_last(load);
        if (check->access == MOSQ_ACL_WRITE)
                load->is_write_decided = !broker_is_2_1(); /* acl_on_undecided() takes it back */

        if (is_costly_delivery(load->plugin, check) || has_wildcard_id(check->client))
                return MOSQ_ERR_ACL_DENIED;
        rule = find_rule(load->plugin, check);
        if (rule == RULE_DENY_ALL)
                return MOSQ_ERR_ACL_DENIED;
        if (rule != RULE_NONE && acl_is_store(load, check->client))
                return MOSQ_ERR_SUCCESS;
        if (rule == RULE_ALLOW_ALL || accesses_own_topic(check))
                return MOSQ_ERR_SUCCESS;
        if (rule == RULE_ONLY_STORE)
                return MOSQ_ERR_ACL_DENIED;
        return broker_is_2_1() && load->undecided != UNDECIDED_DENY ? RESULT_IGNORE : MOSQ_ERR_PLUGIN_DEFER;
}
