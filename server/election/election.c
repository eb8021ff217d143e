/* SPDX-License-Identifier: Apache-2.0 */

#include "election/election.h"

#include "base/assert.h"

/* As read on the slowest clock, a time is at most this long on the fastest one. */
static int64_t on_fastest_clock(int64_t ns) {
        return ns + (ns + 19) / 20;
}

void election_init(struct election *ret_election, const struct election_config *config) {
        ASSERT(config->lease_ns >= ELECTION_LEASE_MIN_NS && config->lease_ns <= ELECTION_LEASE_MAX_NS);
        *ret_election = (struct election){ .config = *config };
}

/* The time by which a header that was received now had been sent. */
static int64_t find_sent_by(const struct election *election, const struct election_reading *reading) {
        const struct election_header *last = &election->reading.header, *header = &reading->header;
        int64_t passed_ns = header->sent_ns - last->sent_ns;
        int64_t bound_ns;

        if (header->process != last->process || passed_ns < 0 ||
            passed_ns > reading->received_ns - election->sent_by_ns)
                return reading->received_ns;
        bound_ns = election->sent_by_ns + on_fastest_clock(passed_ns);
        return bound_ns < reading->received_ns ? bound_ns : reading->received_ns;
}

/* An earlier revision was read. Returns whether this has lasted for more than a lease. */
static bool is_behind_for_long(struct election *election, const struct election_reading *reading) {
        if (!election->is_behind)
                election->behind_since_ns = reading->received_ns;
        election->is_behind = true;
        election->behind_asked_ns = reading->asked_ns;
        return reading->asked_ns - election->behind_since_ns > election->config.lease_ns;
}

void election_observe(struct election *election, const struct election_reading *reading) {
        bool is_first = !election->has_reading || reading->cluster != election->reading.cluster;

        if (!is_first && reading->revision < election->reading.revision) {
                if (!is_behind_for_long(election, reading))
                        return;
                is_first = true;
        }

        if (is_first || reading->header.mod_revision != election->reading.header.mod_revision) {
                election->sent_by_ns = is_first ? reading->received_ns : find_sent_by(election, reading);
                election->received_ns = reading->received_ns;
                election->wall_difference_ms = reading->wall_ms - reading->header.wall_ms;
                if (is_first && election->wall_difference_ms > 0)
                        election->wall_difference_ms = 0;
        }
        election->reading = *reading;
        election->has_reading = true;
        election->is_behind = false;
}

static bool is_own(const struct election *election) {
        return election->reading.header.member == election->config.member;
}

static enum election_reason find_reason_to_win(const struct election *election) {
        const struct election_header *header = &election->reading.header;

        if (header->mod_revision == 0)
                return ELECTION_WINS_NEW;
        if (is_own(election) && !header->has_given_up)
                return ELECTION_WINS_AGAIN;
        return header->has_given_up && !is_own(election) ? ELECTION_WINS_GIVEN_UP : ELECTION_WINS_EXPIRED;
}

static bool has_other_clock(const struct election *election) {
        return election->wall_difference_ms >= ELECTION_WALL_TOLERANCE_MS ||
               election->wall_difference_ms <= -ELECTION_WALL_TOLERANCE_MS;
}

static bool is_fresh(const struct election *election, int64_t asked_ns, int64_t now_ns) {
        return now_ns - asked_ns <= election->config.lease_ns / 5;
}

enum election_reason election_next(const struct election *election, int64_t now_ns, bool broker_is_usable) {
        enum election_reason reason = find_reason_to_win(election);
        int64_t win_ns = election->sent_by_ns;

        if (!election->has_reading || !is_fresh(election, election->reading.asked_ns, now_ns))
                return election->is_behind && is_fresh(election, election->behind_asked_ns, now_ns)
                               ? ELECTION_BEHIND
                               : ELECTION_UNKNOWN;

        if (reason == ELECTION_WINS_EXPIRED)
                win_ns += on_fastest_clock(election->reading.header.lease_ns);
        if (now_ns < win_ns)
                return ELECTION_LED;

        if (reason != ELECTION_WINS_NEW && reason != ELECTION_WINS_AGAIN && has_other_clock(election))
                win_ns += 2 * election->reading.header.lease_ns;
        if (now_ns < win_ns)
                return ELECTION_CLOCKS_DIFFER;

        return broker_is_usable ? reason : ELECTION_NO_BROKER;
}

const char *election_reason_text(enum election_reason reason) {
        static const char *const texts[] = {
#define ELECTION_TEXT(name, text) [name] = text,
                ELECTION_WAITS(ELECTION_TEXT) ELECTION_WINS(ELECTION_TEXT)
#undef ELECTION_TEXT
        };

        return texts[reason];
}

int64_t election_read_interval_ns(int64_t lease_ns) {
        return lease_ns / 15;
}

int64_t election_lease_left_ns(int64_t lease_ns, int64_t sent_ns, int64_t now_ns) {
        return sent_ns + lease_ns - now_ns;
}

int64_t election_renewal_ns(int64_t lease_ns, int64_t sent_ns) {
        return sent_ns + lease_ns / 3;
}
