/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "pipeline/pipeline.h"
#include "pipeline/queue.h"
#include "protocol/handshake.h"

/*
 * The peer is the broker that the store is connected to: which kind of broker it is, the store's side
 * of HELLO and WELCOME (common/protocol/companion.h), and what changes with it. The kind is determined
 * in the state NEW. A broker with the plugin is served after WELCOME. Any other broker is served at
 * once: the senders of requests are not verified, and disconnects are inferred from PUBACKs, or
 * reported on the presence topic.
 *
 *     DOWN             connected                             NEW
 *     NEW              HELLO                                 HELLO_SENT
 *                        no memory for HELLO                 HELLO_DELAYED
 *                        no plugin, but it is required       WITHOUT_PLUGIN
 *                        no plugin                           PREPARING, or PREPARED
 *     HELLO_SENT       WELCOME                               PREPARING
 *                        no memory for its connections       HELLO_DELAYED
 *                      deadline                              NEW
 *     HELLO_DELAYED    deadline                              NEW
 *     WITHOUT_PLUGIN   banner                                NEW
 *     PREPARING        registrations are checked             PREPARED
 *     PREPARED         no commit is required                 PLAIN, or WITH_PLUGIN
 *     WITH_PLUGIN      a frame is missing                    NEW
 *     each             the end of the connection             DOWN
 *                      peer_restart()                        NEW
 *                      the outbox has failed                 HELLO_DELAYED
 *
 * In PLAIN and WITH_PLUGIN, the broker is served: the outbox is open. Before, in PREPARING, the engine
 * ends the registrations whose connections have ended, in steps. Then the run of a broker with the
 * plugin is committed, if it is not stored yet: so the executions of a batch are always those of the stored
 * run, and each later HELLO of any process names this run. If this commit fails, the broker is served
 * nevertheless: it can read, and each later commit has the run, too.
 *
 * When the broker is no longer served, the outbox is closed, and records in frames are dropped: the
 * plugin sends them again. Messages wait.
 */
enum peer_state {
        PEER_DOWN,
        PEER_NEW,            /* the broker must be identified */
        PEER_WITHOUT_PLUGIN, /* the required plugin is awaited */
        PEER_HELLO_DELAYED,  /* something was not published: NEW after deadline_ns */
        PEER_HELLO_SENT,     /* WELCOME is awaited until deadline_ns */
        PEER_PREPARING,      /* registrations remain to be checked */
        PEER_PREPARED,       /* the broker is served when no commit is required */
        PEER_PLAIN,          /* a broker without the plugin is served */
        PEER_WITH_PLUGIN,    /* a broker with the plugin is served */
};

struct peer {
        enum peer_state state;
        int64_t deadline_ns;     /* of the present state; INT64_MAX: none */
        bool is_session_present; /* of the MQTT session, at the last CONNACK */
        bool is_plugin_detected; /* by its banner, a retained message, or by the SUBACK of COMPANION_PROBE */
        bool requires_plugin;
        /*
         * These states of the plugin were logged. They end when a plugin of this version is
         * detected.
         */
        bool is_plugin_missing_logged, is_other_version_logged;
        struct log_limit takeover_limit, frame_limit;

        uint64_t run; /* random number of this process: see common/protocol/companion.h */
        uint64_t n_hellos;
        uint8_t secret[COMPANION_KEY_SIZE];    /* the keys of HELLO are derived from it */
        uint8_t hello_key[COMPANION_KEY_SIZE]; /* sent in the latest HELLO; decrypts WELCOME */

        /* In PREPARING and PREPARED. */
        uint8_t *welcome_text;            /* owned; NULL: a broker without the plugin */
        struct handshake_welcome welcome; /* borrows from it */
        struct buf retained;              /* the numbers of its connections, in ascending order */
        bool is_check_begun;              /* of the registrations */
};

void peer_deinit(struct peer *peer);

/* BROKER_UNKNOWN unless a broker is served. */
enum broker_kind peer_broker_kind(const struct peer *peer);

/*
 * Return whether this broker may send the item. One with the plugin has requests and disconnects only
 * in frames: a message is a will, or came through a listener without the plugin. But a client inside
 * the process has no broker.
 */
bool peer_accepts(const struct peer *peer, const struct queue_item *item);

void peer_connected(struct peer *peer, bool session_present);
void peer_disconnected(struct pipeline *pipeline);

/*
 * Identify the broker again, although the connection has not ended. Nothing is executed before. The plugin
 * sends its requests again, and the replies of the present batch are then repeated, behind their
 * notifications.
 */
void peer_restart(struct pipeline *pipeline);

/*
 * Do what the state of the peer needs, until the broker is served or something is awaited. The batch must
 * be open.
 * - In NEW, identify the broker. If the outbox has failed, do so after 1 s.
 * - In PREPARING, check registrations until the quantum is over or the batch is full.
 * - In PREPARED, serve the broker; if the batch must be committed before, the call after the commit does.
 */
void peer_advance(struct pipeline *pipeline, struct now now);

/* Return true in PREPARING and PREPARED: peer_advance() has more to do when the batch is open. */
bool peer_is_preparing(const struct peer *peer);

/*
 * COMPANION_BANNER has arrived: whether the broker has a plugin of this version. It may wait behind other
 * messages in the store's session, so the broker may be identified already.
 */
void peer_receive_banner(struct peer *peer, struct slice version);

/* COMPANION_WELCOME has arrived; ignored unless it replies to the latest HELLO. box: its payload. */
void peer_receive_welcome(struct pipeline *pipeline, struct slice box, struct now now);

/*
 * A frame of the plugin is lost for the store: identify the broker again, so that the plugin sends its
 * requests again. result: of queue_add_frame().
 */
void peer_lost_frame(struct pipeline *pipeline, int result);

/* If the deadline for WELCOME, or of PEER_HELLO_DELAYED, has passed, enter PEER_NEW. */
void peer_tick(struct peer *peer, struct now now);
