/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/parse.h"
#include "protocol/topics.h"

/*
 * The companion protocol: what statestored (the store) and mosquitto_statestore.so (the plugin in the broker) say to
 * each other. Both are written against this file alone; its cryptography is in common/protocol/companion_mac.h.
 *
 * All messages are MQTT 5 PUBLISH packets at QoS 1, and none but the banner is retained. Numbers are decimal text
 * without sign or padding, unless a message says otherwise.
 *
 * Terms
 *
 * A *connection* is one connection of one client, from CONNECT to its end, whatever ends it and whatever becomes of its
 * session. Its number is above 0 and below 2^63. The plugin gives it with the first request that comes over the
 * connection, and never gives it twice: numbers grow within one run of the broker, and each run begins at a random one.
 *
 * A *tracked* connection has registrations (KEYNOTIFY) at the store. The plugin tells the store when it ends.
 *
 * The *run* of a store is a random number below 2^64, drawn when its process starts. Within a run the *sequence* numbers
 * messages that must take effect once. Sequences grow from 1 on; hello and deliver share them.
 *
 * The *MAC key* is drawn by the plugin when the broker loads it. It proves to the store that the plugin has seen a
 * request. It leaves the plugin in welcome only, encrypted. The store keeps the last two MAC keys with its data, so
 * that requests which wait in its session can be verified after a restart of the broker, of the store, or of both.
 *
 * What the protocol defends against
 *
 * Every client has read this file, can publish any bytes that the broker's rules let it publish, can leave a will, and
 * can try to take over the store's MQTT session by connecting with the store's client id. mosquitto gives the session,
 * with all messages that wait in it, to the new connection, whatever its user name. A will, and a message that comes
 * through a listener without the plugin, reach the store without the plugin having seen them. Therefore:
 *
 * - Messages of the store to the plugin are published under $CONTROL, which the broker hands to the plugin and to nobody
 *   else. The plugin ignores them unless they come from the store's own client (plugin_opt_statestored_username,
 *   plugin_opt_statestored_client_id).
 * - Messages of the plugin to the store are published under $SYS, where no client can publish. Whoever reads them in
 *   the store's session learns connection numbers; welcome is encrypted under a key that only its hello has carried.
 * - Each request that the store trusts bears a MAC over the sender's identity and over all that has meaning in the
 *   request, and a sequence number that the store accepts once. A will, a forgery and a copy are not executed.
 * - Where the broker authenticates by user name and password, the plugin refuses a CONNECT with the store's client id by
 *   another user. Where the broker does not ask the plugin about a CONNECT, the store's client id ends in 128 random bits.
 *
 * Who can do what
 *
 * The broker authenticates by a password file, the plugin is loaded on every listener, plugin_opt_statestored_username
 * names the store's user, and only the store has that user's password. Each line names the test that shows it, in
 * tests/integration: (A) test_companion_attacks.py, (B) test_broker_side_identity.py, (G) test_plugin_guard.py,
 * (I) test_plugin_identity.py, (T) test_link_tls.py.
 *
 * An anonymous client
 * - cannot connect if the broker refuses anonymous clients
 *   (A) an_anonymous_client_cannot_connect_where_the_broker_refuses_it
 * - has no user name if the broker accepts it
 *   (A) an_anonymous_client_is_nobody_where_the_broker_accepts_it
 *
 * An authenticated client
 * - sends requests as itself; it may choose any client id but the store's, so rules with {client} trust the broker to
 *   assign client ids
 *   (B) it_cannot_register_another, (I) client_ids_and_user_names_of_any_text_are_vouched_for
 * - cannot send identity properties of its own
 *   (I) forged_identity_properties_are_taken_out_and_nothing_else_is, requests_of_another_qos_bear_no_identity
 * - cannot connect with the store's client id
 *   (A) no_other_user_connects_with_the_stores_client_id
 * - learns no key from the store's session, where it can take that over
 *   (A) a_thief_of_the_stores_session_learns_no_key_and_forges_nobody
 * - cannot guess the store's client id where the broker does not ask the plugin about a CONNECT
 *   (A) a_store_whose_client_id_nothing_guards_takes_another_one, (T)
 *   another_user_cannot_take_over_the_store_where_certificates_name_the_users
 * - cannot have a will, a changed request or a copy executed
 *   (A) a_will_is_not_executed, a_retained_will_and_one_with_a_delay_are_not_executed, a_changed_request_is_not_executed,
 *   a_copied_request_is_not_executed_again, a_copy_that_waits_for_a_store_with_data_is_not_executed_again
 * - cannot read requests, or another's notifications, by wildcard, shared subscription or the topic itself
 *   (B) nobody_else_sees_a_request_or_anothers_notification, nobody_else_may_ask_to
 * - reads the replies to another client, with the values in them, unless the broker's rules forbid it
 *   (A) the_replies_to_another_are_read_only_where_the_brokers_rules_allow_it
 * - cannot publish notifications, or what the plugin or the store says
 *   (G) a_stranger_cannot_publish_to, a_stranger_s_will_is_not_published_there_either
 * - cannot have a request logged in another's name
 *   (A) a_request_that_the_plugin_does_not_vouch_for_is_logged_in_nobodys_name
 * - cannot exhaust the store's memory with the properties of one PUBLISH: the plugin refuses more than 1024. It does not
 *   see those of a will: max_packet_size at the broker limits them
 *   (I) a_request_with_more_properties_than_memory_is_spent_on_is_refused
 * - can name any Response Topic that is not the store's own: the broker decides whether the store may publish there
 *   (A) an_answer_goes_where_the_store_may_publish_and_nowhere_else
 * - of MQTT 3 has no properties, and so no answer
 *   (A) a_client_of_mqtt_3_sends_nothing_that_could_be_answered
 *
 * A client that the broker's rules do not let publish requests
 * - has none executed, by PUBLISH or by will
 *   (A) rules_that_forbid_requests_hold_for_wills_too
 *
 * A bridge
 * - sends requests under its own name, and brings no notification and nothing that the plugin says
 *   (G) what_a_bridge_asks_for_bears_the_bridge_s_name, a_bridge_brings_no_notifications_and_nothing_that_the_plugin_says
 *
 * A client of a listener without the plugin (per_listener_settings)
 * - has no request executed, and can read requests: the broker asks the plugins of the reader's listener
 *   (A) a_request_through_a_listener_without_the_plugin_is_not_executed
 *
 * The operator of the broker reads and changes everything there, and is trusted. Another local user can read neither
 * the store's data nor its password file, which are for their owner alone. A reader of the disk has all values, and the
 * MAC keys: it can forge requests by wills until the broker is restarted. A reader of the HTTP port sees counters
 * - and no key, value, client id or secret
 *   (A) the_http_port_shows_no_secret
 *
 * Where the broker does not authenticate, any client can pose as any other, as the store too: it chooses its user name
 * and its client id. A random client id protects nothing there, so the store keeps the one that it has.
 */

