/* SPDX-License-Identifier: Apache-2.0 */

/* Checks of the broker: the doctor publishes messages to itself and to a second connection. */

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/system_clock.h"
#include "ctl/doctor_checks.h"
#include "protocol/companion.h"

/* Below these limits of the broker, doctor warns. */
#define RECEIVE_MAXIMUM_LOW 100
#define PACKET_SIZE_LOW     (UINT32_C(1) << 20)

#define LARGE_MESSAGE_SIZE ((size_t)256 << 10)

/* Number of messages sent at once: more than mosquitto queues for one client by default. */
#define BURST 1500

/* A Receive Maximum that is common among MQTT clients. */
#define BURST_RECEIVE_MAXIMUM 20

/* Messages for a disconnected client, and the expiry of its session. */
#define N_SESSION_MESSAGES 10
#define SESSION_EXPIRY_S   60

/* A message that does not arrive within this time counts as lost. */
#define SILENCE_MS 2000

void doctor_check_limits(struct doctor *doctor) {
        struct connection_connack limits = connection_connack(doctor->connection);

        if (limits.receive_maximum < RECEIVE_MAXIMUM_LOW)
                doctor_warn(doctor, "receive maximum", "max_inflight_messages 0 in mosquitto.conf",
                            "the broker takes %u messages at once from a client, and lets the others wait",
                            limits.receive_maximum);
        else
                doctor_ok(doctor, "receive maximum", "the broker takes %u messages at once",
                          limits.receive_maximum);
        if (limits.packet_size_max < PACKET_SIZE_LOW)
                doctor_warn(doctor, "packet size",
                            "max_packet_size in mosquitto.conf, above your largest value",
                            "the broker takes packets of %" PRIu32 " bytes at most", limits.packet_size_max);
        else if (limits.packet_size_max < UINT32_MAX)
                doctor_ok(doctor, "packet size", "the broker takes packets of %" PRIu32 " bytes at most",
                          limits.packet_size_max);
}

void doctor_check_plugin(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;

        if (doctor_peer_init(&peer, doctor, "-plugin", COMPANION_BANNER, &config) < 0)
                return;
        config.wants_retained = true;
        if (connection_new(&peer.connection, &config) < 0)
                return;

        if (connection_open(peer.connection) == CONNECTION_OK)
                connection_wait(peer.connection, &peer.is_done, SILENCE_MS);
        if (!peer.is_done)
                doctor_warn(doctor, "plugin",
                            "load mosquitto_statestore.so if the broker is mosquitto; if it is loaded, "
                            "in the acl_file: topic read " COMPANION_BANNER,
                            "this client cannot read the retained message with which the plugin announces "
                            "itself; without the plugin client ids are not verified, and only clients that "
                            "subscribe are notified");
        else if (!slice_equal(buf_slice(&peer.payload), SLICE_LITERAL(COMPANION_VERSION)))
                doctor_warn(doctor, "plugin", "install the plugin and the store of the same version",
                            "the plugin has another version");
        else
                doctor_ok(doctor, "plugin", "loaded, version %s", COMPANION_VERSION);
        doctor->has_plugin = peer.is_done;
}

/* Publish n messages of this length to echo_topic. Returns false if not all were acknowledged within the timeout. */
static bool publish_echoes(struct doctor *doctor, unsigned n, size_t length) {
        CLEANUP(cleanup_free) uint8_t *payload = calloc(1, length);
        int64_t until_ms = system_clock_mono_ms() + doctor->options->timeout_ms;
        static const bool never = false;
        int packet_id;

        if (!payload)
                return false;
        doctor->n_acknowledged = 0;
        doctor->n_refused = 0;
        for (unsigned i = 0; i < n; i++)
                if (connection_publish(doctor->connection, buf_text(&doctor->echo_topic),
                                       (struct slice){ payload, length }, NULL, &packet_id) != CONNECTION_OK)
                        return false;
        while (doctor->n_acknowledged < n && system_clock_mono_ms() < until_ms)
                if (connection_wait(doctor->connection, &never, 1) != CONNECTION_TIMED_OUT)
                        return false;
        return doctor->n_acknowledged == n;
}

static bool open_peer(struct doctor_peer *peer, const struct connection_config *config) {
        return connection_new(&peer->connection, config) == 0 &&
               connection_open(peer->connection) == CONNECTION_OK;
}

/* Receive until the peer has all messages, or until no message arrives for SILENCE_MS. */
static void drain(struct doctor_peer *peer) {
        unsigned n_before;

        do {
                n_before = peer->n_messages;
                if (peer->is_done ||
                    connection_wait(peer->connection, &peer->is_done, SILENCE_MS) == CONNECTION_FAILED)
                        return;
        } while (peer->n_messages > n_before);
}

