/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "protocol/topics.h"

/*
 * The companion protocol between statestored (the store) and mosquitto_statestore.so (the plugin in
 * the broker). This header specifies it. common/protocol/handshake.h has the payloads of HELLO and
 * WELCOME, common/protocol/frame.h those of frames, common/protocol/companion_box.h the
 * cryptography. common/protocol/THREATS.md states what the protocol protects against which client.
 *
 * The plugin takes each request of a client out of the broker, keeps it, and sends it to the store
 * in a frame. The store sends replies and notifications to the plugin in frames, and the plugin
 * publishes them. A request is kept until the store has reported its end.
 *
 *
 * Terms
 *
 * A *connection* is one network connection of one client, from CONNECT to the end of the network
 * connection; the session may outlive it. Its number is above 0 and below 2^63. The plugin assigns
 * the number at the first request over the connection, and uses each number once: the numbers grow
 * while the broker runs, and start at a random number when the broker starts.
 *
 * A *tracked* connection has registrations (KEYNOTIFY) at the store.
 *
 * The *run* of a store is a random number below 2^64, drawn when its process starts. The *broker
 * run* is a random number below 2^64, drawn when the broker loads the plugin.
 *
 * The *instance* of a store is the set of its registrations. The store draws a new instance id when
 * it starts without the registrations of its former run, and keeps the instance id as long as it
 * keeps the registrations.
 *
 * A *change* is a change of a key that has registrations. Its *sequence* is its number within the
 * instance. Sequences start at 1 and grow, also when the store restarts and keeps its instance.
 * There may be gaps.
 *
 * A *record* to the store is a request or the end of a connection (struct frame_to_store_record).
 * It gets its *number* when the plugin first puts it into a frame. The numbers of a broker run
 * start at 1 and have no gaps. The store executes the records in the order of their numbers. So a
 * broker run and a number name one request for ever.
 *
 * The store *begins to serve* with its first frame after WELCOME. Until then the plugin sends no frame
 * and numbers no record: new records wait in their queues.
 *
 * A record is *kept* until it has ended: the plugin can send it again. A reply ends its request and
 * all earlier records: the store sends it after the commit. So a request whose client has the reply
 * is not sent again. The store also reports the end of records without a reply.
 *
 *
 * A request, and the end of a connection
 *
 *   client            mosquitto + plugin                               statestored
 *     |                       |  <-------------- HELLO --------------------  |
 *     |                       |  --------------- WELCOME ----------------->  | commits the broker run
 *     |                       |  <-- end 0 --------------------------------  |
 *     | -- KEYNOTIFY -------> |                                              |
 *     | <----------- PUBACK - |  -- frame 1: request 1 ------------------->  |
 *     | -- SET, GET --------> |  (queued: a frame is outstanding)            | executes, commits
 *     |                       |  <-- reply 1, tracked; end 1 --------------  |
 *     | <------- reply to 1 - |                                              |
 *     |                       |  -- frame 2: requests 2, 3 --------------->  |
 *     |                       |  <-- notification of change 1;               |
 *     |                       |      reply 2; reply 3; end 3 --------------  |
 *     | <----- notification - |                                              |
 *     | <---------- replies - |  -- frame 3: published 1 ----------------->  |
 *     | -- DISCONNECT ------> |  -- frame 4: disconnected 4 -------------->  |
 *     |                       |  <-- end 4 --------------------------------  |
 *
 * The plugin sends a record at once if nothing is outstanding: no sent record without an end. Else
 * the record waits in the queue of its client (common/fair_queue). When a frame of the store has
 * arrived, the plugin first publishes its replies, and then fills frames with waiting records, by
 * turns between the clients, until COMPANION_FRAMES_MAX frames are outstanding.
 *
 * The end of a connection is reported if the connection is tracked, or has requests that have not
 * ended. Its record waits behind all requests of this connection, in the queue of its client.
 *
 *
 * After the loss of a frame
 *
 * Frames have QoS 0. The broker drops one if the store's session is full, and the loss of the
 * store's connection drops some. Frames to the store have numbers without gaps, from 1 with each
 * HELLO. A store that misses a number ignores all later frames, and sends HELLO. When the store
 * begins to serve again, the plugin sends all kept records again, with the same numbers and in the
 * same order, before new ones; the number of the frame starts at 1 again. The store
 *
 * - does not execute a request again if it remembers (broker run, number): it repeats the reply;
 * - executes reads again, and requests that ended with an error, unless it remembers the reply by the
 *   content of the request (PROTOCOL.md "Repeated requests").
 *
 * If COMPANION_FRAME_TIMEOUT_NS have passed without an end although records are outstanding, the
 * plugin sends a frame without records: the store notices a missing number. A store that waits for
 * `published` too long sends a frame without records. The plugin answers each frame that has no
 * records with a frame.
 *
 *   plugin                                                  store
 *     | -- frame 7: request 41 ---------- dropped             |
 *     |    ... 5 s                                            |
 *     | -- frame 8: no records ---------------------------->  | 7 is missing
 *     | <---------------------------------------- HELLO ----  |
 *     | -- WELCOME ---------------------------------------->  |
 *     | <---------------------------------------- end 0 ----  |
 *     | -- frame 1: request 41 ---------------------------->  |
 *
 * After the end of the store's process, the next process sends HELLO, and the plugin sends all kept
 * records again. A store with data remembers what it has committed. A store without data has a new
 * instance: the plugin disconnects the tracked clients, and the store executes the kept records on
 * its empty state. A copy (a restored backup, or keys of `statestorectl import` in a new storage) has a new
 * instance, too, but may have been made after a numbered record was executed.
 *
 * After the store has served another broker, and returns to the first one (which was not restarted): what
 * the first one keeps is of a former time. This store, or another one with the same data, may have
 * executed its numbered records, and remembers executions only of the broker run that it served last. And
 * a client that continues its session there would miss what has happened at the other broker. So HELLO
 * has the broker run that was served last, which a store with data commits before it begins to serve; a copy
 * has a random one, and a store that is empty, because it has never served, has 0. The plugin
 * ends all numbered records without a reply, except if this is 0, or if this is the run of its broker and
 * the last HELLO was of the same instance. If it is another run, and not that of the first HELLO of the same
 * instance either, another broker was served since: the plugin ends its broker's process.
 *
 * The first HELLO counts because that commit may fail, when the disk is full. The store then executes
 * nothing but reads until the next one, and after a restart still has the run of the first HELLO.
 *
 *   broker A + plugin                                       store
 *     | -- frame 3: requests 7, 8 ------------------------->  | executes, commits
 *     |                            the store serves broker B  | commits the run of B
 *     | <------------------------------ HELLO, served: B ---  |
 *     X  the service manager starts broker A again            |
 *     | <------------------------------ HELLO, served: B ---  |
 *     | -- WELCOME: a new broker run ---------------------->  | commits the run of A
 *
 * After the end of the broker's process: all kept records are lost, and all connections have ended.
 * Clients send requests without a PUBACK again, and repeat or time out the others.
 *
 *
 * Who may send what
 *
 * The plugin accepts HELLO from a client with the store's user name (an option of the plugin; see
 * acl_is_store()), and frames only over the connection that sent the last HELLO. Frames to the
 * plugin are not encrypted: the broker passes messages under $CONTROL to no client.
 *
 * The plugin sends its messages, except the banner, only to the client id that sent the last HELLO,
 * without a subscription. WELCOME is encrypted under the key in HELLO. Frames are encrypted under a key that
 * is derived from it for this purpose only: a client that has taken over the store's session reads
 * and forges nothing. Each box has a random nonce: after a restart of the broker, a repeated HELLO
 * may give the plugin a key that was used before. The store ignores a frame that it cannot decrypt:
 * it belongs to an earlier HELLO. It also ignores a frame whose number it has received: the number
 * is encrypted, so nothing can be replayed. The store executes only requests in frames, so no will,
 * no copy, and nothing that came through a listener without the plugin.
 *
 * The plugin publishes a reply only for a request that is kept, only once, and only to the Response
 * Topic of this request. A plugin's publish needs no WRITE permission. So it publishes replies only
 * to topics that begin with "clients/" or with plugin_opt_statestored_reply_prefix, and to other
 * topics only with plugin_opt_undecided allow: then the broker has no access rules. It takes no
 * request with another Response Topic: the PUBACK has the reason code 0x87 (Not authorized).
 */

