/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/* The topics of PROTOCOL.md "Topics", and what may stand in a Response Topic (PROTOCOL.md "Requests"). */

#define TOPIC_SERVICE       "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"
#define TOPIC_INVOKE        TOPIC_SERVICE "/command/invoke"
#define TOPIC_CONTROL       TOPIC_SERVICE "/control/invoke" /* a test double's, of the same shape */
#define TOPIC_NOTIFY_PREFIX "clients/" TOPIC_SERVICE

/* An MQTT topic's limit in bytes. */
#define TOPIC_LENGTH_MAX 65535

/* Bytes of the topic on which this client is told of this key; may exceed TOPIC_LENGTH_MAX. */
size_t topic_notify_length(size_t client_length, size_t key_length);

/* A notify topic less its last level, which is the key, in hex; another topic as it stands. */
struct slice topic_without_key(struct slice topic);

void topic_append_notify(struct buf *buf, struct slice client, struct slice key);

/*
 * False for what must not be answered to: empty, wildcards, NUL, not UTF-8, the invoke topic, any topic that
 * begins with TOPIC_NOTIFY_PREFIX, and the broker's own topics, which begin with '$': a stranger must not
 * choose which of them we publish to.
 */
bool topic_is_valid_response(struct slice topic);

/* The level after "clients/" as it stands, absent where the topic does not read clients/{id}/... */
struct slice topic_response_client(struct slice topic);

/*
 * Whether the topic is one that the pattern stands for: a topic filter in which one level reads {client}, which
 * matches any one level. *ret_client is that level of the topic.
 */
bool topic_match_client(struct slice topic, struct slice pattern, struct slice *ret_client);

/* The pattern as a topic filter, with '+' for {client}. */
void topic_append_filter(struct buf *buf, struct slice pattern);