/* Return whether a second connection receives the doctor's messages. Access rules may depend on its client id. */
static bool reaches_peer(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;

        if (doctor_peer_init(&peer, doctor, "-other", buf_text(&doctor->echo_topic), &config) < 0 ||
            !open_peer(&peer, &config))
                return false;
        if (publish_echoes(doctor, 1, 1))
                drain(&peer);
        return peer.is_done;
}

void doctor_check_own_topics(struct doctor *doctor) {
        static const char remedy[] =
                "for these checks, run the doctor as a user that may write and read clients/#";
        const char *client_id = doctor->options->client_id;

        doctor->is_echoed = false;
        if (publish_echoes(doctor, 1, 1) && doctor->n_refused == 0)
                connection_wait(doctor->connection, &doctor->is_echoed, SILENCE_MS);
        doctor->can_echo = doctor->is_echoed && reaches_peer(doctor);
        if (doctor->can_echo)
                doctor_ok(doctor, "own topics", "messages to clients/%s/# arrive", client_id);
        else if (doctor->is_echoed)
                doctor_warn(doctor, "own topics", remedy,
                            "messages to clients/%s/# arrive, but not over a second connection with "
                            "another client id: queue, size and session are not checked",
                            client_id);
        else if (doctor->n_refused > 0)
                doctor_warn(doctor, "own topics", remedy,
                            "this client may not write there: queue, size and session are not checked");
        else
                doctor_fail(doctor, "own topics", "let clients read their clients/ID/#",
                            "a message to clients/%s/# does not arrive, so replies will not arrive either",
                            client_id);
}

void doctor_check_queue(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;

        if (!doctor->can_echo ||
            doctor_peer_init(&peer, doctor, "-slow", buf_text(&doctor->echo_topic), &config) < 0)
                return;
        config.receive_maximum = BURST_RECEIVE_MAXIMUM;
        peer.n_expected = BURST;
        if (!open_peer(&peer, &config))
                return;

        /* The peer reads nothing during this call, like a busy client. */
        if (!publish_echoes(doctor, BURST, 16)) {
                doctor_warn(doctor, "queue", "see the broker's log and limits",
                            "of %d messages sent at once the broker acknowledged %u in time", BURST,
                            doctor->n_acknowledged);
                return;
        }
        drain(&peer);
        if (peer.n_messages < BURST)
                doctor_fail(doctor, "queue", "max_queued_messages 1000000 in mosquitto.conf, not 0",
                            "of %d messages sent at once to one client the broker lost %u, and it had "
                            "acknowledged %u of these",
                            BURST, BURST - peer.n_messages, BURST - peer.n_messages - doctor->n_refused);
        else
                doctor_ok(doctor, "queue", "%d messages sent at once to one client all arrive", BURST);
}

void doctor_check_size(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;
        int packet_id;

        if (!doctor->can_echo ||
            doctor_peer_init(&peer, doctor, "-large", buf_text(&doctor->echo_topic), &config) < 0)
                return;
        if (open_peer(&peer, &config)) {
                CLEANUP(cleanup_free) uint8_t *payload = calloc(1, LARGE_MESSAGE_SIZE);

                /* publish over the peer's connection, because the broker may close it */
                if (payload && connection_publish(peer.connection, buf_text(&doctor->echo_topic),
                                                  (struct slice){ payload, LARGE_MESSAGE_SIZE }, NULL,
                                                  &packet_id) == CONNECTION_OK)
                        connection_wait(peer.connection, &peer.is_done, doctor->options->timeout_ms);
        }
        if (peer.is_done)
                doctor_ok(doctor, "size", "a message of %zu bytes arrives", LARGE_MESSAGE_SIZE);
        else
                doctor_warn(
                        doctor, "size",
                        "message_size_limit and max_packet_size in mosquitto.conf, above your largest value",
                        "a message of %zu bytes does not arrive", LARGE_MESSAGE_SIZE);
}

void doctor_check_session(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;
        bool is_session_present;

        if (!doctor->can_echo ||
            doctor_peer_init(&peer, doctor, "-away", buf_text(&doctor->echo_topic), &config) < 0)
                return;
        config.session_expiry_s = SESSION_EXPIRY_S;
        peer.n_expected = N_SESSION_MESSAGES;
        if (!open_peer(&peer, &config))
                return;

        connection_close(peer.connection);
        publish_echoes(doctor, N_SESSION_MESSAGES, 16);
        is_session_present = connection_open(peer.connection) == CONNECTION_OK &&
                             connection_connack(peer.connection).is_session_present;
        if (is_session_present)
                drain(&peer);
        if (is_session_present && peer.is_done)
                doctor_ok(doctor, "session", "messages to a disconnected client wait for it");
        else
                doctor_fail(
                        doctor, "session",
                        "allow sessions to stay after a disconnect; see persistent_client_expiration",
                        "%u of %d messages for a disconnected client have waited: requests are lost while "
                        "the store restarts",
                        is_session_present ? peer.n_messages : 0, N_SESSION_MESSAGES);
        connection_end_session(peer.connection);
}
