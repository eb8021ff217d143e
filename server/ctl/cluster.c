/* SPDX-License-Identifier: Apache-2.0 */

/* The commands cluster and step-down: several machines that share a state in etcd. */

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "ctl/etcd_access.h"
#include "etcd/members.h"
#include "storage/etcd/member_file.h"

CLEANUP_FUNCTION(cleanup_json, json_t *, json_decref)

/* 1. Members of etcd */

/* Text of etcd, printable, as a string of JSON. */
static json_t *make_text(const char *text) {
        CLEANUP(buf_deinit) struct buf printable = { 0 };

        output_append_printable(&printable, slice_from_string(text), false);
        return json_string(buf_text(&printable) ?: "");
}

static void add_member(void *userdata, const struct etcd_member *from) {
        json_t *members = userdata, *member = json_object(), *errors = json_array();

        json_object_set_new(member, "name", from->name ? make_text(from->name) : json_null());
        json_object_set_new(member, "address", make_text(from->address));
        json_object_set_new(member, "votes", from->name ? json_boolean(!from->is_learner) : json_null());
        if (!from->reason) {
                json_object_set_new(member, "version", make_text(from->version));
                json_object_set_new(member, "bytes", json_integer((json_int_t)from->n_bytes));
                json_object_set_new(member, "bytes_in_use", json_integer((json_int_t)from->n_bytes_in_use));
                json_object_set_new(member, "leads", json_boolean(from->leads));
        } else {
                json_array_append_new(errors, make_text(from->reason));
        }
        for (size_t i = 0; i < from->n_errors; i++)
                json_array_append_new(errors, make_text(from->errors[i]));
        json_object_set_new(member, "errors", errors);
        json_array_append_new(members, member);
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

static json_t *make_leader(const struct etcd_access *etcd) {
        const struct election_header *holder = &etcd->reading.header.holder;

        if (!etcd_access_has_leader(etcd))
                return json_null();
        return json_pack("{s:o, s:I, s:I, s:I}", "name", make_text(holder->name), "lease_ms",
                         (json_int_t)(holder->lease_ns / NS_PER_MS), "last_commit_ms",
                         (json_int_t)holder->wall_ms, "silent_ms", (json_int_t)silent_ms(etcd));
}

static void append_leader(struct buf *text, const struct etcd_access *etcd) {
        const struct election_header *holder = &etcd->reading.header.holder;

        buf_append_string(text, "leader         ");
        if (holder->mod_revision == 0) {
                buf_append_string(text, "none: no member has led yet\n");
                return;
        }
        if (holder->has_given_up)
                buf_append_string(text, "none: ");
        output_append_printable(text, slice_from_string(holder->name), false);
        buf_append_format(text, "%s, term %" PRIu64 "\n", holder->has_given_up ? " has stepped down" : "",
                          holder->term);
        buf_append_format(text, "last commit    %.1f s ago%s; the lease is %.0f s\n",
                          (double)silent_ms(etcd) / MS_PER_S,
                          etcd_access_has_leader(etcd) && is_silent(etcd) ? ": it is silent" : "",
                          (double)holder->lease_ns / NS_PER_S);
}

static void append_mebibytes(struct buf *text, const json_t *member, const char *name) {
        const json_t *bytes = json_object_get(member, name);

        if (bytes)
                buf_append_format(text, "\t%.1f MiB", (double)json_integer_value(bytes) / (1 << 20));
        else
                buf_append_string(text, "\t-");
}

/* Text, or whether something holds; "-" if it is not known. */
static const char *cell_of(const json_t *member, const char *name) {
        const json_t *cell = json_object_get(member, name);

        return json_is_boolean(cell) ? (json_is_true(cell) ? "yes" : "no") : json_string_value(cell) ?: "-";
}

static void append_member(struct buf *text, const json_t *member) {
        const json_t *leads = json_object_get(member, "leads"), *error;
        const char *separator = leads ? "; " : "";
        size_t i;

        buf_append_format(text, "%s\t%s\t%s\t%s", cell_of(member, "name"), cell_of(member, "address"),
                          cell_of(member, "votes"), cell_of(member, "version"));
        append_mebibytes(text, member, "bytes");
        append_mebibytes(text, member, "bytes_in_use");
        buf_append_format(text, "\t%s", !leads ? "" : json_is_true(leads) ? "leads" : "follows");
        json_array_foreach(json_object_get(member, "errors"), i, error) {
                buf_append_format(text, "%s%s", separator, json_string_value(error) ?: "");
                separator = "; ";
        }
        buf_append_string(text, "\n");
}

/* etcd: NULL if it could not be read. */
static void append_text(struct buf *text, const struct etcd_access *etcd, const json_t *members) {
        CLEANUP(buf_deinit) struct buf rows = { 0 };
        const json_t *member;
        size_t i;

        if (etcd) {
                append_leader(text, etcd);
                buf_append_string(text, "\n");
        }
        buf_append_string(&rows, "ETCD\tADDRESS\tVOTE\tVERSION\tSIZE\tIN USE\tSTATE\n");
        json_array_foreach(members, i, member) {
                append_member(&rows, member);
        }
        output_append_aligned(text, buf_slice(&rows));
}

static bool are_well(const json_t *members) {
        const json_t *member;
        size_t i;

        json_array_foreach(members, i, member) {
                if (json_array_size(json_object_get(member, "errors")) > 0)
                        return false;
        }
        return true;
}

static enum exit_code append_json(struct buf *text, const struct etcd_access *etcd, json_t *members) {
        CLEANUP(cleanup_json)
        json_t *all = json_pack("{s:o, s:I, s:O}", "leader", make_leader(etcd), "term",
                                (json_int_t)etcd->reading.header.holder.term, "etcd", members);
        CLEANUP(cleanup_free) char *line = json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII);

        if (!line)
                return complain_of_memory();
        buf_append_format(text, "%s\n", line);
        return EXIT_DONE;
}

