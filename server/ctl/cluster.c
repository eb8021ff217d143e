/* SPDX-License-Identifier: Apache-2.0 */

/* The commands cluster and step-down: several machines that share a state in etcd. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "ctl/etcd_access.h"
#include "etcd/members.h"
#include "storage/etcd/member_file.h"

/* 1. Members of etcd */

/* What is printed of the members: an object for each, or the rows of a table. */
struct listing {
        struct command_run *run;
        struct buf rows;
        bool are_all_healthy;
};

static void listing_deinit(struct listing *listing) {
        buf_deinit(&listing->rows);
}

static void append_error(struct buf *line, const char *error, bool is_first) {
        CLEANUP(buf_deinit) struct buf printable = { 0 };

        output_append_printable(&printable, slice_from_string(error), false);
        buf_append_string(line, is_first ? "" : ",");
        json_append_string(line, buf_slice(&printable));
}

static void append_object(struct buf *line, const struct etcd_member *member) {
        json_begin(line);
        json_add_bytes(line, "etcd", slice_from_string(member->name), false);
        json_add_bytes(line, "address", slice_from_string(member->address), false);
        if (member->name)
                json_add_bool(line, "votes", !member->is_learner);
        if (!member->reason) {
                json_add_bytes(line, "version", slice_from_string(member->version), false);
                json_add_uint(line, "bytes", member->n_bytes);
                json_add_uint(line, "bytes_in_use", member->n_bytes_in_use);
                json_add_bool(line, "leads", member->leads);
        }
        json_add_name(line, "errors");
        buf_append_string(line, "[");
        if (member->reason && !member->is_refused)
                append_error(line, member->reason, true);
        for (size_t i = 0; i < member->n_errors; i++)
                append_error(line, member->errors[i], i == 0);
        buf_append_string(line, "]");
        json_end(line);
}

/* Append text of etcd as a cell; NULL: unknown. */
static void append_cell(struct buf *row, const char *text) {
        output_append_printable(row, slice_from_string(text ?: "-"), false);
        buf_append_string(row, "\t");
}

static void append_row(struct buf *row, const struct etcd_member *member) {
        append_cell(row, member->name);
        append_cell(row, member->address);
        append_cell(row, !member->name ? NULL : member->is_learner ? "no" : "yes");
        append_cell(row, member->version);
        if (member->reason) {
                buf_append_string(row, "-\t-\t");
                output_append_printable(row, slice_from_string(member->reason), false);
        } else {
                buf_append_format(row, "%.1f MiB\t%.1f MiB\t%s", (double)member->n_bytes / (1 << 20),
                                  (double)member->n_bytes_in_use / (1 << 20),
                                  member->leads ? "leads" : "follows");
        }
        for (size_t i = 0; i < member->n_errors; i++) {
                buf_append_string(row, "; ");
                output_append_printable(row, slice_from_string(member->errors[i]), false);
        }
        buf_append_string(row, "\n");
}

static void add_member(void *userdata, const struct etcd_member *member) {
        struct listing *listing = userdata;

        listing->are_all_healthy &= (!member->reason || member->is_refused) && member->n_errors == 0;
        if (listing->run->options->json)
                append_object(&listing->run->output, member);
        else
                append_row(&listing->rows, member);
}

/* has_answered: whether etcd has. Otherwise it would hardly tell its members in time. */
static enum exit_code list_members(struct command_run *run, const struct etcd_config *config,
                                   bool has_answered, bool *ret_are_all_healthy) {
        CLEANUP(listing_deinit) struct listing listing = { .run = run, .are_all_healthy = true };

        buf_append_string(&listing.rows, "ETCD\tADDRESS\tVOTE\tVERSION\tSIZE\tIN USE\tSTATE\n");
        if (etcd_members_query(config, has_answered, add_member, &listing) < 0 || buf_failed(&listing.rows))
                return complain_of_memory();
        if (!run->options->json)
                output_append_aligned(&run->output, buf_slice(&listing.rows));
        *ret_are_all_healthy = listing.are_all_healthy;
        return EXIT_DONE;
}

/* 2. cluster */

/* The time since the last commit, by the wall clocks of both machines. An idle leader commits, too. */
static int64_t silent_ms(const struct etcd_access *etcd) {
        int64_t ms = etcd->reading.election.wall_ms - etcd->reading.header.holder.wall_ms;

        return ms > 0 ? ms : 0;
}

static bool is_silent(const struct etcd_access *etcd) {
        return silent_ms(etcd) > etcd->reading.header.holder.lease_ns / NS_PER_MS;
}

static void append_leader_object(struct buf *line, const struct etcd_access *etcd) {
        const struct election_header *holder = &etcd->reading.header.holder;
        const char *name = etcd_access_has_leader(etcd) ? holder->name : NULL;

        json_begin(line);
        json_add_bytes(line, "leader", slice_from_string(name), false);
        json_add_uint(line, "term", holder->term);
        json_add_uint(line, "lease_ms", (uint64_t)(holder->lease_ns / NS_PER_MS));
        json_add_uint(line, "last_commit_ms", (uint64_t)holder->wall_ms);
        json_add_uint(line, "silent_ms", (uint64_t)silent_ms(etcd));
        json_end(line);
}

