/* SPDX-License-Identifier: Apache-2.0 */

/* server/election/election.h: when a standby wins. */

#include <criterion/criterion.h>

#include "base/time_units.h"
#include "election/election.h"
#include "unit/support/table.h"

#define MS(ms)   ((ms)*NS_PER_MS)
#define LEASE_MS 3000
#define OWN      7 /* member of this standby */
#define WALL_MS  INT64_C(1696374425000)

static const struct election_config config = { .member = OWN, .lease_ns = MS(LEASE_MS) };

/* A reading of a header that another member, 1, sent as process 11 in term 5. */
#define READING(at_ms, header_revision, header_sent_ms, ...)                                                \
        {                                                                                                   \
                .cluster = 1, .revision = header_revision, .asked_ns = MS(at_ms), .received_ns = MS(at_ms), \
                .wall_ms = WALL_MS + (at_ms), .header.mod_revision = header_revision, .header.term = 5,     \
                .header.member = 1, .header.process = 11, .header.sent_ns = MS(header_sent_ms),             \
                .header.lease_ns = MS(LEASE_MS), .header.wall_ms = WALL_MS + (at_ms), __VA_ARGS__           \
        }

#define N_READINGS_MAX 4

/* Readings, and what the standby decides at a time. */
struct row {
        const char *name;
        struct election_reading readings[N_READINGS_MAX]; /* up to the first with revision 0 */
        int64_t now_ms;
        enum election_reason reason;
};

static void observe_all(struct election *election, const struct row *row) {
        election_init(election, &config);
        for (size_t i = 0; i < N_READINGS_MAX && row->readings[i].revision > 0; i++)
                election_observe(election, &row->readings[i]);
}

static void check_rows(const struct row *rows, size_t n_rows, bool broker_is_usable) {
        for (size_t i = 0; i < n_rows; i++) {
                enum election_reason reason;
                struct election election;

                observe_all(&election, &rows[i]);
                reason = election_next(&election, MS(rows[i].now_ms), broker_is_usable);
                cr_expect_eq(reason, rows[i].reason, "%s: \"%s\"", rows[i].name,
                             election_reason_text(reason));
        }
}

/* The standby waits, reads the last header again, and wins at the time of the row, not before. */
static void check_waits(const struct row *rows, size_t n_rows) {
        for (size_t i = 0; i < n_rows; i++) {
                int64_t win_ns = MS(rows[i].now_ms);
                struct election_reading again;
                struct election election;

                observe_all(&election, &rows[i]);
                again = election.reading;
                again.asked_ns = again.received_ns = win_ns - 1;
                election_observe(&election, &again);
                cr_expect_eq(election_next(&election, win_ns - 1, true), rows[i].reason, ROW(rows, i));
                cr_expect_geq(election_next(&election, win_ns, true), ELECTION_WINS_NEW, ROW(rows, i));
        }
}

static const struct row unchanged[] = {
        { "1.05 leases", { READING(1000, 10, 50000) }, 4150, ELECTION_LED },
        { "etcd has changed, but not the header",
          { READING(1000, 10, 50000), READING(4100, 10, 50000, .revision = 99) },
          4150,
          ELECTION_LED },
        { "the header has changed",
          { READING(1000, 10, 50000), READING(4100, 11, 53100) },
          7250,
          ELECTION_LED },
        { "the lease of the leader counts, not this member's",
          { READING(1000, 10, 50000, .header.lease_ns = MS(6000)) },
          7300,
          ELECTION_LED },
};

Test(election, wins_after_the_lease_of_an_unchanged_header) {
        check_waits(unchanged, N_ROWS(unchanged));
}

static const struct row times_of_sending[] = {
        { "visible late: counts from the sending",
          { READING(1000, 10, 50000), READING(3900, 11, 51000) },
          1000 + 1050 + 3150,
          ELECTION_LED },
        { "5 % are added to each difference",
          { READING(1000, 10, 50000), READING(2900, 11, 51000), READING(3900, 12, 52000) },
          1000 + 2100 + 3150,
          ELECTION_LED },
        { "not later than the receipt",
          { READING(1000, 10, 50000), READING(2040, 11, 51000) },
          2040 + 3150,
          ELECTION_LED },
        { "not later than the receipt, at any difference",
          { READING(1000, 10, 50000), READING(2000, 11, INT64_MAX / NS_PER_MS) },
          2000 + 3150,
          ELECTION_LED },
        { "another process: the difference means nothing",
          { READING(1000, 10, 50000), READING(3900, 11, 51000, .header.process = 12) },
          3900 + 3150,
          ELECTION_LED },
        { "a clock that went back",
          { READING(1000, 10, 50000), READING(3900, 11, 49000) },
          3900 + 3150,
          ELECTION_LED },
        { "another cluster: as a first reading",
          { READING(1000, 10, 50000), READING(3900, 11, 51000, .cluster = 2) },
          3900 + 3150,
          ELECTION_LED },
        { "another cluster with an earlier revision",
          { READING(1000, 10, 50000), READING(3900, 9, 51000, .cluster = 2) },
          3900 + 3150,
          ELECTION_LED },
};

