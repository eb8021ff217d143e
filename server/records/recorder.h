/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * Writes a recording (records/recording.h) of executed requests and of sent messages to a file. Lines are buffered and written
 * whole, so the file ends with a complete line even if the process is killed. A write error, for instance a full disk, is
 * logged once. Lines are then dropped until writing succeeds, and their number is logged. Times are those of the system clock,
 * not of the test clock of --control.
 */
struct recorder;

/*
 * Open the file to append; create it with mode 0600. An existing file must belong to the effective user and must not be
 * accessible to others. Symbolic links are not followed. The checks do not apply to character devices. Returns 0; -EPERM for a
 * file that others can access, -ELOOP for a symbolic link, or another -errno, each logged; or -ENOMEM.
 */
int recorder_open(struct recorder **ret_recorder, const char *file);

/* Write the buffered lines and close the file. Accepts NULL, returns NULL. */
struct recorder *recorder_close(struct recorder *recorder);

/*
 * Record a message. recorder may be NULL. client: the sender; data NULL if unknown. Call recorder_sent() for every published
 * message: it records replies and ignores all others. Call recorder_notification() once for each recipient of a notification,
 * because with the plugin one published message notifies several clients.
 */
void recorder_request(struct recorder *recorder, struct slice client, const struct message *message);
void recorder_notification(struct recorder *recorder, const struct message *notification);
void recorder_sent(struct recorder *recorder, const struct message *message);

/* Write the buffered lines. recorder may be NULL. */
void recorder_flush(struct recorder *recorder);

/*
 * Write the buffered lines if they contain requests. Call before sending, so that a request is in the file before its reply is
 * sent. recorder may be NULL.
 */
void recorder_flush_requests(struct recorder *recorder);
