/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mosquitto 2.0 decides an access as follows. It calls the callbacks in the order in which they registered, the plugin's
 * before that of acl_file, until one of them does not return DEFER. Then it calls the plugins of older interfaces. If all
 * defer, it denies the access. Only where there is nothing to call it grants the access. So on a broker without rules a
 * plugin that always defers denies everything, and one that returns SUCCESS overrules the rules of the others.
 *
 * Therefore the plugin registers two callbacks. The first one decides on statestored's topics alone. The last one grants
 * each access that reaches it. Where there is an acl_file, its callback decides every access, so only an access without
 * rules reaches the last one. That requires the last position: a reload registers acl_file's callback again, behind the
 * last one, so the plugin registers the last one again, too. It also requires that no other plugin is loaded: plugins of
 * older interfaces are called after all callbacks, and a plugin that defers may mean a denial. There the last callback is
 * left out, unless plugin_opt_undecided is "allow".
 *
 * The first callback registers the last one at the next access check. That is earlier than any event after a reload: the
 * broker publishes the first wills in the middle of the reload. Registering within a callback is safe, because the broker
 * looks up the next callback after the present one has returned.
 *
 * mosquitto 2.1 has a result for an access that a plugin does not decide on. There the first callback is enough.
 */

#include <errno.h>

#include "plugin/internal.h"

#define CONTROL_TOPICS "$CONTROL/statestore/"
#define SYS_TOPICS     "$SYS/statestore/"

#define OTHERS_LOADED                                                                                       \
        "statestore: other plugins are loaded: what neither they nor acl_file decide is denied, unless "    \
        "plugin_opt_undecided is allow"

#define STARTS_WITH(text, literal) (strncmp(text, literal, sizeof(literal) - 1) == 0)

bool guard_is_statestored(const struct guard *guard, const struct mosquitto *client) {
        const char *username = mosquitto_client_username(client), *client_id = mosquitto_client_id(client);

        if (guard->username && (!username || strcmp(guard->username, username) != 0))
                return false;
        return !guard->client_id || (client_id && strcmp(guard->client_id, client_id) == 0);
}

bool guard_may_publish(const struct guard *guard, const struct mosquitto *client, const char *topic) {
        if (STARTS_WITH(topic, SYS_TOPICS))
                return false;
        if (!STARTS_WITH(topic, TOPIC_NOTIFY_PREFIX) && !STARTS_WITH(topic, CONTROL_TOPICS))
                return true;
        return guard_is_statestored(guard, client);
}

/* The topic filter of a subscription, without $share/{group}/. */
static const char *filter_of(const char *subscription) {
        const char *slash;

        if (!STARTS_WITH(subscription, "$share/"))
                return subscription;
        slash = strchr(subscription, '/');
        slash = slash ? strchr(slash + 1, '/') : NULL;
        return slash ? slash + 1 : subscription;
}

enum verdict {
        VERDICT_NONE,
        VERDICT_STATESTORED,          /* granted to the store, denied to all others */
        VERDICT_AT_LEAST_STATESTORED, /* granted to the store, undecided for all others */
};

/* Called at each delivery to each subscriber: most topics differ from statestored's in their first byte. */
static enum verdict judge(int access, const char *topic) {
        switch (access) {
        case MOSQ_ACL_READ:
                if (strcmp(topic, TOPIC_INVOKE) == 0)
                        return VERDICT_STATESTORED;
                return STARTS_WITH(topic, SYS_TOPICS) ? VERDICT_AT_LEAST_STATESTORED : VERDICT_NONE;
        case MOSQ_ACL_SUBSCRIBE:
                if (strcmp(filter_of(topic), TOPIC_INVOKE) == 0)
                        return VERDICT_STATESTORED;
                return STARTS_WITH(topic, SYS_TOPICS) ? VERDICT_AT_LEAST_STATESTORED : VERDICT_NONE;
        case MOSQ_ACL_WRITE:
                return STARTS_WITH(topic, TOPIC_NOTIFY_PREFIX) || STARTS_WITH(topic, CONTROL_TOPICS)
                               ? VERDICT_STATESTORED
                               : VERDICT_NONE;
        default:
                return VERDICT_NONE;
        }
}

static int on_undecided(int event, void *event_data, void *userdata) {
        (void)event;
        (void)event_data;
        (void)userdata;
        return MOSQ_ERR_SUCCESS;
}

static void put_last(struct guard *guard) {
        if (guard->undecided == UNDECIDED_AUTO) {
                guard->undecided = neighbours_exist() ? UNDECIDED_DENY : UNDECIDED_ALLOW;
                if (guard->undecided == UNDECIDED_DENY)
                        mosquitto_log_printf(MOSQ_LOG_NOTICE, OTHERS_LOADED);
        }
        guard->is_behind_all = true;
        if (guard->undecided == UNDECIDED_DENY)
                return;

        mosquitto_callback_unregister(guard->id, MOSQ_EVT_ACL_CHECK, on_undecided, NULL);
        if (mosquitto_callback_register(guard->id, MOSQ_EVT_ACL_CHECK, on_undecided, NULL, NULL))
                guard->is_behind_all = false; /* out of memory: denied until the next check */
}

static int on_acl_check(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_acl_check *check = event_data;
        struct guard *guard = userdata;

        (void)event;
        if (broker_needs_an_answer() && !guard->is_behind_all)
                put_last(guard);

        switch (judge(check->access, check->topic)) {
        case VERDICT_STATESTORED:
                return guard_is_statestored(guard, check->client) ? MOSQ_ERR_SUCCESS : MOSQ_ERR_ACL_DENIED;
        case VERDICT_AT_LEAST_STATESTORED:
                if (guard_is_statestored(guard, check->client))
                        return MOSQ_ERR_SUCCESS;
                break;
        case VERDICT_NONE:
                break;
        }
        return guard->undecided == UNDECIDED_DENY ? MOSQ_ERR_PLUGIN_DEFER : broker_not_my_business();
}

int guard_start(struct guard *guard) {
        return broker_error(
                mosquitto_callback_register(guard->id, MOSQ_EVT_ACL_CHECK, on_acl_check, NULL, guard));
}

void guard_stop(struct guard *guard) {
        mosquitto_callback_unregister(guard->id, MOSQ_EVT_ACL_CHECK, on_acl_check, NULL);
        mosquitto_callback_unregister(guard->id, MOSQ_EVT_ACL_CHECK, on_undecided, NULL);
}

void guard_look_again(struct guard *guard) {
        guard->is_behind_all = false;
}
