/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

struct export_reader;

/*
 * The functions with which test control (server/control) changes the pipeline. Call them only from the
 * hooks of pipeline/hooks.h; the functions that send may also be called before pipeline_advance().
 *
 * pipeline_set_seed(), pipeline_expire_key() and pipeline_expire_keys() take effect when the batch is
 * committed, all others at once. This is safe: with test control there is no storage, so no commit can
 * fail.
 */

/* Publish a message at once. A message that cannot be published is counted and logged. */
void pipeline_send(struct pipeline *pipeline, const struct message *message);

/* Let the plugin disconnect the client of this connection, with the next frame: protocol/companion.h. */
void pipeline_kick(struct pipeline *pipeline, uint64_t connection);

/*
 * Reply to a message with this payload, at once. The message's response topic must be valid:
 * pipeline_check_properties() has returned true for the message.
 */
void pipeline_send_reply(struct pipeline *pipeline, const struct message *message, struct slice payload);

/*
 * Check the properties of the message of hooks.control(), as those of a request. Return true if the
 * message may be executed. Otherwise the message is counted in n_invalid_response_topics, or its fault has
 * been sent as the reply.
 */
bool pipeline_check_properties(struct pipeline *pipeline, const struct message *message);

/* Count a message that test control drops. DROP_OUT_OF_MEMORY is also logged. */
void pipeline_count_drop(struct pipeline *pipeline, enum drop_reason reason);

/*
 * Count a reply that test control delays until the message expiry interval of its request has
 * passed.
 */
void pipeline_count_expired(struct pipeline *pipeline);

/* Call the functions below only from the hook `control`: the batch is empty there. */

/*
 * Remove all keys, registrations and remembered replies, and set the counters to 0, except
 * n_connections. Clients are not notified. Return 0, or -ENOMEM with nothing changed.
 */
int pipeline_reset(struct pipeline *pipeline);

/* Selects keys and registrations. client: of the registration; absent for a key. */
typedef bool selection_function(void *userdata, struct slice client, struct slice key);

/* Remove the selected keys and registrations. Clients are not notified. */
void pipeline_reset_selected(struct pipeline *pipeline, selection_function *is_selected, void *userdata);

/*
 * Set all keys of a seed, or none. Return 0; -EBADMSG, with the cause in reader->fault; or -ENOMEM,
 * after which some of the keys may be set.
 */
int pipeline_set_seed(struct pipeline *pipeline, struct export_reader *reader, struct now now);

/*
 * Expire this key at once, as if its deadline had passed. Return 0; -ENOENT if there is no such key;
 * -ENODATA if the key has no deadline; or -ENOMEM.
 */
int pipeline_expire_key(struct pipeline *pipeline, struct slice key, struct now now);

/* Expire every key whose deadline is at or before `now`. Return 0 or -ENOMEM. */
int pipeline_expire_keys(struct pipeline *pipeline, struct now now);
