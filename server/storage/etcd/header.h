/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "election/election.h"
#include "state/header.h"

/*
 * The header in etcd. Each transaction of a leader compares it with that of its last transaction,
 * and replaces it. So the transactions of a former leader fail.
 */
struct etcd_header {
        struct state_header state;
        uint64_t acknowledged;         /* the notifications up to this sequence are pending no more */
        uint64_t forgotten_up_to;      /* all replies up to this number are forgotten */
        uint64_t last_reply;           /* number of the last stored reply; 0: none */
        uint64_t cluster;              /* id of the etcd cluster in which the term began */
        uint8_t transaction[16];       /* random: of the transaction that wrote the header */
        struct election_header holder; /* the process that wrote the header; mod_revision is not stored */
};

/*
 * As the functions of storage/stored_form.h. -EBADMSG also if a time is negative, or the lease is
 * not within its limits.
 *
 * STORED_FORM_VERSION is in the first four bytes, in all versions, under the same key and with the same
 * checksum (keys.h). etcd_header_read() returns -EPROTONOSUPPORT for another one, with that one in
 * *ret_version.
 */
void etcd_header_append(struct buf *buf, const struct etcd_header *header);
int etcd_header_read(struct slice bytes, struct etcd_header *ret_header, uint32_t *ret_version);
