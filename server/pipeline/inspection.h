/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

struct client_table;
struct event_log;

/* For the console and test control: begin to record what happens, and read the present state. */

/* Record what happens from now on: observation/observation.h. Both are borrowed until pipeline_free(). */
void pipeline_observe(struct pipeline *pipeline, struct event_log *events, struct client_table *clients);

/* The kind of the broker that is served; BROKER_UNKNOWN: none. */
enum broker_kind pipeline_broker_kind(const struct pipeline *pipeline);

/* Append the version as a reply has it. */
void pipeline_append_version(const struct pipeline *pipeline, struct version version, struct buf *text);

/* What the registrations of this client use. */
struct registration_usage pipeline_client_usage(const struct pipeline *pipeline, struct slice client);

/* The entry of a key; NULL if it has none, or has expired. Borrowed until the next event. */
struct entry *pipeline_find_entry(const struct pipeline *pipeline, struct slice key, struct now now);

/* The time until the entry expires, rounded up; INT64_MAX: never. */
int64_t pipeline_expires_in_ms(const struct pipeline *pipeline, struct entry *entry, struct now now);

/*
 * Iterate over registrations: of a key, of a client, or all (both absent). The work for a call is
 * bounded: at most WATCHERS_PAGE_MAX registrations are visited after the position is found, and the
 * position is at most WATCHERS_POSITION_MAX registrations behind the first one of a key or client. A
 * registration that is added or removed meanwhile may be missed, or let another one be missed.
 */
#define WATCHERS_PAGE_MAX     256
#define WATCHERS_POSITION_MAX 16384

struct watchers_query {
        struct slice key, client;
        uint64_t position; /* 0: the first; of the next call: the result */
};

/*
 * Pass the next registrations to take(), borrowed for the call. Returns the position of the next call;
 * 0: there are no more.
 */
uint64_t pipeline_list_watchers(const struct pipeline *pipeline, const struct watchers_query *query,
                                void (*take)(void *userdata, const struct registration *registration),
                                void *userdata);
