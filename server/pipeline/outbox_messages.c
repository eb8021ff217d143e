/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/outbox_messages.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "protocol/topics.h"

#define N_IDS 65536

void outbox_messages_deinit(struct outbox *outbox) {
        struct outbox_messages *messages = &outbox->messages;

        for (size_t i = 0; i < N_IDS && messages->registrations; i++)
                registration_unref(messages->registrations[i]);
        free(messages->registrations);
        messages->registrations = NULL;
}

/* 1. Acknowledgements */

/*
 * PUBACKs have the order of the messages. So after checkpoint_n_sent PUBACKs, the broker has received
 * the messages sent before. If there are no messages without PUBACK, it has received all of them.
 */
static void remove_acknowledged(struct outbox *outbox) {
        struct outbox_messages *messages = &outbox->messages;
        bool is_all_acknowledged = outbox->n_acknowledged == outbox->n_sent;

        if (outbox->backend != &outbox_messages_backend || outbox->state->notifications.n_pending == 0 ||
            outbox->n_acknowledged < messages->checkpoint_n_sent)
                return;

        state_acknowledge(outbox->state,
                          is_all_acknowledged ? outbox->published_sequence : messages->checkpoint_sequence);
        messages->checkpoint_sequence = outbox->published_sequence;
        messages->checkpoint_n_sent = outbox->n_sent;
}

/* 2. Publishing */

/*
 * Remember the registration of a message; takes a reference. If memory is short, nothing is
 * remembered, and the PUBACK reports nothing.
 */
static void remember_registration(struct outbox_messages *messages, struct registration *registration,
                                  uint16_t id) {
        if (!messages->registrations)
                messages->registrations = calloc(N_IDS, sizeof(*messages->registrations));
        if (!messages->registrations)
                return;

        registration_unref(messages->registrations[id]);
        messages->registrations[id] = registration_ref(registration);
}

/*
 * Return the registration of the next recipient of this notification, borrowed: the effects of the batch
 * have those of its own notifications, in the order of the recipients. NULL if the notification is of an
 * earlier batch. Do not search for it: a registration that is found now may be newer than the
 * notification.
 */
static struct registration *take_registration(struct outbox *outbox, uint64_t sequence) {
        struct outbox_messages *messages = &outbox->messages;
        const struct batch *batch = outbox->batch;
        const struct notification *notifications = batch->effects.notifications;

        if (sequence <= batch->sequence_before)
                return NULL;

        /* Skip those of a notification that was dropped, because memory was short. */
        while (notifications[messages->n_taken].watched_change < sequence - batch->sequence_before - 1)
                messages->n_taken++;
        return notifications[messages->n_taken++].registration;
}

/* registration: of the recipient; NULL if it is not known. */
static void publish_to_client(struct outbox *outbox, const struct pending_notification *notification,
                              const struct recipient *recipient, struct registration *registration,
                              struct message message) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        int id;

        topic_append_notify(&topic, recipient->client, notification->key);
        if (!buf_text(&topic)) { /* the transport needs the NUL */
                outbox_lose(outbox);
                return;
        }
        message.topic = buf_slice(&topic);
        id = outbox_send(outbox, &message);
        if (id < 0)
                return;

        if (registration)
                remember_registration(&outbox->messages, registration, (uint16_t)id);
        outbox_count_notifications(outbox, notification, 1);
}

/* Skip connections: they ended with the broker that had the plugin. */
static void messages_publish_notification(struct outbox *outbox,
                                          const struct pending_notification *notification,
                                          const struct message *message, struct slice *recipients) {
        struct recipient recipient;

        while (outbox_has_room(outbox) && recipients_next(recipients, &recipient)) {
                struct registration *registration = take_registration(outbox, notification->sequence);
                int n = recipient.connection == 0 ? outbox_n_copies(outbox, notification, &recipient) : 0;

                for (; n > 0; n--)
                        publish_to_client(outbox, notification, &recipient, registration, *message);
        }
}

static void messages_publish_reply(struct outbox *outbox, const struct pending_reply *pending,
                                   const struct message *message) {
        (void)pending;
        remove_acknowledged(outbox); /* the checkpoint of the notifications is before the reply */
        if (message)
                outbox_send(outbox, message);
}

/* 3. PUBACKs and the end of a batch */

/* No PUBACK follows if all recipients of the last notifications were skipped. */
static void messages_end_batch(struct outbox *outbox) {
        outbox->messages.n_taken = 0;
        remove_acknowledged(outbox);
}

struct registration *outbox_messages_acknowledged(struct outbox *outbox, uint16_t id) {
        struct registration *registration = NULL;

        outbox->n_acknowledged++;
        remove_acknowledged(outbox);
        if (outbox->messages.registrations)
                registration = take_ptr(&outbox->messages.registrations[id]);
        if (outbox->status == OUTBOX_OPEN && outbox->backend == &outbox_messages_backend)
                return registration;

        registration_unref(registration);
        return NULL;
}

const struct outbox_backend outbox_messages_backend = {
        .is_kept = true,
        .publish_notification = messages_publish_notification,
        .publish_reply = messages_publish_reply,
        .end_batch = messages_end_batch,
};
