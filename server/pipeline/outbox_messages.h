/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/outbox.h"

/*
 * The backend of the outbox for a broker without the plugin: each reply is a message, and so is each
 * notification for each of its recipients, on the recipient's notify topic.
 *
 * A PUBACK says that the broker has a message. The PUBACK of a notification is also the only sign
 * whether its recipient is subscribed, so its registration is remembered by the message id. The
 * registrations of a notification are known while its batch is published. After a restart or a reconnect,
 * the PUBACK of a notification of an earlier batch reports nothing; that of the client's next one does.
 */
struct outbox_messages {
        struct outbox *outbox;               /* borrowed */
        struct registration **registrations; /* by message id; allocated by the first one */
        size_t n_taken;                      /* of the notifications in the effects of the batch */
        /*
         * The notifications up to this one are acknowledged when the broker has acknowledged so many
         * messages.
         */
        uint64_t checkpoint_sequence, checkpoint_n_sent;
};

extern const struct outbox_backend outbox_messages_backend;

void outbox_messages_deinit(struct outbox_messages *messages);

/*
 * The broker has acknowledged the message with this id. Returns the registration whose notification
 * it was, if the outbox is open with this backend; else NULL. The caller owns the reference.
 */
struct registration *outbox_messages_acknowledged(struct outbox_messages *messages, uint16_t id);