Test(election, counts_from_the_sending_if_times_of_one_process_show_it) {
        check_waits(times_of_sending, N_ROWS(times_of_sending));
}

static const struct row fresh[] = {
        { "nothing was read", { { .revision = 0 } }, 5000, ELECTION_UNKNOWN },
        { "read a fifth of a lease ago",
          { READING(1000, 10, 50000), READING(4400, 10, 50000) },
          5000,
          ELECTION_WINS_EXPIRED },
        { "read before", { READING(1000, 10, 50000), READING(4400, 10, 50000) }, 5001, ELECTION_UNKNOWN },
        { "received now, but asked for long ago",
          { READING(1000, 10, 50000), READING(5001, 10, 50000, .asked_ns = MS(4400)) },
          5001,
          ELECTION_UNKNOWN },
        { "an etcd that is behind has been read since",
          { READING(1000, 10, 50000), READING(5001, 9, 49000) },
          5001,
          ELECTION_BEHIND },
        { "an etcd that is behind was read before",
          { READING(1000, 10, 50000), READING(5001, 9, 49000) },
          5602,
          ELECTION_UNKNOWN },
        { "an etcd that is behind does not say that the leader has given up",
          { READING(1000, 10, 50000), READING(1200, 9, 49000, .header.has_given_up = true) },
          1200,
          ELECTION_LED },
};

Test(election, wins_only_on_a_fresh_reading) {
        check_rows(fresh, N_ROWS(fresh), true);
}

static const struct row restored[] = {
        { "an earlier revision for a lease",
          { READING(1000, 10, 50000), READING(2000, 9, 49000), READING(5000, 9, 49000) },
          5000,
          ELECTION_BEHIND },
        { "an earlier revision for more than a lease: as a first reading",
          { READING(1000, 10, 50000), READING(2000, 9, 49000), READING(5001, 9, 50500) },
          5001,
          ELECTION_LED },
        { "then this member wins",
          { READING(1000, 10, 50000), READING(2000, 9, 49000), READING(5001, 9, 49000),
            READING(8151, 9, 49000) },
          8151,
          ELECTION_WINS_EXPIRED },
        { "asked for before, received late",
          { READING(1000, 10, 50000), READING(2000, 9, 49000),
            READING(5001, 9, 49000, .asked_ns = MS(5000)) },
          5001,
          ELECTION_BEHIND },
        { "the time begins with the first earlier revision, not with the last reading that counts",
          { READING(1000, 10, 50000), READING(9000, 9, 49000) },
          9000,
          ELECTION_BEHIND },
        { "the time begins again after a reading that counts",
          { READING(1000, 10, 50000), READING(2000, 9, 49000), READING(3000, 10, 50000),
            READING(6000, 9, 49000) },
          6000,
          ELECTION_BEHIND },
};

Test(election, etcd_that_stays_behind_counts_as_restored) {
        check_rows(restored, N_ROWS(restored), true);
}

static const struct row at_once[] = {
        { "there is no header", { { .cluster = 1, .revision = 1 } }, 0, ELECTION_WINS_NEW },
        { "the leader has given up",
          { READING(1000, 10, 50000, .header.has_given_up = true) },
          1000,
          ELECTION_WINS_GIVEN_UP },
        { "this member has given up: it waits",
          { READING(1000, 10, 50000, .header.has_given_up = true, .header.member = OWN) },
          1000,
          ELECTION_LED },
        { "this member has given up, and no other has won",
          { READING(1000, 10, 50000, .header.has_given_up = true, .header.member = OWN),
            READING(4100, 10, 50000, .header.has_given_up = true, .header.member = OWN) },
          4150,
          ELECTION_WINS_EXPIRED },
        { "an earlier process of this member led",
          { READING(1000, 10, 50000, .header.member = OWN) },
          1000,
          ELECTION_WINS_AGAIN },
};

Test(election, wins_at_once_if_no_process_has_a_lease) {
        check_rows(at_once, N_ROWS(at_once), true);
}

