/* SPDX-License-Identifier: Apache-2.0 */

/* What the broker does to anybody's messages: published by us to ourselves, and to a second connection of ours. */

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ctl/doctor_checks.h"
#include "protocol/companion.h"

#define OUTSTANDING_FEW 100
#define PACKET_SMALL    (UINT32_C(1) << 20)
#define LARGE           ((size_t)256 << 10)

/* More than a mosquitto keeps for one client when it was not told to keep more. */
#define BURST 1500

/* What MQTT clients mostly allow to be outstanding towards them. */
#define BURST_OUTSTANDING 20

#define AWAY_MESSAGES 10
#define AWAY_EXPIRY_S 60

/* How long nothing may come before it is taken for lost. */
#define SILENCE_MS 2000

void doctor_check_limits(struct doctor *doctor) {
        struct connection_limits limits = connection_limits(doctor->connection);

        if (limits.receive_maximum < OUTSTANDING_FEW)
                doctor_say(doctor, SEVERITY_WARN, "receive maximum",
                           "max_inflight_messages 0 in mosquitto.conf",
                           "the broker takes %u messages at once from a client, and lets the others wait",
                           limits.receive_maximum);
        else
                doctor_say(doctor, SEVERITY_OK, "receive maximum", NULL,
                           "the broker takes %u messages at once", limits.receive_maximum);
        if (limits.packet_size_max < PACKET_SMALL)
                doctor_say(doctor, SEVERITY_WARN, "packet size",
                           "max_packet_size in mosquitto.conf, above your largest value",
                           "the broker takes packets of %" PRIu32 " bytes at most", limits.packet_size_max);
        else if (limits.packet_size_max < UINT32_MAX)
                doctor_say(doctor, SEVERITY_OK, "packet size", NULL,
                           "the broker takes packets of %" PRIu32 " bytes at most", limits.packet_size_max);
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
                doctor_say(doctor, SEVERITY_WARN, "plugin",
                           "load mosquitto_statestore.so, where the broker is mosquitto; if it is loaded, "
                           "in the acl_file: topic read " COMPANION_BANNER,
                           "no plugin says to this client that it is there; without one who asks is who "
                           "they say, "
                           "and only clients that subscribe are notified");
        else if (!slice_equal(buf_slice(&peer.payload), SLICE_LITERAL(COMPANION_VERSION)))
                doctor_say(doctor, SEVERITY_WARN, "plugin", "install plugin and store of one version",
                           "the plugin is of another version");
        else
                doctor_say(doctor, SEVERITY_OK, "plugin", NULL, "it is there, version %s",
                           COMPANION_VERSION);
}

bool doctor_publish(struct doctor *doctor, unsigned n, size_t length) {
        CLEANUP(cleanup_free) uint8_t *payload = calloc(1, length);
        int64_t until_ms = monotonic_ms() + doctor->options->timeout_ms;
        static const bool never = false;
        int packet_id;

        if (!payload)
                return false;
        doctor->n_acknowledged = 0;
        doctor->n_refused = 0;
        for (unsigned i = 0; i < n; i++)
                if (connection_publish(doctor->connection, doctor->topics[1],
                                       (struct slice){ payload, length }, NULL, &packet_id) != CONNECTION_OK)
                        return false;
        while (doctor->n_acknowledged < n && monotonic_ms() < until_ms)
                if (connection_wait(doctor->connection, &never, 1) != CONNECTION_TIME_OVER)
                        return false;
        return doctor->n_acknowledged == n;
}

static bool open_peer(struct doctor_peer *peer, const struct connection_config *config) {
        return connection_new(&peer->connection, config) == 0 &&
               connection_open(peer->connection) == CONNECTION_OK;
}

/* Lets the peer receive until it has all, or nothing comes any more. */
static void drain(struct doctor_peer *peer) {
        unsigned n_before;

        do {
                n_before = peer->n_messages;
                if (peer->is_done ||
                    connection_wait(peer->connection, &peer->is_done, SILENCE_MS) == CONNECTION_FAILED)
                        return;
        } while (peer->n_messages > n_before);
}

/* An access rule may know clients by their ids: a second connection of ours has another one. */
static bool reaches_peer(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;

        if (doctor_peer_init(&peer, doctor, "-other", doctor->topics[1], &config) < 0 ||
            !open_peer(&peer, &config))
                return false;
        if (doctor_publish(doctor, 1, 1))
                drain(&peer);
        return peer.is_done;
}

