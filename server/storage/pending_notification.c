/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/pending_notification.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

int pending_notification_copy(struct pending_notification *ret_copy,
                              const struct pending_notification *notification) {
        struct pending_notification copy = *notification;
        uint8_t *bytes;

        ASSERT(copy.key.length > 0);

        bytes = malloc(copy.key.length + copy.recipients.length);
        if (!bytes)
                return -ENOMEM;

        memcpy(bytes, copy.key.data, copy.key.length);
        if (copy.recipients.length > 0)
                memcpy(bytes + copy.key.length, copy.recipients.data, copy.recipients.length);
        copy.key.data = bytes;
        copy.recipients.data = bytes + copy.key.length;
        if (copy.entry)
                entry_ref(copy.entry);

        *ret_copy = copy;
        return 0;
}

void pending_notification_deinit(struct pending_notification *notification) {
        entry_unref(notification->entry);
        free((void *)notification->key.data);
        *notification = (struct pending_notification){ 0 };
}