static const struct row brokers[] = {
        { "the lease has ended",
          { READING(1000, 10, 50000), READING(4100, 10, 50000) },
          4150,
          ELECTION_NO_BROKER },
        { "there is no header", { { .cluster = 1, .revision = 1 } }, 0, ELECTION_NO_BROKER },
        { "an earlier process of this member led",
          { READING(1000, 10, 50000, .header.member = OWN) },
          1000,
          ELECTION_NO_BROKER },
        { "another member leads", { READING(1000, 10, 50000) }, 1000, ELECTION_LED },
};

Test(election, wins_only_with_a_broker) {
        check_rows(brokers, N_ROWS(brokers), false);
}

#define BEHIND(ms) .wall_ms = WALL_MS - (ms), .header.wall_ms = WALL_MS
#define AHEAD(ms)  .wall_ms = WALL_MS + (ms), .header.wall_ms = WALL_MS

static const struct row other_clocks[] = {
        { "10 s behind: two leases more",
          { READING(1000, 10, 50000, BEHIND(10000)) },
          10150,
          ELECTION_CLOCKS_DIFFER },
        { "leases of the leader",
          { READING(1000, 10, 50000, BEHIND(10000), .header.lease_ns = MS(2000)) },
          1000 + 2100 + 4000,
          ELECTION_CLOCKS_DIFFER },
        { "10 s ahead",
          { READING(900, 9, 49900), READING(1000, 10, 50000, AHEAD(10000)) },
          10150,
          ELECTION_CLOCKS_DIFFER },
        { "the leader has given up: a member whose clock agrees comes first",
          { READING(1000, 10, 50000, BEHIND(10000), .header.has_given_up = true) },
          7000,
          ELECTION_CLOCKS_DIFFER },
};

static const struct row clocks[] = {
        { "10 s behind",
          { READING(1000, 10, 50000, BEHIND(10000)), READING(4100, 10, 50000) },
          4150,
          ELECTION_CLOCKS_DIFFER },
        { "less than 10 s behind",
          { READING(1000, 10, 50000, BEHIND(9999)), READING(4100, 10, 50000) },
          4150,
          ELECTION_WINS_EXPIRED },
        { "ahead at the first reading: the header may be old",
          { READING(1000, 10, 50000, AHEAD(10000)), READING(4100, 10, 50000) },
          4150,
          ELECTION_WINS_EXPIRED },
        { "less than 10 s ahead",
          { READING(900, 9, 49900), READING(1000, 10, 50000, AHEAD(9999)), READING(4100, 10, 50000) },
          4150,
          ELECTION_WINS_EXPIRED },
        { "the difference is that at the last change",
          { READING(900, 9, 49900, BEHIND(99999)), READING(1000, 10, 50000), READING(4100, 10, 50000) },
          4150,
          ELECTION_WINS_EXPIRED },
        { "there is no header any more",
          { READING(1000, 10, 50000),
            { .cluster = 1,
              .revision = 11,
              .asked_ns = MS(2000),
              .received_ns = MS(2000),
              .wall_ms = WALL_MS,
              .header.lease_ns = MS(LEASE_MS) } },
          2000,
          ELECTION_WINS_NEW },
        { "an earlier process of this member led: it is the same clock, and was set",
          { READING(1000, 10, 50000, BEHIND(10000), .header.member = OWN) },
          1000,
          ELECTION_WINS_AGAIN },
};

Test(election, waits_longer_if_wall_clocks_differ) {
        check_waits(other_clocks, N_ROWS(other_clocks));
        check_rows(clocks, N_ROWS(clocks), true);
}

Test(election, remembers_the_first_receipt_of_the_header) {
        const struct row row = { .readings = { READING(1000, 10, 50000),
                                               READING(1200, 10, 50000, .revision = 99) } };
        struct election election;

        observe_all(&election, &row);
        cr_expect_eq(election.received_ns, MS(1000));
}

Test(election, the_lease_of_the_leader_counts_from_the_sending) {
        cr_expect_eq(election_lease_left_ns(config.lease_ns, MS(1000), MS(4000) - 1), 1);
        cr_expect_eq(election_lease_left_ns(config.lease_ns, MS(1000), MS(4000)), 0);
        cr_expect_eq(election_renewal_ns(config.lease_ns, MS(1000)), MS(2000));
        cr_expect_eq(election_read_interval_ns(config.lease_ns), MS(200));
}

Test(election, each_reason_has_a_text) {
        for (int reason = ELECTION_UNKNOWN; reason <= ELECTION_WINS_EXPIRED; reason++)
                cr_expect_not_null(election_reason_text((enum election_reason)reason));
}
