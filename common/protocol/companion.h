/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "protocol/topics.h"

/*
 * The companion protocol between statestored (the store) and mosquitto_statestore.so (the plugin in
 * the broker). This header specifies the messages, common/protocol/companion_mac.h the
 * cryptography, common/protocol/companion_hello.h the payloads of HELLO and WELCOME,
 * common/protocol/companion_frame.h the payload of DELIVER. common/protocol/THREATS.md states what
 * the protocol protects against which client.
 *
 * Client 1 watches a key, client 2 sets it, the store restarts with its data, client 1 disconnects:
 *
 *     client 1       client 2         broker and plugin              store
 *         |              |                   | <------- HELLO ------- |  connects
 *         |              |                   | ------- WELCOME -----> |  starts to execute requests
 *         | -------- KEYNOTIFY ------------> | -- KEYNOTIFY + MAC --> |  commits the registration
 *         |              |                   | <------- TRACK ------- |
 *         | <---------- +OK ---------------- | <-------- +OK -------- |
 *         |              | ------ SET -----> | ----- SET + MAC -----> |  commits the change
 *         | <--------- NOTIFY -------------- | <------ DELIVER ------ |
 *         |              | <----- +OK ------ | <-------- +OK -------- |
 *         |              |                   | ------ DELIVERED ----> |  forgets the notification
 *         |              |                   |                        |  restarts
 *         |              |                   | <------- HELLO ------- |
 *         |              |                   | ------- WELCOME -----> |  repeats pending changes
 *         | ------- DISCONNECT ------------> | ---- DISCONNECTED ---> |  ends the registration
 *         |              |                   | <------ UNTRACK ------ |  acknowledges DISCONNECTED
 *
 * All messages are MQTT 5 PUBLISH packets at QoS 1. Only the banner is retained. Numbers are
 * decimal text without sign or padding, unless the description of a message states another format.
 *
 * Terms
 *
 * A *connection* is one network connection of one client, from CONNECT to the end of the network
 * connection; the session may outlive it. Its number is above 0 and below 2^63. The plugin assigns
 * the number at the first request over the connection, and uses each number once: the numbers grow
 * while the broker runs, and start at a random number when the broker starts.
 *
 * A *tracked* connection has registrations (KEYNOTIFY) at the store. The plugin reports the end of
 * such a connection to the store.
 *
 * The *run* of a store is a random number below 2^64, drawn when its process starts.
 *
 * The *instance* of a store is the set of its registrations. The store draws a new instance id when
 * it starts without the registrations of its former run, and keeps the instance id as long as it
 * keeps the registrations.
 *
 * A *change* is a change of a key that has registrations. Its *sequence* is its number within the
 * instance. Sequences start at 1 and grow, also when the store restarts and keeps its instance.
 * There may be gaps.
 *
 * A store *with data* keeps its keys on disk (option --data-dir), so they outlive its process.
 *
 * The *MAC key* is drawn by the plugin when the broker loads it. It proves to the store that the
 * plugin has processed a request. The plugin sends it only in WELCOME, encrypted. The store keeps
 * the last two MAC keys with its data. With them it verifies requests that wait in its session
 * while the broker, the store, or both restart.
 */

/*
 * The version of this protocol, in the banner. A store that reads another version does not use the
 * plugin.
 */
#define COMPANION_VERSION "6"

/* Size in bytes of the MAC key, and of the key in HELLO. */
#define COMPANION_KEY_SIZE 32

/* The store's client id if the operator configures none. */
#define COMPANION_CLIENT_ID_DEFAULT "statestored"

/*
 * Whether this is a random client id: COMPANION_CLIENT_ID_DEFAULT "-" and 32 lower-case hexadecimal
 * digits. Another user cannot guess it. So the store counts such an id of its own as guarded, and
 * the plugin keeps it secret.
 */
#define COMPANION_RANDOM_ID_PREFIX COMPANION_CLIENT_ID_DEFAULT "-"
#define COMPANION_RANDOM_ID_DIGITS 32
#define COMPANION_RANDOM_ID_LENGTH (sizeof(COMPANION_RANDOM_ID_PREFIX) - 1 + COMPANION_RANDOM_ID_DIGITS)
bool companion_client_id_is_random(struct slice client_id);

/* From the store to the plugin */