/*
 * The version of this protocol. It is in the banner, in the topic of the probe, and in the first
 * byte of HELLO, WELCOME and frames. A store that reads another version does not use the plugin,
 * logs that, and gets no requests: the plugin replies to them that the store is not available.
 */
#define COMPANION_VERSION        "10"
#define COMPANION_VERSION_NUMBER 10

/*
 * Limits of frames to the store. One request may exceed COMPANION_FRAME_BYTES_MAX and
 * COMPANION_FRAME_WORK_NS. After WELCOME, new records get their numbers when all kept records are
 * sent. So at most COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX records have a number and no
 * end.
 */
#define COMPANION_FRAME_BYTES_MAX   ((size_t)256 << 10)
#define COMPANION_FRAME_RECORDS_MAX 64
#define COMPANION_FRAME_WORK_NS     INT64_C(2000000) /* of store and broker, estimated */
#define COMPANION_FRAMES_MAX        2                /* outstanding: with a record that has not ended */
#define COMPANION_FRAME_TIMEOUT_NS  INT64_C(5000000000)

/* Size in bytes of each key: in HELLO, and of frames. */
#define COMPANION_KEY_SIZE 32

/*
 * Size in bytes of an instance id as text: 32 lower-case hexadecimal digits, and a final NUL. The
 * digits are random and known to the store and the plugin only, so no client can guess the client
 * id of the store: COMPANION_RANDOM_ID_PREFIX and the instance id, if the operator configures none.
 */
