/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/command_options.h"
#include "ctl/output.h"
#include "storage/etcd/etcd.h"

/*
 * The storage in etcd that the configuration of statestored describes, for commands that do not ask a
 * store. Initialize with zeros. The functions print the cause of an error.
 */
struct etcd_access {
        struct storage_etcd_config config;
        struct buf password; /* at etcd */
        struct storage *storage;
        struct storage_etcd_reading reading; /* the last one; zeros: none */
        int64_t end_ms;                      /* of --timeout, from etcd_access_open() on */
};

/*
 * Open the storage without connecting. read_only: see storage/etcd/etcd.h. Returns EXIT_DONE or EXIT_USAGE.
 */
enum exit_code etcd_access_open(struct etcd_access *etcd, const struct command_options *options,
                                bool read_only);
void etcd_access_close(struct etcd_access *etcd);

/*
 * Read the header. Tries again until --timeout has passed, unless etcd refuses: the next endpoint may be
 * better, and etcd has no leader for some seconds after the loss of one. Returns EXIT_DONE, EXIT_NO_REPLY,
 * or EXIT_STORE_ERROR if the header cannot be used.
 */
enum exit_code etcd_access_observe(struct etcd_access *etcd);

/* Return whether a member has led, and has not given up. Its lease may have ended. */
bool etcd_access_has_leader(const struct etcd_access *etcd);

/*
 * Become the leader, unless a member leads: as a standby, but without a broker. Waits until the lease of
 * the last leader has ended. Returns EXIT_DONE, EXIT_NOT_MET if a member leads, EXIT_NO_REPLY, or
 * EXIT_STORE_ERROR.
 */
enum exit_code etcd_access_lead(struct etcd_access *etcd);