/* The version of this protocol, in the banner. A store that reads another version goes without the plugin. */
#define COMPANION_VERSION "3"

/* The store's client id, where the operator chooses none. */
#define COMPANION_CLIENT_ID_DEFAULT "statestored"

/* From the store to the plugin */

#define COMPANION_CONTROL "$CONTROL/statestore/v1/"

/*
 * The first message on each connection of the store to the broker. From then on the plugin speaks to, and listens to,
 * the client (by its id) that sent the last hello. Correlation Data: run ":" sequence.
 *
 * The plugin disconnects the client of an earlier hello that has another client id, so that one store serves at a time.
 *
 * Payload: COMPANION_HELLO_KEY_SIZE random bytes, then the instance id, 1 to COMPANION_INSTANCE_MAX bytes. The random
 * bytes are the key of the welcome that answers; each hello has other ones. The store makes a new instance id whenever
 * it starts without the registrations that it had given, and keeps it as long as it has them.
 *
 * The plugin disconnects clients that were tracked under another instance id: their registrations are lost, and their
 * libraries register again. It answers with welcome. Where no answer comes in time (the plugin has no memory), send
 * hello again.
 */
#define COMPANION_HELLO          COMPANION_CONTROL "hello"
#define COMPANION_HELLO_KEY_SIZE 32
#define COMPANION_INSTANCE_MAX   64

/*
 * Payload: the number of a connection that now has registrations; repeating it changes nothing. The store sends it
 * before it answers KEYNOTIFY: after a crash between the two, the next instance would not have this client disconnected
 * although the client believes that it is registered. The plugin answers with disconnected if the connection has ended.
 */
#define COMPANION_TRACK COMPANION_CONTROL "track"

/* Payload: the number of a connection that has no registrations any more. The plugin does not tell its end. */
#define COMPANION_UNTRACK COMPANION_CONTROL "untrack"

/*
 * A notification. Response Topic: the notify topic, which names the client. Correlation Data: the number of the
 * connection ":" sequence. The plugin passes on payload, Payload Format Indicator, Content Type and user properties, but
 * not the Message Expiry Interval, which mosquitto 2.0 does not show to plugins.
 *
 * The plugin publishes it to this client alone, at QoS 1, whether the client has subscribed or not, and once: an MQTT
 * library sends unacknowledged messages again when it reconnects, in the same order and before new ones, and the plugin
 * drops those whose sequence is not above the highest of this run. It also drops the notification if the client is not
 * connected, or over another connection. Notify topics below the store's prefix are all that the plugin publishes on.
 */
#define COMPANION_DELIVER COMPANION_CONTROL "deliver"

/*
 * Payload: the number of a connection that the plugin is to end, with its client's will. The store disconnects the
 * connections that welcome lists and that have no registrations: those ended while another broker was served.
 */
#define COMPANION_KICK COMPANION_CONTROL "kick"

/* From the plugin to the store */

#define COMPANION_SYS "$SYS/statestore/v1/"

/*
 * The banner. Payload: COMPANION_VERSION. Retained, readable by every client: the plugin is loaded. It is the only topic
 * of the plugin to subscribe to. The others arrive without a subscription, and a subscription would also bring what a
 * bridge publishes there.
 */