#define COMPANION_INSTANCE_TEXT_SIZE 33

/* The client ids that a store may have where the broker does not authenticate it: acl_is_store(). */
#define COMPANION_CLIENT_ID_PREFIX "statestored"

#define COMPANION_RANDOM_ID_PREFIX COMPANION_CLIENT_ID_PREFIX "-"

/* 1. From the store to the plugin */

#define COMPANION_CONTROL "$CONTROL/statestore/v1/"

/*
 * HELLO, the first message on each connection of the store, at QoS 1. Payload: struct
 * handshake_hello. Its numbers ascend from 1 in each run. Each HELLO has another key
 * (companion_hello_key()). The plugin ignores a HELLO whose number is not higher than the last one
 * of the same run: the MQTT client of the store has repeated it.
 *
 * A HELLO with another served broker run may end the broker: see above.
 *
 * If an earlier HELLO came from another client id, the plugin disconnects that client, so that at
 * most one store serves.
 *
 * If the instance id has changed, the plugin disconnects the tracked clients: their registrations
 * are lost, and their client libraries register again when they reconnect. It also resets its
 * position: it has published no change of the new instance.
 *
 * The plugin replies with WELCOME. If no WELCOME arrives in time, send HELLO again: the plugin may
 * have been out of memory, or the queue of the store's session was full. After HELLO the store
 * sends no frame and executes nothing until WELCOME; it drops the records that it has not executed.
 *
 * A store with data also sends HELLO when commits succeed again after a failed commit of a KEYNOTIFY
 * STOP. The store has restored the registration, and WELCOME lists the connections that still exist.
 */
#define COMPANION_HELLO        COMPANION_CONTROL "hello"
#define COMPANION_INSTANCE_MAX 64

/*
 * A frame to the plugin, at QoS 0 (struct frame_to_plugin_record). The plugin processes the records
 * in their order. If the plugin has no memory for a record, it ignores all later frames, and skips a
 * number of its own frames, so that the store sends HELLO.
 *
 * REPLY: the reply to a kept request, and whether its connection is tracked from now on, or no
 * more. All records up to this request have ended. A reply without a message only says the latter:
 * there is none, or test control (--control) publishes it later.
 *
 * NOTIFICATION, of one change to many connections. For each connection in the record, the plugin
 * publishes the notification to the client of this connection only, at QoS 1, with or without a
 * subscription. The topic is the client's notify topic for the key (topic_append_notify()). The
 * plugin skips a number that it has not assigned, and a connection that has ended.
 *
 * If the recipients of a change do not fit in one frame, it has several records: same sequence,
 * growing index, and a flag in the last one. Three limits apply to the recipients of one frame: the
 * broker's maximum packet size; the memory that the broker needs to queue one copy of the
 * notification for each recipient; and the time for which the broker reads no other packet, because
 * it writes these copies.
 *
 * Frames to the store say up to which change the plugin has published all. The plugin sends a frame
 * after each frame with notifications, if need be without records. After WELCOME the store repeats
 * the changes above the `published` of WELCOME. The plugin remembers a position: the sequence of
 * the last notification, and the number of recipients in this and all earlier records of the
 * change. It skips recipients up to this position, so no client gets a notification twice. The
 * store sends notifications in the order of their sequences, so the plugin also drops one with a
 * lower sequence than the position.
 *
 * KICK: the plugin disconnects the client of this connection, and the broker publishes the client's
 * will. The store kicks a connection in these cases:
 *
 * - WELCOME lists the connection as tracked and not as pending, but the store has no registrations of
 *   it: they ended by a new policy, or while the store served a broker without the plugin. A request of
 *   a pending connection may register again.
 * - A notification for the connection is too large for the broker.
 * - With --control: the fault `kick` applies to a request of the connection.
 *
 * END: all records up to this number have ended, also those without a reply. It also says how long
 * the store has worked on the batch with these records, without commits: on their execution and the
 * replies, on expired keys, and on the check of registrations. The plugin sizes the next frames from
 * it, and from what it has published since the last END. The first frame after WELCOME only says that the
 * store begins to serve: it is an END with the number 0, because the plugin answers a frame without records.
 */
