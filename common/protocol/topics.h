/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * The topics of PROTOCOL.md "Topics", and the rules for Response Topics of PROTOCOL.md "Requests".
 */

#define TOPIC_SERVICE       "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"
#define TOPIC_INVOKE        TOPIC_SERVICE "/command/invoke"
#define TOPIC_CONTROL       TOPIC_SERVICE "/control/invoke" /* commands of tests (option --control) */
#define TOPIC_NOTIFY_PREFIX "clients/" TOPIC_SERVICE

/*
 * Maximum number of words of a request to TOPIC_CONTROL: the command, and more than a fault rule
 * with all its options has.
 */
#define CONTROL_WORDS_MAX 21

/* After "-ERR " in the reply to a request to TOPIC_CONTROL with wrong words. */
#define CONTROL_USAGE "usage: "

/* Maximum length of an MQTT topic in bytes (MQTT 5, 4.7.3). */
#define TOPIC_LENGTH_MAX 65535

/*
 * Maximum number of levels of a Response Topic. A broker may close the connection of a client that
 * publishes to a topic with more levels than it allows: mosquitto allows 201, EMQX 128 by default.
 */
#define TOPIC_LEVELS_MAX 100

/* Length in bytes of the notify topic for this client and key; may exceed TOPIC_LENGTH_MAX. */
size_t topic_notify_length(size_t client_length, size_t key_length);

/*
 * Return a notify topic without its last level, which is the key in base16. Returns any other topic
 * unchanged.
 */
struct slice topic_without_key(struct slice topic);

/* Append the notify topic for this client and key. */
void topic_append_notify(struct buf *buf, struct slice client, struct slice key);

#define TOPIC_REPLY_PREFIX "clients/"

/* The end of the response topic that the published protocol recommends. statestorectl uses it. */
#define TOPIC_REPLY_SUFFIX "services/statestore/_any_/command/invoke/response"

/* Return whether this is the notify topic for this client and any key. */
bool topic_is_notify_of(const char *topic, const char *client);

/*
 * The response topics of the published clients (Azure/iot-operations-sdks at febffe0, the crate
 * azure_iot_operations_services 1.5.0-beta1), and of the published protocol:
 * TOPIC_REPLY_PREFIX "{client id}/{suffix}". Any number of levels can precede the suffix, because a
 * client id may contain '/'.
 */
struct topic_reply_form {
        bool is_base16; /* the client id is in upper-case base16 */
        struct slice suffix;
};

#define TOPIC_REPLY_FORMS 4
extern const struct topic_reply_form topic_reply_forms[TOPIC_REPLY_FORMS];

/*
 * Return whether this is a response topic of the table for this client. A topic belongs to one
 * client at most: no suffix is the end of another one of the same form, and a client id in base16
 * has no '/'.
 */
bool topic_is_reply_of(const char *topic, const char *client);

/* Return whether the topic matches the filter, which has no '#'. */
bool topic_matches_filter(struct slice topic, struct slice filter);

/*
 * Return whether a filter matches a response topic of the table for any client id, both without
 * TOPIC_REPLY_PREFIX. A client id may have any levels, so each filter with '#' at the end does.
 */
bool topic_filter_matches_reply(struct slice filter);

/*
 * Return whether the store may publish a reply to this topic. PROTOCOL.md "Requests" lists the
 * topics that are refused.
 */
bool topic_is_valid_response(struct slice topic);

/*
 * Return the level {id} of a Response Topic clients/{id}/..., unchanged; absent for any other
 * topic.
 */
struct slice topic_response_client(struct slice topic);

/*
 * Return whether the topic matches the pattern: a topic filter in which one level is {client},
 * which matches any level that is not empty. *ret_client is that level of the topic. The option
 * --presence-topic is such a pattern.
 */
bool topic_match_client(struct slice topic, struct slice pattern, struct slice *ret_client);

/* Append the pattern as a topic filter, with '+' in place of {client}. */
void topic_append_filter(struct buf *buf, struct slice pattern);