#define COMPANION_BANNER COMPANION_SYS "plugin"

/*
 * The answer to hello. Correlation Data: that of the hello. Payload: a box (companion_box_seal()) under the hello's key,
 * with this text:
 *
 *   the MAC key, COMPANION_MAC_KEY_SIZE bytes
 *   the sequence of the last request that the plugin gave a MAC "\n"
 *   COMPANION_GUARDED, COMPANION_UNGUARDED or COMPANION_FIXED "\n"
 *   the number of each tracked connection that is alive "\n", in any order
 *
 * COMPANION_GUARDED: the store's own CONNECT was checked by the plugin, so that a CONNECT with its client id by another
 * user would be refused on this listener. The other two words: it was not checked. The broker skips the plugin on listeners
 * with use_identity_as_username or use_subject_as_username, with enhanced authentication, and where another plugin has
 * accepted the CONNECT. COMPANION_UNGUARDED: the plugin recognizes the store by its user name. A store with the default
 * client id then ends its session, connects again as COMPANION_CLIENT_ID_DEFAULT "-" and 32 random hexadecimal digits, and
 * says hello again. It stores these digits with its data and uses them from the start from then on. COMPANION_FIXED: the
 * plugin's options name the store's client id, or no user, so the store keeps its client id.
 *
 * A new MAC key means that the broker was restarted and every connection ended.
 *
 * Only the answer to the last hello counts. Every request with this MAC key that arrives behind welcome has a sequence
 * above the one in welcome, because the broker keeps the order of QoS 1 messages; requests in front of welcome waited in
 * the store's session. A copy of an older request, published as a will, is therefore refused.
 *
 * A connection that is not listed has ended, or its track was lost with the process that was about to send it. That
 * process had not answered KEYNOTIFY then: the client asks again, and must not be given a remembered answer.
 */
#define COMPANION_WELCOME      COMPANION_SYS "welcome"
#define COMPANION_MAC_KEY_SIZE 32
#define COMPANION_GUARDED      "guarded"
#define COMPANION_UNGUARDED    "unguarded"
#define COMPANION_FIXED        "fixed"

/*
 * Payload: the number of a tracked connection that has ended. It comes behind every request of that connection;
 * requests of the client's next connection may come before it.
 */
#define COMPANION_DISCONNECTED COMPANION_SYS "disconnected"

/*
 * No payload. Sent before welcome to a run that was here before and finds that another run has sent hello meanwhile: two
 * stores take over each other's session again and again.
 */
#define COMPANION_TAKEOVER COMPANION_SYS "takeover"

/*
 * The identity properties: user properties that the plugin appends to a PUBLISH at QoS 1 to TOPIC_INVOKE. It removes all
 * user properties whose names begin with COMPANION_PROPERTY from every PUBLISH there, and the retain flag. A request at
 * QoS 0 or 2 gets no identity properties: the store refuses it.
 *
 * The MAC (companion_proof()) covers the identity, the connection, a sequence number that grows with each request of the
 * plugin's run, Response Topic, Correlation Data, payload, and all other user properties in their order. It does not
 * cover the Message Expiry Interval, which plugins do not see, nor properties that the store ignores.
 *
 * The store executes no request at QoS 1 whose MAC is not right, or whose sequence it has accepted before, as long as it
 * serves a broker with the plugin. With each commit it stores the last sequence whose answer the broker has acknowledged:
 * requests behind it may be delivered again, because the broker may not have read their PUBACK. So two things remain.
 * A request that was copied out of the store's session in the moments before a crash, and is published as a will before
 * the store is back, goes the way of a redelivery: the remembered answers keep it from being executed twice. A store
 * without data has no sequence after a restart, and executes a copy that was published while the store was down.
 */
#define COMPANION_PROPERTY           "statestore-"
#define COMPANION_PROPERTY_MAC       COMPANION_PROPERTY "mac" /* connection ":" sequence ":" MAC in hexadecimal */
#define COMPANION_PROPERTY_CLIENT_ID COMPANION_PROPERTY "client-id"
#define COMPANION_PROPERTY_USERNAME  COMPANION_PROPERTY "username" /* absent: the client gave none */

/* How far the store has got with the requests of one MAC key: the last sequence that it accepted. */
struct companion_position {
        bool is_known; /* false: there is no such key */
        uint8_t key[COMPANION_MAC_KEY_SIZE];
        uint64_t sequence;
};

/* The MAC key of the last welcome, and the one before it. */
struct companion_positions {
        struct companion_position present, former;
};

/* Two numbers with ":" between them, as Correlation Data bears them, and a NUL behind. */
struct companion_pair {
        char text[2 * UINT64_DIGITS_MAX + 2];
        size_t length;
};
struct companion_pair companion_pair(uint64_t first, uint64_t second);

/* Returns 0, or -EINVAL. */
int companion_pair_read(struct slice text, uint64_t *ret_first, uint64_t *ret_second);