#define COMPANION_FRAME_TO_PLUGIN COMPANION_CONTROL "frame"

/* 2. From the plugin to the store */

#define COMPANION_SYS "$SYS/statestore/v1/"

/*
 * The banner. Payload: COMPANION_VERSION. QoS 1, retained, not encrypted. All clients may read it. It
 * means that the plugin is loaded. Of the plugin's topics, the store subscribes only to this one and
 * to COMPANION_PROBE. The plugin's other messages arrive without a subscription. With a subscription,
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
 * WELCOME, the reply to HELLO, at QoS 0. Payload: struct handshake_welcome, encrypted
 * (companion_box_seal()) under the key in HELLO. Only the reply to the last HELLO is valid: the
 * store cannot decrypt others, and ignores them.
 *
 * A new broker run means that the broker was restarted and every connection has ended, or that this
 * is another broker.
 *
 * If a connection is not listed, it has ended: the store ends its registrations. A listed
 * connection is tracked, or pending (it has requests that have not ended), or both: the store keeps
 * its registrations.
 *
 * The plugin has published the changes up to the sequence in WELCOME. The store numbers the next
 * change above this sequence and above all sequences that it has used. If the store was restored from
 * an older copy of its data, the sequence in WELCOME is higher than all sequences that the store
 * knows.
 *
 * A flag says that a run sends HELLO again after another run has sent HELLO: two stores take over
 * each other's session repeatedly.
 */
#define COMPANION_WELCOME COMPANION_SYS "welcome"

/*
 * A frame to the store, at QoS 0. Payload: struct frame_to_store, encrypted (companion_box_seal()).
 *
 * REQUEST: the identity of the sender, which the broker vouches for, and what the client has
 * published. The Message Expiry Interval is missing: mosquitto does not pass it to plugins. A
 * request at QoS 0 or 2 has no payload and no user properties: the store replies with an error.
 *
 * DISCONNECTED: the end of a connection. A flag says that the plugin has disconnected the client as
 * a slow watcher: the broker has dropped a message for its tracked connection. It does so at a
 * tick. mosquitto before 2.0.15 with per_listener_settings sends no ticks to plugins, so there the
 * plugin disconnects no slow watcher.
 *
 * mosquitto does not report to plugins what it drops, but it logs the first drop of each connection
 * (protocol/broker_log.h). The plugin reads the log when the broker asks it whether the store may
 * read the line. So the store subscribes to BROKER_LOG_NOTICE, and gets none of the lines while the
 * plugin is loaded. This requires log_dest topic in mosquitto.conf. The log does not tell which
 * messages are dropped, and later drops of the connection are not logged. So the plugin also
 * disconnects a client that has lost messages but no notification, and a client that registers
 * after a drop. The plugin knows a connection from its first request on, so it does not notice
 * earlier drops: mosquitto 2.0 does not tell plugins that a client has connected. mosquitto 2.1
 * does, but the plugin does not use it.
 */
#define COMPANION_FRAME_TO_STORE COMPANION_SYS "frame"

/* 3. Requests in the plugin */

/*
 * Replies of the plugin itself. They have the user properties of a reply of the store, with
 * COMPANION_SOURCE_ID in place of the store's node id, which the plugin does not know.
 *
 * TOO_MANY: the request exceeds its client's share of the queues (common/fair_queue),
 * plugin_opt_statestored_queue_bytes together.
 *
 * UNAVAILABLE: the request was not sent to a store within plugin_opt_statestored_wait seconds.
 */
#define COMPANION_SOURCE_ID         "StateStore"
#define COMPANION_ERROR_TOO_MANY    "too many requests are waiting"
#define COMPANION_ERROR_UNAVAILABLE "the state store is not available"

#define COMPANION_WAIT_S_DEFAULT      10 /* the published clients' time-out */
#define COMPANION_QUEUE_BYTES_DEFAULT ((size_t)64 << 20)