#define COMPANION_CONTROL "$CONTROL/statestore/v1/"

/*
 * HELLO, the first message on each connection of the store. The plugin sends its messages only to
 * the client id that sent the last HELLO, and accepts other messages only from this client id.
 * Correlation Data: run ":" number, with a different number for each HELLO of the run.
 *
 * Payload: struct companion_hello. Each HELLO has another key (companion_hello_key()).
 *
 * If an earlier HELLO came from another client id, the plugin disconnects that client, so that at
 * most one store serves.
 *
 * If the instance id has changed, the plugin disconnects the tracked clients: their registrations
 * are lost, and their client libraries register again when they reconnect. It also drops the
 * notifications that it has not published, and resets the sequence of the last delivered change to
 * 0.
 *
 * If no WELCOME arrives in time, send HELLO again: the plugin may have been out of memory, or the
 * queue of the store's session was full. A store that knows that the plugin is loaded executes no
 * request from HELLO to WELCOME: WELCOME would not list a connection whose TRACK is sent in
 * between.
 *
 * A store with data also sends HELLO when commits succeed again, if a failed commit has ended
 * registrations or has dropped messages to the plugin. The store has restored these registrations,
 * and WELCOME lists the connections that still exist.
 */
#define COMPANION_HELLO        COMPANION_CONTROL "hello"
#define COMPANION_INSTANCE_MAX 64

/*
 * TRACK. Payload: the number of a connection that now has registrations. Repeating it has no
 * effect. If the connection has ended, the plugin replies with DISCONNECTED.
 *
 * The store sends TRACK before it replies to KEYNOTIFY. Otherwise, after a crash between the two,
 * the client would believe that it is registered, and the plugin would not disconnect it when the
 * next instance starts.
 */
#define COMPANION_TRACK COMPANION_CONTROL "track"

/*
 * UNTRACK. Payload: the number of a connection that has no registrations any more. No DISCONNECTED
 * follows its end.
 *
 * The store also sends UNTRACK after it has executed DISCONNECTED, even if it had no registrations
 * of the connection.
 */
#define COMPANION_UNTRACK COMPANION_CONTROL "untrack"

/*
 * DELIVER, a notification of one change to many connections. Payload: a frame
 * (common/protocol/companion_frame.h). Payload Format Indicator, Content Type and user properties
 * are those of the notification. There is no Message Expiry Interval: mosquitto 2.0 does not pass
 * it to plugins.
 *
 * For each connection in the frame, the plugin publishes the notification to the client of this
 * connection only, at QoS 1, with or without a subscription. The topic is the client's notify topic
 * for the key (topic_append_notify()). The plugin skips a number that it has not assigned, and a
 * connection that has ended.
 *
 * If the recipients of a change do not fit in one frame, it has several frames: same sequence,
 * growing index, and a flag in the last one. Three limits apply to a frame: the broker's maximum
 * packet size; the memory that the broker needs to queue one copy of the notification for each
 * recipient; and the time for which the broker reads no other packet, because it writes these
 * copies.
 *
 * If a flag of the frame requests it, the plugin acknowledges with DELIVERED. The PUBACK does not
 * acknowledge a frame: mosquitto sends it even if no plugin is loaded. A store with data requests
 * an acknowledgement for every frame, and after WELCOME repeats the changes that the plugin has not
 * acknowledged.
 *
 * The plugin may receive a frame twice: when an MQTT library reconnects, it repeats all messages
 * without a PUBACK, in the same order and before new ones. So the plugin remembers a position: the
 * sequence of the last frame, and the number of recipients in this and all earlier frames of the
 * change. It skips recipients up to this position, so no client gets a notification twice. The
 * store sends frames in the order of their sequences, so the plugin also drops a frame with a lower
 * sequence than the position.
 *
 * If the plugin has no memory for a frame, it drops the frame, and the broker or the plugin closes
 * the store's connection. When the store reconnects, its MQTT library repeats the frames without a
 * PUBACK before the store sends HELLO. The dropped frame may be missing from them, because
 * mosquitto sends a PUBACK for it, too. Delivering later frames would move the position beyond it.
 * So between a dropped frame and HELLO, and on each new connection until HELLO, the plugin drops
 * all frames that request an acknowledgement. The store sends them again after WELCOME.
 */
#define COMPANION_DELIVER COMPANION_CONTROL "deliver"