static void append_leader(struct buf *text, const struct etcd_access *etcd) {
        const struct election_header *holder = &etcd->reading.header.holder;
        bool has_leader = etcd_access_has_leader(etcd);

        buf_append_string(text, "leader         ");
        if (holder->mod_revision == 0) {
                buf_append_format(text, "none: no member has led yet with the prefix %s\n",
                                  etcd->config.prefix);
                return;
        }
        buf_append_string(text, has_leader ? "" : "none: ");
        output_append_printable(text, slice_from_string(holder->name), false);
        buf_append_format(text, "%s, term %" PRIu64 "\n", has_leader ? "" : " has stepped down",
                          holder->term);
        buf_append_format(text, "last commit    %.1f s ago%s; the lease is %.0f s\n",
                          (double)silent_ms(etcd) / MS_PER_S,
                          has_leader && is_silent(etcd) ? ": it is silent" : "",
                          (double)holder->lease_ns / NS_PER_S);
}

enum exit_code command_cluster(struct command_run *run) {
        CLEANUP(etcd_access_close) struct etcd_access etcd = { 0 };
        enum exit_code code = etcd_access_open(&etcd, run->options, true), listed;
        bool are_all_healthy = false;

        if (code != EXIT_DONE)
                return code;
        code = etcd_access_observe(&etcd);
        if (code == EXIT_DONE && run->options->json)
                append_leader_object(&run->output, &etcd);
        if (code == EXIT_DONE && !run->options->json) {
                append_leader(&run->output, &etcd);
                buf_append_string(&run->output, "\n");
        }
        listed = list_members(run, &etcd.config.etcd, code != EXIT_NO_REPLY, &are_all_healthy);
        output_write(&run->output);
        if (code != EXIT_DONE || listed != EXIT_DONE)
                return code ?: listed;
        return etcd_access_has_leader(&etcd) && !is_silent(&etcd) && are_all_healthy ? EXIT_DONE
                                                                                     : EXIT_NOT_MET;
}

/* 3. step-down */

#define RUNTIME_DIRECTORY_DEFAULT "/run/statestored"

/*
 * A process that shares its descriptors keeps the lock of one that has ended, whose id another process may
 * have now. So the user of the store could choose a process that root would end by the signal.
 */
static bool is_statestored(pid_t pid) {
        char path[32], name[16];
        bool is_same;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        file = fopen(path, "re");
        is_same = file && fgets(name, sizeof(name), file) && strcmp(name, "statestored\n") == 0;
        if (file)
                fclose(file);
        return is_same;
}

/* Find the process of the member on this machine, and check that it leads. */
static enum exit_code find_leader(const struct etcd_access *etcd, pid_t *ret_pid) {
        const char *directory = getenv("RUNTIME_DIRECTORY") ?: RUNTIME_DIRECTORY_DEFAULT;
        const struct election_header *holder = &etcd->reading.header.holder;
        uint64_t member;
        int r;

        r = member_file_find(directory, ret_pid, &member);
        if (r < 0) {
                complain("no process of a member was found on this machine: \"%s/member\": %s",
                         LOG_STRING(directory), r == -ESRCH ? "no process has locked it" : strerror(-r));
                return EXIT_STORE_ERROR;
        }
        if (!is_statestored(*ret_pid)) {
                complain("the process %d, which has locked \"%s/member\", is not statestored", (int)*ret_pid,
                         LOG_STRING(directory));
                return EXIT_STORE_ERROR;
        }
        if (etcd_access_has_leader(etcd) && holder->member == member)
                return EXIT_DONE;
        if (etcd_access_has_leader(etcd))
                complain("this member does not lead: \"%s\" leads", LOG_STRING(holder->name));
        else
                complain("no member leads");
        return EXIT_NOT_MET;
}

/* Wait until another member leads. The former leader leads again after the lease if there is none. */
static enum exit_code wait_for_successor(struct etcd_access *etcd) {
        const struct election_header *holder = &etcd->reading.header.holder;
        struct election_header former = *holder;
        enum exit_code code;

        do {
                system_clock_sleep_ms(50);
                code = etcd_access_observe(etcd);
                if (code != EXIT_DONE || holder->member != former.member)
                        return code;
        } while (system_clock_mono_ms() < etcd->end_ms);
        complain(etcd_access_has_leader(etcd) && holder->process == former.process
                         ? "the leader has not stepped down in time"
                         : "the leader has stepped down, but no other member leads");
        return EXIT_NOT_MET;
}

enum exit_code command_step_down(struct command_run *run) {
        CLEANUP(etcd_access_close) struct etcd_access etcd = { 0 };
        enum exit_code code = etcd_access_open(&etcd, run->options, true);
        pid_t pid;

        if (code == EXIT_DONE)
                code = etcd_access_observe(&etcd);
        if (code == EXIT_DONE)
                code = find_leader(&etcd, &pid);
        if (code != EXIT_DONE)
                return code;

        if (kill(pid, SIGUSR2) < 0) {
                complain("the process %d of the leader: %s", (int)pid, strerror(errno));
                return EXIT_STORE_ERROR;
        }
        code = wait_for_successor(&etcd);
        if (code == EXIT_DONE)
                append_leader(&run->output, &etcd);
        return code;
}
