/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/parse.h"
#include "common/topics.h"

/*
 * What statestored and its companion plugin in the broker (mosquitto_statestore.so) say to each other.
 *
 * Both are written against this file alone. Everything travels as MQTT 5 PUBLISH at QoS 1, never retained
 * unless said so; numbers are decimal text without sign or padding.
 *
 * Why it can be trusted. What statestored says, it says under $CONTROL, which the broker hands to the plugin
 * and to nobody else; the plugin refuses it from anyone but statestored's own client. What the plugin says, it
 * says under $SYS, where no client can publish, and to statestored's client alone.
 *
 * A *connection* is one connection of one client, from CONNECT to its end, whatever ends it and whatever
 * becomes of its session. Its number is above 0 and below 2^63, and is never given twice: within one run of the
 * broker they grow, each run begins at a random one. The plugin gives it with the first request that comes over
 * the connection.
 *
 * The *run* of a statestored is a random number below 2^64, drawn anew whenever its process starts. Within a run
 * the *sequence* numbers what must be done once: they grow from 1 on, hello and deliver share them.
 */

/* The plugin speaks this version of what follows. Where statestored reads another one it goes without. */
#define COMPANION_VERSION "2"

/* From statestored to the plugin */

#define COMPANION_CONTROL "$CONTROL/statestore/v1/"

/*
 * Payload: an instance id, 1 to COMPANION_INSTANCE_MAX bytes, whatever they are. statestored makes a new one
 * whenever it starts without the registrations that it had given, and keeps it as long as it has them.
 * Correlation Data: run ":" sequence.
 *
 * Said first, and again on every new connection to the broker: from here on the plugin speaks to, and listens
 * to, the client (by its id) that said it last. Connections held under another instance id are closed: their
 * registrations are lost, and their libraries connect and register anew. The answer is welcome; where none comes
 * in time, for want of memory, say it again.
 */
#define COMPANION_HELLO        COMPANION_CONTROL "hello"
#define COMPANION_INSTANCE_MAX 64

/*
 * Payload: the number of a connection that now has registrations: it is *held*, once however often this is
 * said. Say it before the answer to KEYNOTIFY goes out: after a crash between the two, the next instance would
 * not have this client disconnected although it believes to be registered. Answered with left where the
 * connection has ended already.
 */
#define COMPANION_TRACK COMPANION_CONTROL "hold"

/* Payload: the number of a connection that has no registrations any more. Its end is not told. */
#define COMPANION_UNTRACK COMPANION_CONTROL "release"

/*
 * A notification. Response Topic: the notify topic to deliver on, which names the client; Correlation Data:
 * the number of the connection ":" sequence. Payload, Payload Format Indicator, Content Type and user properties
 * are delivered as they are. Not the Message Expiry Interval, which mosquitto 2.0 does not show to plugins.
 *
 * It goes to this client alone, at QoS 1, subscribed or not, and once: what an MQTT library has no acknowledgement
 * for when a connection breaks it sends again, in the same order, before anything new; of that the plugin drops
 * whatever is not above the highest sequence that it has taken in this run. It is dropped in silence too where the
 * client is not connected, or over another connection; then nothing is queued for it either. A client that has sent
 * no request over its present connection counts as not connected: it can have no registrations.
 */
#define COMPANION_DELIVER COMPANION_CONTROL "deliver"

/*
 * Payload: the number of a connection that is to end, with its client's will. So are those that welcome lists although
 * they have no registrations any more: what they had ended while another broker was served. A test double misbehaves so.
 */
#define COMPANION_KICK COMPANION_CONTROL "kick"

/* From the plugin to statestored */

#define COMPANION_SYS "$SYS/statestore/v1/"

/*
 * Payload: COMPANION_VERSION. Retained, for everyone: that the plugin is there. The only one of these topics
 * to subscribe to; the others arrive unasked, and a subscription to them would also show what a bridge brings.
 */
#define COMPANION_BANNER COMPANION_SYS "plugin"

/*
 * The answer to hello. Correlation Data: that of the hello, as it is. Payload, lines that end with \n: the seal, then
 * the number of each connection that is alive and held under this instance id, in no order. The seal is
 * COMPANION_SEAL_LENGTH digits, new with each run of the broker: when it changes, every connection has ended.
 *
 * Only the answer to the latest hello is true: one to an earlier hello, which waited in the session, does not list what
 * was held since. What else was told meanwhile, and waited there too, may come before welcome, and is true all the same.
 *
 * A connection that is not listed has ended, or its hold was lost with the process that was about to say it. That
 * process had not answered KEYNOTIFY then: the client asks again, and must not be given an answer that was remembered.
 */
#define COMPANION_WELCOME     COMPANION_SYS "welcome"
#define COMPANION_SEAL_LENGTH 32

/*
 * Payload: the number of a held connection that has ended. It comes after every request that came over it;
 * requests over the client's next connection may come before it.
 */
#define COMPANION_DISCONNECTED COMPANION_SYS "left"

/*
 * No payload. Said before welcome to a run that was away and finds that another one has said hello meanwhile: two of
 * them throw each other out.
 */
#define COMPANION_TAKEOVER COMPANION_SYS "rival"

/*
 * The stamp: user properties that the plugin adds to every PUBLISH that a client sends to TOPIC_INVOKE, after it
 * has taken out all whose names begin with COMPANION_PROPERTY. A message whose seal is not the one that welcome
 * gave was not seen by the plugin (a will, a message that another run retained) or is forged: whatever else is
 * stamped on it means nothing. Whoever may read requests learns the seal: do not bridge TOPIC_INVOKE to a broker
 * that is not to be trusted. What a bridge brings in bears the bridge's own name.
 */
#define COMPANION_PROPERTY           "statestore-"
#define COMPANION_PROPERTY_SEAL      COMPANION_PROPERTY "seal" /* seal ":" connection number */
#define COMPANION_PROPERTY_CLIENT_ID COMPANION_PROPERTY "client-id"
#define COMPANION_PROPERTY_USERNAME  COMPANION_PROPERTY "username" /* absent where the broker knows none */

/* Two numbers with ":" between them, as Correlation Data bears them, and a NUL behind. */
struct companion_pair {
        char text[2 * PARSE_UINT64_DIGITS_MAX + 2];
        size_t length;
};
struct companion_pair companion_pair(uint64_t first, uint64_t second);

/* Returns 0, or -EINVAL. */
int companion_pair_read(struct slice text, uint64_t *ret_first, uint64_t *ret_second);