void doctor_check_own_topics(struct doctor *doctor) {
        static const char for_all[] =
                "run the doctor as a user who may write and read clients/# to have them looked at";
        const char *client_id = doctor->options->client_id;

        doctor->is_echoed = false;
        if (doctor_publish(doctor, 1, 1) && doctor->n_refused == 0)
                connection_wait(doctor->connection, &doctor->is_echoed, SILENCE_MS);
        doctor->can_echo = doctor->is_echoed && reaches_peer(doctor);
        if (doctor->can_echo)
                doctor_say(doctor, SEVERITY_OK, "own topics", NULL, "what is sent to clients/%s/# arrives",
                           client_id);
        else if (doctor->is_echoed)
                doctor_say(doctor, SEVERITY_WARN, "own topics", for_all,
                           "what is sent to clients/%s/# arrives, but not over a second connection with "
                           "another client id: queue, size and session are not looked at",
                           client_id);
        else if (doctor->n_refused > 0)
                doctor_say(doctor, SEVERITY_WARN, "own topics", for_all,
                           "this client may not write there: queue, size and session are not looked at");
        else
                doctor_say(doctor, SEVERITY_FAIL, "own topics", "let clients read their clients/ID/#",
                           "what is sent to clients/%s/# does not arrive, and no answer will", client_id);
}

void doctor_check_queue(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;

        if (!doctor->can_echo || doctor_peer_init(&peer, doctor, "-slow", doctor->topics[1], &config) < 0)
                return;
        config.receive_maximum = BURST_OUTSTANDING;
        peer.n_expected = BURST;
        if (!open_peer(&peer, &config))
                return;

        /* meanwhile it reads nothing, as a busy client does */
        if (!doctor_publish(doctor, BURST, 16)) {
                doctor_say(doctor, SEVERITY_WARN, "queue", "look at the broker's log and its limits",
                           "of %d messages at once the broker acknowledged %u in time", BURST,
                           doctor->n_acknowledged);
                return;
        }
        drain(&peer);
        if (peer.n_messages < BURST)
                doctor_say(doctor, SEVERITY_FAIL, "queue",
                           "max_queued_messages 1000000 in mosquitto.conf, not 0",
                           "of %d messages at once for one client %u were lost, %u of them acknowledged",
                           BURST, BURST - peer.n_messages, BURST - peer.n_messages - doctor->n_refused);
        else
                doctor_say(doctor, SEVERITY_OK, "queue", NULL,
                           "%d messages at once for one client all arrive", BURST);
}

void doctor_check_size(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;
        int packet_id;

        if (!doctor->can_echo || doctor_peer_init(&peer, doctor, "-large", doctor->topics[1], &config) < 0)
                return;
        if (open_peer(&peer, &config)) {
                CLEANUP(cleanup_free) uint8_t *payload = calloc(1, LARGE);

                /* over the peer's own connection: a broker may end it */
                if (payload &&
                    connection_publish(peer.connection, doctor->topics[1], (struct slice){ payload, LARGE },
                                       NULL, &packet_id) == CONNECTION_OK)
                        connection_wait(peer.connection, &peer.is_done, doctor->options->timeout_ms);
        }
        if (peer.is_done)
                doctor_say(doctor, SEVERITY_OK, "size", NULL, "a message of %zu bytes arrives", LARGE);
        else
                doctor_say(
                        doctor, SEVERITY_WARN, "size",
                        "message_size_limit and max_packet_size in mosquitto.conf, above your largest value",
                        "a message of %zu bytes does not arrive", LARGE);
}

void doctor_check_session(struct doctor *doctor) {
        CLEANUP(doctor_peer_deinit) struct doctor_peer peer = { 0 };
        struct connection_config config;
        bool is_retained;

        if (!doctor->can_echo || doctor_peer_init(&peer, doctor, "-away", doctor->topics[1], &config) < 0)
                return;
        config.session_expiry_s = AWAY_EXPIRY_S;
        peer.n_expected = AWAY_MESSAGES;
        if (!open_peer(&peer, &config))
                return;

        connection_close(peer.connection);
        doctor_publish(doctor, AWAY_MESSAGES, 16);
        is_retained = connection_open(peer.connection) == CONNECTION_OK &&
                      connection_limits(peer.connection).is_session_present;
        if (is_retained)
                drain(&peer);
        if (is_retained && peer.is_done)
                doctor_say(doctor, SEVERITY_OK, "session", NULL,
                           "what is sent to a client that is away waits for it");
        else
                doctor_say(doctor, SEVERITY_FAIL, "session",
                           "let clients have sessions; see persistent_client_expiration",
                           "%u of %d messages for a client that was away have waited: what is asked while "
                           "the store "
                           "restarts is lost",
                           is_retained ? peer.n_messages : 0, AWAY_MESSAGES);
        connection_end(peer.connection);
}
