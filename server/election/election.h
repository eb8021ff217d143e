/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Decides which one of several stores leads. It is a pure function of what a member has read in etcd and of
 * time. It does no I/O, reads no clock and allocates no memory.
 *
 * 1. Terms
 *
 * A *member* is a store on a machine of its own. One member at a time is the *leader*. The others are
 * *standbys*. All members share one key in etcd, the *header*. A *process* is one run of a member.
 *
 * Of etcd this uses one property: a transaction compares and writes atomically.
 *
 *   - Each transaction of a member compares the mod_revision of the header with the one that the member
 *     knows, and writes the header. If another member has written the header, the transaction fails.
 *   - The leader writes the header with each commit. If a third of the lease passes without a commit, it
 *     writes the header alone: it renews the lease.
 *   - A standby reads the header every lease/15, from the etcd of its own machine. This etcd may be behind,
 *     so the header may be old. If no newer header appears for long enough, the standby wins: it writes a
 *     header with the next term.
 *   - A member that does not know the outcome of a transaction sends the same transaction again, with the
 *     same sent_ns, until the outcome is known.
 *
 * Times end in _ns or _ms. A time in _ns is of CLOCK_BOOTTIME of one machine. It is never compared with a
 * time of another machine, or with a time before a reboot. Only the difference of two times of one process
 * is used elsewhere. The clocks of two machines must run equally fast within 5 %.
 *
 * 2. Example
 *
 * The lease is 10 s. Both columns show the seconds on the clock of that machine. They differ, because the
 * machines were started at different times.
 *
 *     leader A                              standby B
 *     100.0  sends the header G
 *                                           500.2  receives G: G was sent at 500.2 or before
 *     103.0  sends the header H
 *     103.1  A and its etcd lose power
 *                                           505.0  the other members of etcd elect a leader; B receives H
 *                                           514.3  reads H again, and wins
 *
 * When was H sent, on the clock of B? At 505.0 or before, because B received it then. But A sent H 3 s after
 * G, so it was also sent at 500.2 + 1.05 * 3 = 503.35 or before. The earlier time counts. B waits for
 * 1.05 * 10 s after it, until 513.85, and wins with the next reading. On the clock of A at least 10 s have
 * passed then since 103.0: the lease has ended.
 *
 * 3. Safety
 *
 * Writes. If another member has won, the header has another mod_revision than the one that the former leader
 * knows. So the next transaction of the former leader fails, and its process ends. No time is involved.
 *
 * Reads. A leader answers a read from memory only before its lease ends. The lease begins when the leader
 * sends a transaction that succeeds, not when the reply arrives. No other member wins before that end:
 *
 *   1. A standby that wins has compared the mod_revision. So the header that it has read, H, is the last one
 *      that the leader has written. The lease ends at H.sent_ns + H.lease_ns on the leader's clock. If the
 *      reading was old, there is a newer header, and the comparison fails.
 *   2. sent_by_ns is a time on the standby's clock at which H had certainly been sent. It is the earlier one
 *      of two times: that of receiving H, and T + 1.05 * (H.sent_ns - G.sent_ns), where T is such a time for
 *      an earlier header G of the same process.
 *   3. The standby wins at sent_by_ns + 1.05 * H.lease_ns or later. At least H.lease_ns have passed on the
 *      leader's clock then.
 *
 * In two cases a standby need not wait. A leader that gives up ends its lease before it sends the header
 * that says so. And if the member of the header is the standby's own, that process has ended, because this
 * process has its lock.
 *
 * A leader may still lead after its lease has ended. Then it answers a read after the next transaction that
 * succeeds: the comparison proves that no other member had won.
 *
 * A clock that runs more than 5 % too slow, such as that of a virtual machine while it is paused, can make a
 * leader answer a read with an old value. It cannot damage writes.
 */

#define ELECTION_NAME_MAX 63

/* Limits of a lease. */
#define ELECTION_LEASE_MIN_NS INT64_C(1000000000)
#define ELECTION_LEASE_MAX_NS INT64_C(3600000000000)

/*
 * What the header says about the process that wrote it. The caller has checked what it has read: no
 * time is negative, and the lease is within its limits.
 */
struct election_header {
        uint64_t mod_revision;            /* 0: there is no header, and the other fields have no meaning */
        uint64_t term;                    /* incremented by each win */
        char name[ELECTION_NAME_MAX + 1]; /* of the member, for persons */

        /*
         * A random number in the lock file of the member, in a directory that does not outlive a
         * reboot. A process has it only while it has locked the file.
         */
        uint64_t member;
        uint64_t process;  /* a random number of the process */
        bool has_given_up; /* the process no longer leads; its lease has ended */
        int64_t sent_ns;   /* clock of the process, before it first sent the transaction */
        int64_t lease_ns;  /* lease of the process */
        int64_t wall_ms;   /* wall clock of the process at sent_ns */
};

