/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/invocation.h"
#include "pipeline/pipeline.h"

/*
 * The sender of a request inside the process (pipeline_request()). It travels with its request: the
 * item of the queue owns it, and then the pending reply. Its end is reported once: by
 * requester_reply(), by requesters_expire(), or when its owner frees it.
 */
struct requester;

/* All that were not told their end yet, oldest first. All zeros is an empty list. */
struct requesters {
        struct requester *oldest; /* utlist */
};

/*
 * Create a requester that expires at deadline_ns, which must not be earlier than those of the list.
 * Returns 0 or -ENOMEM. The caller owns *ret_requester. The list must outlive it.
 */
int requester_new(struct requester **ret_requester, struct requesters *list,
                  const struct inner_client *client, int64_t deadline_ns);

/* Free it. Reports that no reply comes, unless its end was reported. Accepts NULL. */
void requester_free(struct requester *requester);

/* Free it without a report: its request could not be sent. */
void requester_discard(struct requester *requester);

/* Report the reply, unless its end was reported. reply: see inner_client.ended. */
void requester_reply(struct requester *requester, const struct reply *reply, const struct message *message);

/* Return whether its end was reported: what it asks for need not be executed. */
bool requester_has_ended(const struct requester *requester);

/* In whose queue its requests wait. No client of a broker has this id: it contains a NUL. */
struct slice requester_queue(const struct requester *requester);

/* Make it the sender of the request, with its condition. Refuses KEYNOTIFY as an unknown command. */
void requester_identify(const struct requester *requester, struct invocation *invocation);

/* Report to those whose deadline has passed that no reply comes. */
void requesters_expire(struct requesters *list, int64_t now_ns);

/* The earliest deadline; INT64_MAX if the list is empty. */
int64_t requesters_next_deadline(const struct requesters *list);