/*
 * KICK. Payload: the number of a connection. The plugin closes this connection, and the broker
 * publishes the client's will. If the connection is tracked, DISCONNECTED follows. The store kicks
 * a connection in these cases:
 *
 * - WELCOME lists the connection, but the store has no registrations of the connection. The
 *   registrations ended while the store served another broker, or while the plugin did not reply.
 * - A notification for the connection is too large for the broker.
 * - With --control: the fault `kick` applies to a request of the connection.
 */
#define COMPANION_KICK COMPANION_CONTROL "kick"

/* From the plugin to the store */

#define COMPANION_SYS "$SYS/statestore/v1/"

/*
 * The banner. Payload: COMPANION_VERSION. It is retained and readable by every client, and means
 * that the plugin is loaded. Of the plugin's topics, the store subscribes only to this one and to
 * COMPANION_PROBE. The plugin's other messages arrive without a subscription. With a subscription,
 * the store would also receive messages that a bridge publishes to their topics.
 */
#define COMPANION_BANNER COMPANION_SYS "plugin"

/*
 * The plugin refuses every subscription to this topic, and grants the store's subscription to the
 * banner. So a store that subscribes to both learns from the SUBACKs whether the plugin is loaded.
 * The banner itself may arrive too late: it waits behind the messages in the store's session.
 */
#define COMPANION_PROBE COMPANION_SYS "probe/" COMPANION_VERSION

/*
 * WELCOME, the reply to HELLO. Correlation Data: that of HELLO. Payload: a box
 * (companion_box_seal()), encrypted under the key from HELLO. It contains the text of struct
 * companion_welcome.
 *
 * A new MAC key means that the broker was restarted and every connection has ended, or that this is
 * another broker.
 *
 * Only the reply to the last HELLO is valid. The broker keeps the order of QoS 1 messages. So a
 * request that its client publishes, and that arrives after WELCOME with a MAC under this key, has
 * a higher sequence number than the one in WELCOME. A request whose number is not higher is a copy
 * that was published as a will: the store does not execute it. Requests that arrive before WELCOME
 * waited in the store's session.
 *
 * If a connection is not listed, it has ended, or the store's process ended before it sent TRACK.
 * In the second case the client has no reply to KEYNOTIFY and repeats the request. The store must
 * execute it again instead of sending a remembered reply, because the plugin does not track the
 * connection yet.
 *
 * Changes up to the sequence in WELCOME are delivered. The store numbers the next change above this
 * sequence and above all sequences that it has used. If the store was restored from an older copy
 * of its data, the sequence in WELCOME is higher than all sequences that the store knows.
 */
#define COMPANION_WELCOME COMPANION_SYS "welcome"

/*
 * DISCONNECTED. Payload: the number of a tracked connection that has ended. It arrives after all
 * requests of this connection. Requests of the client's next connection may arrive before it.
 *
 * The broker drops DISCONNECTED if the queue of the store's session is full. So the plugin repeats
 * it until UNTRACK acknowledges it, or until the next HELLO: WELCOME does not list the connection.
 * At most once a second, the plugin repeats DISCONNECTED for the 100 connections that ended first.
 * If no acknowledgement has arrived since the last repetition, the messages may still wait in the
 * store's queue: then the plugin repeats DISCONNECTED only for the connection that ended first. It
 * repeats nothing while the store is not connected. mosquitto before 2.0.15 with
 * per_listener_settings sends no ticks (MOSQ_EVT_TICK) to plugins, so there DISCONNECTED is not
 * repeated.
 */
#define COMPANION_DISCONNECTED COMPANION_SYS "disconnected"

/*
 * SLOW_WATCHER. Payload: a client id. The plugin disconnects the client: the broker has dropped a
 * message for its tracked connection. DISCONNECTED follows. The plugin disconnects the client at a
 * tick. mosquitto before 2.0.15 with per_listener_settings sends no ticks to plugins, so there the
 * plugin disconnects no slow watcher.
 *
 * mosquitto does not report to plugins what it drops, but it logs the first drop of each connection
 * (protocol/broker_log.h). The plugin reads the log when the broker asks it whether the store may
 * read the line. So the store subscribes to BROKER_LOG_NOTICE, and gets none of the lines while the
 * plugin is loaded. This requires log_dest topic in mosquitto.conf.
 *
 * The log does not tell which messages are dropped, and later drops of the connection are not
 * logged. So the plugin also disconnects a client that has lost messages but no notification, and a
 * client that registers after a drop.
 *
 * The plugin knows a connection from its first request on, so it does not notice earlier drops:
 * mosquitto 2.0 does not tell plugins that a client has connected. mosquitto 2.1 does, but the
 * plugin does not use it.
 */