enum exit_code command_cluster(struct command_run *run) {
        CLEANUP(etcd_access_close) struct etcd_access etcd = { 0 };
        CLEANUP(cleanup_json) json_t *members = json_array();
        enum exit_code code = etcd_access_open(&etcd, run->options, true), printed = EXIT_DONE;

        if (code != EXIT_DONE)
                return code;
        code = etcd_access_observe(&etcd);
        if (etcd_members_ask(&etcd.config.etcd, add_member, members) < 0)
                return complain_of_memory();
        if (run->options->json)
                printed = append_json(&run->output, &etcd, members);
        else
                append_text(&run->output, code == EXIT_DONE ? &etcd : NULL, members);
        output_write(&run->output);
        if (code != EXIT_DONE || printed != EXIT_DONE)
                return code ?: printed;
        return etcd_access_has_leader(&etcd) && !is_silent(&etcd) && are_well(members) ? EXIT_DONE
                                                                                       : EXIT_NOT_MET;
}

/* 3. step-down */

#define RUNTIME_DIRECTORY_DEFAULT "/run/statestored"

/*
 * A process that shares its descriptors keeps the lock of one that has ended, whose id another process may
 * have now. So the user of the store could choose a process that root would end by the signal.
 */
static bool is_store(pid_t process) {
        char path[32], name[16];
        bool is_store;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)process);
        file = fopen(path, "re");
        is_store = file && fgets(name, sizeof(name), file) && strcmp(name, "statestored\n") == 0;
        if (file)
                fclose(file);
        return is_store;
}

/* Find the process of this machine that leads. */
static enum exit_code find_leader(struct etcd_access *etcd, pid_t *ret_process) {
        const char *directory = getenv("RUNTIME_DIRECTORY") ?: RUNTIME_DIRECTORY_DEFAULT;
        const struct election_header *holder = &etcd->reading.header.holder;
        uint64_t member;
        int r;

        r = member_file_find(directory, ret_process, &member);
        if (r < 0) {
                complain("no process of a member was found on this machine: \"%s/member\": %s",
                         LOG_STRING(directory), r == -ESRCH ? "no process has locked it" : strerror(-r));
                return EXIT_STORE_ERROR;
        }
        if (!is_store(*ret_process)) {
                complain("the process %d, which has locked \"%s/member\", is not statestored",
                         (int)*ret_process, LOG_STRING(directory));
                return EXIT_STORE_ERROR;
        }
        if (etcd_access_has_leader(etcd) && holder->member == member)
                return EXIT_DONE;
        if (etcd_access_has_leader(etcd))
                complain("this member does not lead, but \"%s\"", LOG_STRING(holder->name));
        else
                complain("no member leads");
        return EXIT_NOT_MET;
}

/* Wait until another member leads. The former leader leads again after the lease if there is none. */
static enum exit_code wait_for_successor(struct etcd_access *etcd, int64_t timeout_ms) {
        const struct election_header *holder = &etcd->reading.header.holder;
        int64_t end_ns = system_clock_mono_ns() + timeout_ms * NS_PER_MS;
        struct election_header former = *holder;
        enum exit_code code;

        do {
                nanosleep(&(struct timespec){ .tv_nsec = 50 * NS_PER_MS }, NULL);
                code = etcd_access_observe(etcd);
                if (code != EXIT_DONE || holder->member != former.member)
                        return code;
        } while (system_clock_mono_ns() < end_ns);
        complain(etcd_access_has_leader(etcd) && holder->process == former.process
                         ? "the leader has not stepped down in time"
                         : "the leader has stepped down, but no other member leads");
        return EXIT_NOT_MET;
}

enum exit_code command_step_down(struct command_run *run) {
        CLEANUP(etcd_access_close) struct etcd_access etcd = { 0 };
        enum exit_code code = etcd_access_open(&etcd, run->options, true);
        pid_t process;

        if (code == EXIT_DONE)
                code = etcd_access_observe(&etcd);
        if (code == EXIT_DONE)
                code = find_leader(&etcd, &process);
        if (code != EXIT_DONE)
                return code;

        if (kill(process, SIGUSR2) < 0) {
                complain("the process %d of the leader: %s", (int)process, strerror(errno));
                return EXIT_STORE_ERROR;
        }
        code = wait_for_successor(&etcd, run->options->timeout_ms);
        if (code == EXIT_DONE)
                append_leader(&run->output, &etcd);
        return code;
}
