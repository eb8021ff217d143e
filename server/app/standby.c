/* SPDX-License-Identifier: Apache-2.0 */

#include "app/standby.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "app/broker_probe.h"
#include "app/internal.h"
#include "app/service_manager.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "config/etcd_storage.h"
#include "election/election.h"
#include "storage/etcd/member_file.h"

/*
 * After a win that etcd has refused, for lack of space or of a permission. Longer than a leader waits
 * between two commits that fail: so when etcd takes writes again, the leader usually renews its lease first.
 */
#define REFUSED_WIN_PAUSE_NS (5 * NS_PER_S)

/* What was logged last. */
struct logged_state {
        int reason; /* enum election_reason; -1: none */
        uint64_t term;
        int result; /* of the reading, if etcd was not read recently; -EACCES as -EIO, as both alternate */
};

struct standby {
        struct server *server;
        struct storage *storage;
        struct broker_probe *probe;
        struct election election;
        struct storage_etcd_reading reading; /* the one on which the election decides */
        bool has_seen_change;                /* the header was written since the start */
        struct logged_state logged;
        struct buf password;                      /* of the user at etcd; the storage borrows it */
        uv_timer_t timer;                         /* for the next reading */
        uv_work_t work;                           /* a call of etcd, on a thread of the pool */
        struct storage_etcd_reading call_reading; /* by the present call */
        int result;                               /* of the present call */
        bool is_closed;
};

static void standby_on_timer(uv_timer_t *timer);

/* 1. What is shown */

static void describe_decision(const struct standby *standby, enum election_reason reason,
                              struct cluster_view *view) {
        const struct election_header *leader = &standby->election.reading.header;

        view->term = leader->term;
        if (reason == ELECTION_LED)
                snprintf(view->status, sizeof(view->status), "standby: \"%s\" leads", leader->name);
        else
                snprintf(view->status, sizeof(view->status), "standby: %s", election_reason_text(reason));
}

/* Return why etcd was not read recently; "" for another reason. */
static const char *cause_of(const struct standby *standby, const struct logged_state *state) {
        if (state->reason != ELECTION_UNKNOWN)
                return "";
        return state->result == 0 ? "a reading took longer than a fifth of the lease"
                                  : storage_etcd_reason(standby->storage);
}

/* Log a change of the reason, of the leader, or of the cause why etcd was not read. */
static void log_change(struct standby *standby, enum election_reason reason) {
        const struct cluster_view *view = &standby->server->cluster;
        struct logged_state *logged = &standby->logged;
        struct logged_state state = { .reason = (int)reason, .term = view->term };
        const char *cause;

        if (reason == ELECTION_UNKNOWN)
                state.result = standby->result == -EACCES ? -EIO : standby->result;
        if (state.reason == logged->reason && state.term == logged->term && state.result == logged->result)
                return;
        *logged = state;
        cause = cause_of(standby, &state);
        log_event(reason == ELECTION_UNKNOWN ? LOG_WARNING : LOG_INFO, "%s: term=%" PRIu64 "%s%s",
                  view->status, view->term, *cause ? ": " : "", LOG_STRING(cause));
}

static void show_decision(struct standby *standby, enum election_reason reason) {
        struct cluster_view *view = &standby->server->cluster;

        describe_decision(standby, reason, view);
        server_update_status(standby->server);
        log_change(standby, reason);
}

/* After show_decision(). */
static void show_refused_win(struct standby *standby) {
        struct cluster_view *view = &standby->server->cluster;
        size_t length = strlen(view->status);

        snprintf(view->status + length, sizeof(view->status) - length,
                 ", but this member cannot lead: the log says why");
        server_update_status(standby->server);
}

/* 2. The end */

static void standby_on_closed(void *userdata) {
        struct standby *standby = userdata;

        standby->is_closed = true;
}

static void standby_on_timer_closed(uv_handle_t *timer) {
        struct standby *standby = timer->data;

        broker_probe_close(standby->probe, standby_on_closed, standby);
}

/* 3. Calls of etcd */

static void schedule_reading(struct standby *standby, int64_t delay_ns) {
        uv_timer_start(&standby->timer, standby_on_timer, (uint64_t)(delay_ns / NS_PER_MS), 0);
}

/*
 * The clock of stored deadlines goes on from the time at which this standby received the header,
 * whatever the wall clock of the former leader was: deadlines pass late, never early. But nobody knows
 * when a header was written that was there at the start: then the wall clocks decide, as after a
 * restart.
 */