#define COMPANION_SLOW_WATCHER COMPANION_SYS "slow-watcher"

/*
 * DELIVERED. Payload: the sequence of the last change that was delivered completely. This
 * acknowledges all earlier changes, too. The plugin sends DELIVERED only if a frame requests it,
 * and after it has published the notifications of all frames that have arrived. One DELIVERED can
 * acknowledge several frames.
 *
 * The broker drops DELIVERED if the queue of the store's session is full. So a store that waits for
 * DELIVERED too long sends one more frame of the last change, without recipients and marked as the
 * last frame. The plugin replies with DELIVERED.
 */
#define COMPANION_DELIVERED COMPANION_SYS "delivered"

/*
 * TAKEOVER. No payload. Sent before WELCOME if a run sends HELLO again after another run has sent
 * HELLO: two stores take over each other's session repeatedly.
 */
#define COMPANION_TAKEOVER COMPANION_SYS "takeover"

/*
 * The identity properties: user properties that the plugin appends to a PUBLISH at QoS 1 to
 * TOPIC_INVOKE. From every PUBLISH to TOPIC_INVOKE it removes the retain flag and all user
 * properties whose names begin with COMPANION_PROPERTY. A request at QoS 0 or 2 gets no identity
 * properties, so the store refuses it.
 *
 * The MAC (struct companion_request) covers the identity, the connection, a sequence number that
 * grows with each request while the broker runs, Response Topic, Correlation Data, payload, and all
 * other user properties in their order. It does not cover the Message Expiry Interval, which
 * mosquitto does not pass to plugins, nor properties that the store does not read.
 *
 * While the store serves a broker with the plugin, it executes no request at QoS 1 with an invalid
 * MAC, or with a sequence number that it has accepted before. With each commit it stores a sequence
 * number up to which the broker has acknowledged all replies. After a restart it accepts higher
 * sequence numbers again, because the broker may redeliver these requests. The store accepts a
 * copy, published as a will, in three cases:
 *
 * - A client that can read requests (THREATS.md) copied one just before a crash of the store, and
 *   the copy is published before the store has restarted. The store treats it as a redelivery:
 *   because of the remembered replies it does not execute the request twice.
 * - A store without data has no sequence number after a restart. It executes a copy that was
 *   published while it was down.
 * - The store has lost the MAC key or its sequence number: it has served two other brokers since,
 *   or its data was restored from an older copy. It accepts a copy that arrives before WELCOME, and
 *   executes it if it does not remember the reply.
 */
#define COMPANION_PROPERTY           "statestore-"
#define COMPANION_PROPERTY_MAC       COMPANION_PROPERTY "mac" /* connection ":" sequence ":" MAC in hexadecimal */
#define COMPANION_PROPERTY_CLIENT_ID COMPANION_PROPERTY "client-id"
#define COMPANION_PROPERTY_USERNAME  COMPANION_PROPERTY "username" /* absent if the client has no user name */

/*
 * A MAC key, and the last sequence number that the store accepted from requests with a MAC under
 * this key.
 */
struct companion_key_state {
        bool is_known; /* false: there is no such key */
        uint8_t key[COMPANION_KEY_SIZE];
        uint64_t sequence;
};

/* present: the MAC key of the last WELCOME. former: the MAC key before it. */
struct companion_key_states {
        struct companion_key_state present, former;
};

/*
 * Two numbers with ":" between them, and a NUL: the Correlation Data of HELLO and WELCOME, and the
 * beginning of COMPANION_PROPERTY_MAC.
 */
struct companion_number_pair {
        char text[2 * UINT64_DIGITS_MAX + 2];
        size_t length;
};
struct companion_number_pair companion_number_pair(uint64_t first, uint64_t second);

/* Parse a pair. Returns 0 or -EINVAL. */
int companion_number_pair_read(struct slice text, uint64_t *ret_first, uint64_t *ret_second);
