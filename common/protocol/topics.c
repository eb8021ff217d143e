/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/topics.h"

#include "base/base16.h"

#define NOTIFY_VERB "/command/notify/"

size_t topic_notify_length(size_t client_length, size_t key_length) {
        return strlen(TOPIC_NOTIFY_PREFIX "/" NOTIFY_VERB) + 2 * client_length + 2 * key_length;
}

struct slice topic_without_key(struct slice topic) {
        if (!slice_starts_with(topic, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX)))
                return topic;
        while (topic.length > 0 && topic.data[topic.length - 1] != '/')
                topic.length--;
        return topic;
}

void topic_append_notify(struct buf *buf, struct slice client, struct slice key) {
        buf_append_string(buf, TOPIC_NOTIFY_PREFIX "/");
        base16_append(buf, client);
        buf_append_string(buf, NOTIFY_VERB);
        base16_append(buf, key);
}

bool topic_is_notify_of(const char *topic, const char *client) {
        const char *at = topic;

        if (strncmp(at, TOPIC_NOTIFY_PREFIX "/", strlen(TOPIC_NOTIFY_PREFIX "/")) != 0)
                return false;
        at += strlen(TOPIC_NOTIFY_PREFIX "/");
        for (; *client != '\0'; client++, at += 2)
                if (!base16_is_byte(at, (uint8_t)*client))
                        return false;
        if (strncmp(at, NOTIFY_VERB, strlen(NOTIFY_VERB)) != 0)
                return false;
        at += strlen(NOTIFY_VERB);
        return *at != '\0' && !strchr(at, '/');
}

const struct topic_reply_form topic_reply_forms[TOPIC_REPLY_FORMS] = {
        /*
         * Rust: RESPONSE_TOPIC_PREFIX and RESPONSE_TOPIC_SUFFIX in
         * rust/azure_iot_operations_services/src/state_store/client.rs, and CommandInvoker::new() in
         * rust/azure_iot_operations_protocol/src/rpc_command/invoker.rs
         */
        { false, SLICE_LITERAL("services/" TOPIC_INVOKE "/response") },
        /*
         * .NET: ResponseTopicPrefix in StateStore/Generated/InvokeCommandInvoker.g.cs of
         * dotnet/src/Azure.Iot.Operations.Services, and GenerateResponseTopicPattern() in
         * dotnet/src/Azure.Iot.Operations.Protocol/RPC/CommandInvoker.cs
         */
        { false, SLICE_LITERAL(TOPIC_INVOKE) },
        /*
         * The page "State store protocol" of Azure IoT Operations recommends this topic:
         * learn.microsoft.com/azure/iot-operations/create-edge-apps/concept-about-state-store-protocol
         */
        { false, SLICE_LITERAL(TOPIC_REPLY_SUFFIX) },
        /* Go: New() in services/statestore/client.go, NewCommandInvoker() in protocol/command_invoker.go */
        { true, SLICE_LITERAL(TOPIC_INVOKE "/response") },
};

/* Return the topic behind the client id and '/'; NULL: the topic does not begin with them. */
static const char *skip_client(const char *topic, const char *client, bool is_base16) {
        for (; *client != '\0'; client++, topic += is_base16 ? 2 : 1)
                if (is_base16 ? !base16_is_byte(topic, (uint8_t)*client) : *topic != *client)
                        return NULL;
        return *topic == '/' ? topic + 1 : NULL;
}

bool topic_is_reply_of(const char *topic, const char *client) {
        if (*client == '\0' || strncmp(topic, TOPIC_REPLY_PREFIX, strlen(TOPIC_REPLY_PREFIX)) != 0)
                return false;
        topic += strlen(TOPIC_REPLY_PREFIX);
        for (size_t i = 0; i < TOPIC_REPLY_FORMS; i++) {
                const struct topic_reply_form *form = &topic_reply_forms[i];
                const char *rest = skip_client(topic, client, form->is_base16);

                if (rest && slice_equal(slice_from_string(rest), form->suffix))
                        return true;
        }
        return false;
}