static int64_t shift_at_win_ms(const struct standby *standby) {
        const struct state_header *state = &standby->reading.header.state;
        int64_t waited_ms = (system_clock_boot_ns() - standby->election.received_ns) / NS_PER_MS;

        return standby->has_seen_change ? system_clock_wall_ms_rounded_up() - waited_ms - state->reading_ms
                                        : state->shift_ms;
}

static void win_on_worker(uv_work_t *work) {
        struct standby *standby = work->data;

        standby->result =
                storage_etcd_win(standby->storage, &standby->call_reading, shift_at_win_ms(standby));
}

static void accept_reading(struct standby *standby) {
        const struct election_header *former = &standby->reading.header.holder;

        election_observe(&standby->election, &standby->call_reading.election);
        if (standby->election.reading.revision != standby->call_reading.election.revision)
                return; /* an earlier one counts */
        standby->has_seen_change |= former->mod_revision > 0 &&
                                    former->mod_revision != standby->call_reading.header.holder.mod_revision;
        standby->reading = standby->call_reading;
}

static void standby_on_win(uv_work_t *work, int status) {
        struct standby *standby = work->data;

        (void)status;
        if (standby->result == 0) {
                standby->server->cluster.leads = true;
                standby->server->cluster.term = standby->reading.header.holder.term + 1;
                uv_close((uv_handle_t *)&standby->timer, standby_on_timer_closed);
                return;
        }
        if (standby->result == STORAGE_ETCD_LOST) {
                accept_reading(standby);
                schedule_reading(standby, election_read_interval_ns(standby->election.config.lease_ns));
                return;
        }
        show_refused_win(standby);
        schedule_reading(standby, REFUSED_WIN_PAUSE_NS);
}

static void start_etcd_call(struct standby *standby, uv_work_cb work, uv_after_work_cb after) {
        standby->work.data = standby;
        uv_queue_work(&standby->server->loop, &standby->work, work, after);
}

static void observe_on_worker(uv_work_t *work) {
        struct standby *standby = work->data;

        standby->result = storage_etcd_observe(standby->storage, &standby->call_reading);
}

static void standby_on_observed(uv_work_t *work, int status) {
        struct standby *standby = work->data;
        enum election_reason reason;

        (void)status;
        server_feed_watchdog();
        if (standby->result == 0)
                accept_reading(standby);
        reason = election_next(&standby->election, system_clock_boot_ns(),
                               broker_probe_is_usable(standby->probe));
        show_decision(standby, reason);
        if (reason >= ELECTION_WINS_NEW) {
                standby->call_reading = standby->reading;
                start_etcd_call(standby, win_on_worker, standby_on_win);
        } else {
                schedule_reading(standby, election_read_interval_ns(standby->election.config.lease_ns));
        }
}

static void standby_on_timer(uv_timer_t *timer) {
        start_etcd_call(timer->data, observe_on_worker, standby_on_observed);
}

/* 4. The start */

/* Returns 0, or -errno; the cause is logged, except -ENOMEM. */
static int open_etcd(struct standby *standby, const struct election_config *election) {
        struct storage_etcd_config config;
        int r;

        r = config_etcd_storage(&standby->server->config.etcd, &standby->password, &config);
        if (r < 0)
                return r;
        config.holder.member = election->member;
        config.alive = server_feed_watchdog;
        return storage_etcd_open(&standby->storage, &config);
}

/* Let the loop run until this member leads. */
static void wait_to_lead(struct standby *standby) {
        uv_timer_init(&standby->server->loop, &standby->timer);
        standby->timer.data = standby;
        schedule_reading(standby, 0);
        sd_notify(0, "READY=1");
        while (!standby->is_closed)
                uv_run(&standby->server->loop, UV_RUN_ONCE);
}

int standby_run(struct server *server) {
        struct election_config election = { .lease_ns = server->config.etcd.lease_ms * NS_PER_MS };
        struct standby standby = { .server = server, .logged.reason = -1 };
        int r;

        r = member_file_take(&server->member_file);
        election.member = server->member_file.member;
        if (r == 0)
                r = open_etcd(&standby, &election);
        if (r == 0)
                r = broker_probe_open(&standby.probe, &server->loop, &server->config, election.member);
        if (r < 0) {
                storage_close(standby.storage);
                return r;
        }

        server->cluster.is_member = true;
        election_init(&standby.election, &election);
        wait_to_lead(&standby);
        log_info("this member leads: term=%" PRIu64, server->cluster.term);
        server->storage = standby.storage;
        server->gives_up = true; /* unless it serves */
        return 0;
}
