/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "etcd/client.h"

/* What is known of one member of etcd. Texts are those of etcd: not printable, and borrowed. */
struct etcd_member {
        const char *name;    /* NULL: unknown, as no member has listed the others */
        const char *address; /* of its first one for clients; "": none */
        bool is_learner;     /* has no vote yet */
        const char *reason;  /* why its status is unknown; NULL: the following is set */
        bool is_refused;     /* it answers, but tells its status only to root, as etcd 3.6.16 does */
        const char *version; /* of its program */
        uint64_t n_bytes;    /* of its database */
        uint64_t n_bytes_in_use;
        bool leads;                /* among the members of etcd */
        const char *const *errors; /* alarms, such as NOSPACE, and that there is no leader */
        size_t n_errors;
};

/*
 * If asks_for_list: ask for the list of all members, at the next endpoint if one does not reply as etcd
 * does. Then ask each member for its status, one after the other; without the list, those of the
 * configuration. Each call lasts config->timeout_ms at each endpoint at most, and each reply has 64 KiB at
 * most. take() is called with each member. Returns 0 or -ENOMEM.
 */
int etcd_members_query(const struct etcd_config *config, bool asks_for_list,
                       void (*take)(void *userdata, const struct etcd_member *member), void *userdata);