/* A reading of the header. All clocks are those of the reader. */
struct election_reading {
        struct election_header header;
        uint64_t cluster;    /* id of the etcd cluster */
        uint64_t revision;   /* of etcd, in the same response: at or above that of the header */
        int64_t asked_ns;    /* read before the request was sent */
        int64_t received_ns; /* read after the response was received */
        int64_t wall_ms;     /* wall clock at received_ns */
};

struct election_config {
        uint64_t member;  /* as in a header that this member writes */
        int64_t lease_ns; /* members may have different ones */
};

/* Read-only for the caller. */
struct election {
        struct election_config config;
        bool has_reading;
        struct election_reading reading; /* the last one that counts */
        int64_t received_ns; /* when the header in reading was first received: see state/timescale.h */
        int64_t sent_by_ns;  /* when that header had certainly been sent */
        int64_t wall_difference_ms; /* this member's wall clock minus that of the header's process */

        bool is_behind;          /* later readings had an earlier revision */
        int64_t behind_since_ns; /* when the first one of these was received */
        int64_t behind_asked_ns; /* of the last one of these */
};

/* Why a standby waits or wins. Name and text, for logs and /readyz. */
#define ELECTION_WAITS(X)                                                                                   \
        X(ELECTION_UNKNOWN, "etcd has not been read recently")                                              \
        X(ELECTION_BEHIND, "etcd shows an earlier revision than before: it is behind, or was restored")     \
        X(ELECTION_LED, "a member leads, or led a short time ago")                                          \
        X(ELECTION_CLOCKS_DIFFER, "the wall clock differs from that of the former leader")                  \
        X(ELECTION_NO_BROKER, "there is no leader, and the broker cannot be used")
#define ELECTION_WINS(X)                                                                                    \
        X(ELECTION_WINS_NEW, "no member has led yet")                                                       \
        X(ELECTION_WINS_AGAIN, "an earlier process of this member led")                                     \
        X(ELECTION_WINS_GIVEN_UP, "the leader has given up")                                                \
        X(ELECTION_WINS_EXPIRED, "the lease of the leader has ended")

enum election_reason {
#define ELECTION_NAME(name, text) name,
        ELECTION_WAITS(ELECTION_NAME) ELECTION_WINS(ELECTION_NAME)
#undef ELECTION_NAME
};

/* Begin as a standby that has read nothing. */
void election_init(struct election *ret_election, const struct election_config *config);

/*
 * The standby has read the header. Also call it with the header that a failed comparison returned,
 * so that the member does not try the same win again; asked_ns is then the time of the last
 * sending.
 *
 * A reading of an earlier revision than the last one does not count: an etcd that was just started,
 * or another one, may be behind. If all readings of more than a lease are earlier, etcd was probably
 * restored from a copy: then the reading counts as the first one. This is safe, because to win still
 * compares. A reading of another cluster counts as the first one, too.
 */
void election_observe(struct election *election, const struct election_reading *reading);

/*
 * Decide whether this standby waits or wins now: it wins if the returned reason is ELECTION_WINS_NEW or
 * greater. Call it after each reading, also after one that failed. To win, write a header with the next
 * term, comparing reading.header.mod_revision. If two standbys win, the comparison of one fails.
 *
 * Wins only on a reading whose request was sent in the last lease/5. Otherwise a process that was
 * stopped for a while would try to win on what it knew before.
 *
 * Wins only if broker_is_usable: the broker of this member accepts a connection of the store, and
 * has the plugin if that is required.
 *
 * Wall clocks: if the wall clock of this member differs from that of the former leader by
 * ELECTION_WALL_TOLERANCE_MS or more, it waits two leases of that leader longer, so a member whose
 * clock agrees wins first. It does not wait for ever, because two clocks do not tell which one is
 * wrong: a leader with a wrong clock that is then lost would leave no leader. Such a win is safe:
 * versions continue from the stored clock, and deadlines from received_ns. But clients may refuse
 * versions that are far ahead of their clocks, so log a warning with wall_difference_ms. The
 * difference is taken when a header is first received. If this is also the first reading, the
 * header may be of any age, so then it counts only if the header's clock is ahead.
 */
#define ELECTION_WALL_TOLERANCE_MS 10000
enum election_reason election_next(const struct election *election, int64_t now_ns, bool broker_is_usable);

/* The text of a reason. */
const char *election_reason_text(enum election_reason reason);

/* How long after a reading the standby asks for the next one. */
int64_t election_read_interval_ns(int64_t lease_ns);

/*
 * Return the time until the lease of the leader ends; 0 or less: it has ended. While it lasts, the
 * leader may send a reply that depends on no commit. sent_ns: of its last transaction that succeeded,
 * at first the one that won. now_ns must be read after the request was executed. Do not ask after the
 * leader has begun to give up.
 */
int64_t election_lease_left_ns(int64_t lease_ns, int64_t sent_ns, int64_t now_ns);

/* When the leader must write the header again. */
int64_t election_renewal_ns(int64_t lease_ns, int64_t sent_ns);