bool topic_matches_filter(struct slice topic, struct slice filter) {
        while (topic.data && filter.data) {
                struct slice topic_level = slice_split(topic, '/', &topic);
                struct slice filter_level = slice_split(filter, '/', &filter);

                if (!slice_equal(filter_level, SLICE_LITERAL("+")) &&
                    !slice_equal(filter_level, topic_level))
                        return false;
        }
        return !topic.data && !filter.data;
}

static size_t n_levels(struct slice topic) {
        size_t n = 1;

        for (size_t i = 0; i < topic.length; i++)
                n += topic.data[i] == '/';
        return n;
}

bool topic_filter_matches_reply(struct slice filter) {
        size_t n_filter = n_levels(filter);

        if (slice_ends_with(filter, SLICE_LITERAL("#")))
                return true;
        for (size_t i = 0; i < TOPIC_REPLY_FORMS; i++) {
                struct slice suffix = topic_reply_forms[i].suffix, end = filter;
                size_t n_suffix = n_levels(suffix);

                if (n_filter <= n_suffix) /* the client id has a level at least */
                        continue;
                for (size_t n = n_filter; n > n_suffix; n--)
                        slice_split(end, '/', &end);
                if (topic_matches_filter(suffix, end))
                        return true;
        }
        return false;
}

/*
 * The broker must accept a PUBLISH to the topic. If it closes the store's connection instead,
 * libmosquitto repeats the PUBLISH after each reconnect. mosquitto also refuses topics with control
 * characters or noncharacters of Unicode. These need no check here: libmosquitto and mosquitto
 * refuse them in a received Response Topic, too.
 */
bool topic_is_valid_response(struct slice topic) {
        if (topic.length == 0 || topic.length > TOPIC_LENGTH_MAX || topic.data[0] == '$')
                return false;

        return n_levels(topic) <= TOPIC_LEVELS_MAX && !memchr(topic.data, '+', topic.length) &&
               !memchr(topic.data, '#', topic.length) && !memchr(topic.data, '\0', topic.length) &&
               !slice_equal(topic, SLICE_LITERAL(TOPIC_INVOKE)) &&
               !slice_starts_with(topic, SLICE_LITERAL(TOPIC_NOTIFY_PREFIX)) && slice_is_utf8(topic);
}

struct slice topic_response_client(struct slice topic) {
        struct slice rest, client, after;

        if (!slice_equal(slice_split(topic, '/', &rest), SLICE_LITERAL("clients")))
                return (struct slice){ 0 };

        client = slice_split(rest, '/', &after);
        return after.data && client.length > 0 ? client : (struct slice){ 0 };
}

static bool is_client_level(struct slice level) {
        return slice_equal(level, SLICE_LITERAL("{client}"));
}

bool topic_match_client(struct slice topic, struct slice pattern, struct slice *ret_client) {
        struct slice client = { 0 };

        while (topic.data && pattern.data) {
                struct slice topic_level = slice_split(topic, '/', &topic);
                struct slice pattern_level = slice_split(pattern, '/', &pattern);

                if (slice_equal(pattern_level, SLICE_LITERAL("#")))
                        topic = (struct slice){ 0 };
                else if (is_client_level(pattern_level))
                        client = topic_level;
                else if (!slice_equal(pattern_level, SLICE_LITERAL("+")) &&
                         !slice_equal(pattern_level, topic_level))
                        return false;
        }
        if (slice_equal(pattern, SLICE_LITERAL("#"))) /* '#' also matches zero levels (MQTT 5, 4.7.1.2) */
                pattern = (struct slice){ 0 };
        if (topic.data || pattern.data || client.length == 0)
                return false;

        *ret_client = client;
        return true;
}

void topic_append_filter(struct buf *buf, struct slice pattern) {
        for (;;) {
                struct slice level = slice_split(pattern, '/', &pattern);

                buf_append_slice(buf, is_client_level(level) ? SLICE_LITERAL("+") : level);
                if (!pattern.data)
                        return;
                buf_append(buf, "/", 1);
        }
}
