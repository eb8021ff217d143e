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

extern const struct outbox_backend outbox_messages_backend;

void outbox_messages_deinit(struct outbox *outbox);

/*
 * The broker has acknowledged the message with this id. Returns the registration whose notification
 * it was, if the outbox is open with this backend; else NULL. The caller owns the reference.
 */
struct registration *outbox_messages_acknowledged(struct outbox *outbox, uint16_t id);
