/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mosquitto has no limit for the filters of a client, and checks READ for each filter that matches a
 * message. So idle connections with hundreds of filters that match the topics of requests and
 * replies delay every client, even if they may read nothing: 16 connections with 767 filters each
 * leave 110 of 5,000 requests a second. The plugin therefore denies filters that no client needs.
 * What a client can still have costs a few checks for each reply: the filters "#", "+/#",
 * "clients/#", and the reply topic itself.
 *
 * Filters from before the plugin was loaded stay in the sessions that the broker has stored.
 */

#include "plugin/subscriptions.h"

#include "base/array.h"
#include "plugin/internal.h"
#include "protocol/topics.h"

#define ALL_LEVELS SLICE_LITERAL("#")

static bool has_wildcard(struct slice filter) {
        return memchr(filter.data, '+', filter.length) || memchr(filter.data, '#', filter.length);
}

/* Whether '#' at the end is the only wildcard. The broker accepts no '#' elsewhere. */
static bool is_subtree(struct slice filter) {
        return slice_ends_with(filter, ALL_LEVELS) && !memchr(filter.data, '+', filter.length);
}

/* Return whether this level of a filter can match the first level of plugin_opt_statestored_reply_prefix. */
static bool matches_reply_prefix(const struct plugin *plugin, struct slice level) {
        struct slice prefix = slice_from_string(plugin->reply_prefix), rest, first;

        if (!prefix.data)
                return false;
        first = slice_split(prefix, '/', &rest);
        return first.length < prefix.length ? slice_equal(level, first) : slice_starts_with(level, first);
}

/*
 * Return whether a shared subscription ($share/{group}/{filter}) can match a topic of the store. No
 * client needs one, and mosquitto walks all shared subscriptions of a topic at each PUBLISH to it:
 * with 10,000 of them, which fit in one SUBSCRIBE, each request of every client takes 30 ms longer.
 */
static bool is_shared_denied(const struct plugin *plugin, struct slice subscription) {
        static const struct slice levels[] = { SLICE_LITERAL("#"), SLICE_LITERAL("+"),
                                               SLICE_LITERAL("clients"), SLICE_LITERAL("statestore") };
        struct slice rest, level;

        slice_split(subscription, '/', &rest);
        slice_split(rest, '/', &rest); /* the group */
        level = slice_split(rest, '/', &rest);
        for (size_t i = 0; i < ARRAY_LENGTH(levels); i++)
                if (slice_equal(level, levels[i]))
                        return true;
        return (level.length > 0 && level.data[0] == '$') || matches_reply_prefix(plugin, level);
}

/*
 * The filter with wildcards is behind "clients/" or the operator's prefix. Allow all topics, and what
 * is behind the client's own id: clients of other services subscribe there. But the id may be the
 * beginning of another one, so there, too, only a filter that matches no reply to a longer id.
 */
static bool is_denied_below(struct slice filter, struct slice client_id) {
        struct slice rest;

        if (slice_equal(filter, ALL_LEVELS))
                return false;
        if (!slice_starts_with(filter, client_id))
                return true;
        rest = slice_skip(filter, client_id.length);
        if (!slice_starts_with(rest, SLICE_LITERAL("/")))
                return true;
        rest = slice_skip(rest, 1);
        return !is_subtree(rest) && topic_filter_matches_reply(rest);
}

bool subscription_is_denied(const struct plugin *plugin, const char *client_id, const char *subscription) {
        struct slice filter = slice_from_string(subscription),
                     prefix = slice_from_string(plugin->reply_prefix);
        struct slice client = slice_from_string(client_id), level, rest;

        if (slice_starts_with(filter, SLICE_LITERAL("$share/")))
                return is_shared_denied(plugin, filter);
        if (!has_wildcard(filter) || slice_equal(filter, ALL_LEVELS))
                return false;

        level = slice_split(filter, '/', &rest);
        if (slice_equal(level, SLICE_LITERAL("+")))
                return !slice_equal(rest, ALL_LEVELS) &&
                       (topic_filter_matches_reply(rest) ||
                        topic_matches_filter(SLICE_LITERAL(TOPIC_INVOKE), filter));
        if (slice_equal(level, SLICE_LITERAL("statestore")))
                return true;
        if (slice_starts_with(filter, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX))) /* no reply is published there */
                return false;
        if (slice_equal(level, SLICE_LITERAL("clients")))
                return is_denied_below(rest, client);
        return matches_reply_prefix(plugin, level) && !is_subtree(filter) &&
               (!slice_starts_with(filter, prefix) ||
                is_denied_below(slice_skip(filter, prefix.length), client));
}
