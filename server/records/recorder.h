/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * Writes what comes and goes to a file, as records/recording.h has it. Lines are gathered and written whole, so that
 * whenever the process is killed the file ends with a line's end. A file that cannot be written to any more, say for want
 * of room, is logged once; lines are left out until it can, and then how many is logged.
 * Times are the system clock's, whatever a test has made of the store's.
 */
struct recorder;

/*
 * Appends to the file; creates it with mode 0600. An existing file must belong to the effective user and have no permission
 * for others. A symbolic link is not followed. A character device is taken as it is. Returns 0; -EPERM for a file that
 * others can use, -ELOOP for a symbolic link, or another -errno, each logged; or -ENOMEM.
 */
int recorder_open(struct recorder **ret_recorder, const char *file);

/* Writes what was gathered. Accepts NULL, returns NULL. */
struct recorder *recorder_close(struct recorder *recorder);

/* A message that came, or went; whichever is neither request, answer nor notification is left out. NULL: no recorder. */
void recorder_received(struct recorder *recorder, const struct message *message);
void recorder_sent(struct recorder *recorder, const struct message *message);

/* Writes what was gathered. Accepts NULL, as the next. */
void recorder_flush(struct recorder *recorder);

/* The same if there are requests in it: to be called before anything leaves, which may be the answer to one. */
void recorder_flush_requests(struct recorder *recorder);
