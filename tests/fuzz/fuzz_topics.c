/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Topics: base16, the client of a notify topic, permitted response topics, and patterns with
 * {client}.
 */

#include <errno.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "engine/registrations.h"
#include "fuzz/fuzz.h"
#include "protocol/topics.h"

#define N_LEVELS_MAX 64

static void read_base16(struct slice text) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 }, again = { 0 };
        int r = base16_append_decoded(&bytes, text);
        bool is_base16 = text.length % 2 == 0;

        for (size_t i = 0; i < text.length; i++)
                is_base16 &= (text.data[i] >= '0' && text.data[i] <= '9') ||
                             (text.data[i] >= 'A' && text.data[i] <= 'F');

        ASSERT(r == (is_base16 ? 0 : -EINVAL));
        if (r == 0) {
                base16_append(&again, buf_slice(&bytes));
                ASSERT(slice_equal(buf_slice(&again), text));
        }
}

/* A registration returns the names that it was made with. */
static void register_and_name(struct slice client, struct slice key) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        struct registration *registration;
        struct registrations table;

        if (client.length == 0 || key.length == 0)
                return;

        topic_append_notify(&topic, client, key);
        ASSERT(topic.length == topic_notify_length(client.length, key.length));
        ASSERT(!topic_is_valid_response(buf_slice(&topic)));

        registrations_init(&table, &(struct hash_key){ { 1 } });
        registration =
                registrations_add(&table, registrations_names(&table, client, key), (struct slice){ 0 }, 0);
        ASSERT(registration && slice_equal(registration->client_id, client) &&
               slice_equal(registration->key_name, key));
        registrations_deinit(&table);
}

static void reply_to(struct slice topic) {
        bool is_valid = topic_is_valid_response(topic);
        struct slice client = topic_response_client(topic);

        if (is_valid) {
                ASSERT(topic.length > 0 && slice_is_utf8(topic) && topic.data[0] != '$');
                ASSERT(!memchr(topic.data, '+', topic.length) && !memchr(topic.data, '#', topic.length) &&
                       !memchr(topic.data, '\0', topic.length));
                ASSERT(!slice_equal(topic, SLICE_LITERAL(TOPIC_INVOKE)));
        }
        if (client.data) {
                ASSERT(slice_starts_with(topic, SLICE_LITERAL("clients/")));
                ASSERT(client.data == topic.data + 8 && client.length > 0 &&
                       client.data[client.length] == '/');
                ASSERT(!memchr(client.data, '/', client.length));
        }
}

/* A topic of the table belongs to the client for which it is composed, and to no other. */
static void reply_topics_of(struct slice client, struct slice other) {
        CLEANUP(buf_deinit) struct buf name = { 0 }, other_name = { 0 };

        if (client.length == 0 || memchr(client.data, '\0', client.length) ||
            memchr(other.data, '\0', other.length))
                return;

        buf_append_slice(&name, client);
        buf_append_slice(&other_name, other);
        for (size_t i = 0; i < TOPIC_REPLY_FORMS; i++) {
                CLEANUP(buf_deinit) struct buf topic = { 0 };

                buf_append_string(&topic, "clients/");
                if (topic_reply_forms[i].is_base16)
                        base16_append(&topic, client);
                else
                        buf_append_slice(&topic, client);
                buf_append(&topic, "/", 1);
                buf_append_slice(&topic, topic_reply_forms[i].suffix);
                ASSERT(topic_is_reply_of(buf_text(&topic), buf_text(&name)));
                ASSERT(topic_filter_matches_reply(slice_skip(buf_slice(&topic), strlen("clients/"))));
                ASSERT(topic_is_reply_of(buf_text(&topic), buf_text(&other_name)) ==
                       slice_equal(client, other));
        }
}

static size_t split(struct slice topic, struct slice *levels) {
        size_t n = 0;

        while (topic.data && n < N_LEVELS_MAX)
                levels[n++] = slice_split(topic, '/', &topic);
        return topic.data ? 0 : n;
}

static bool reference_match(const struct slice *topic, size_t n_topic, const struct slice *pattern,
                            size_t n_pattern, struct slice *client) {
        if (n_pattern == 1 && slice_equal(pattern[0], SLICE_LITERAL("#")))
                return true;
        if (n_topic == 0 || n_pattern == 0)
                return n_topic == n_pattern;
        if (slice_equal(pattern[0], SLICE_LITERAL("{client}")))
                *client = topic[0];
        else if (!slice_equal(pattern[0], SLICE_LITERAL("+")) && !slice_equal(pattern[0], topic[0]))
                return false;
        return reference_match(topic + 1, n_topic - 1, pattern + 1, n_pattern - 1, client);
}

/* A text with '#' before its end is not a topic filter; then the match only has to terminate. */
static bool is_filter(const struct slice *levels, size_t n_levels) {
        for (size_t i = 0; i + 1 < n_levels; i++)
                if (slice_equal(levels[i], SLICE_LITERAL("#")))
                        return false;
        return true;
}

static void match(struct slice topic, struct slice pattern) {
        struct slice topic_levels[N_LEVELS_MAX], pattern_levels[N_LEVELS_MAX];
        struct slice client = { 0 }, expected = { 0 };
        size_t n_topic = split(topic, topic_levels), n_pattern = split(pattern, pattern_levels);
        bool is_match = topic_match_client(topic, pattern, &client);
        CLEANUP(buf_deinit) struct buf filter = { 0 };

        topic_append_filter(&filter, pattern);
        ASSERT(filter.length <= pattern.length);
        if (is_match)
                ASSERT(client.length > 0);
        if (n_topic == 0 || n_pattern == 0 || !is_filter(pattern_levels, n_pattern))
                return;

        ASSERT(is_match == (reference_match(topic_levels, n_topic, pattern_levels, n_pattern, &expected) &&
                            expected.length > 0));
        if (is_match)
                ASSERT(slice_equal(client, expected));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = { data, size }, rest;
        struct slice first = slice_split(input, '\n', &rest);

        read_base16(first);
        reply_to(first);
        if (rest.data) {
                register_and_name(first, rest);
                reply_topics_of(first, rest);
                match(first, rest);
        }
        return 0;
}
