/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/keyspace.h"

/*
 * The notification of one change of a key. The commit of the change stores it, and a later commit
 * removes it when its delivery is known. A notification is borrowed or owned. An owned notification
 * has a reference to the entry, and one allocation for the bytes of key and recipients. The
 * allocation begins at key.data.
 */
struct pending_notification {
        uint64_t sequence;       /* 1 to INT64_MAX; ascending in the order of the changes */
        struct version version;  /* of the change */
        struct slice key;        /* never empty */
        struct entry *entry;     /* the new entry; NULL: the key was deleted or has expired */
        struct slice recipients; /* opaque to the storage; the pipeline encodes and decodes it */
};

/* Make an owned copy. Returns 0 or -ENOMEM. Free with pending_notification_deinit(). */
int pending_notification_copy(struct pending_notification *ret_copy,
                              const struct pending_notification *notification);

void pending_notification_deinit(struct pending_notification *notification);
