/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How an access check ends in mosquitto 2.0: the callbacks are asked in the order in which they registered, ours
 * before acl_file's, until one of them does not DEFER. Then the plugins of older interfaces are asked. When
 * nobody decided, access is denied; only when nobody was there to be asked it is granted. So on a broker without
 * any rules a guard that says DEFER locks everybody out, and one that says SUCCESS overrules the rules of one
 * that has them.
 *
 * Therefore two callbacks. The guard proper comes first and decides on statestored's topics alone. The last one
 * grants what reaches it. acl_file's own callback decides everything when there is one, so what reaches the last
 * one is what nobody had rules for. That holds as long as it is last: a reload registers acl_file's anew, behind
 * it. And it does not hold where another plugin is loaded: those of older interfaces come after every callback,
 * and one that defers may mean no. There the last one is left out, unless the operator wants it:
 * plugin_opt_undecided.
 *
 * It is put in its place from within the guard, the next time that anybody asks. That is sooner than any event
 * we could wait for: the first wills go out in the middle of a reload. The broker walks its list in a way that
 * allows this: what follows is looked up after the callback has returned.
 *
 * mosquitto 2.1 has an answer for "not my business"; there the guard is all.
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

/* What a shared subscription $share/{group}/{filter} asks for. */
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
        VERDICT_STATESTORED, /* and nobody else */
        VERDICT_AT_LEAST_STATESTORED,
};

/* Asked at each delivery to each subscriber: most topics are told apart by their first byte. */
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
                guard->is_behind_all = false; /* denied until there is memory again */
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
