/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "engine/request.h"

/* Selects requests by client, verb, and a pattern for the key. All zeros selects every request. */
struct selection {
        bool has_client, has_key, has_verb;
        struct buf client;
        struct buf key; /* a glob */
        enum verb verb;
};

void selection_deinit(struct selection *selection);

/* Refuse the words of a command: set *ret_problem to what was expected. Returns -EINVAL. */
int refuse_words(const char **ret_problem, const char *problem);

/*
 * Return true if the request is selected. Decrements *budget by the number of matching steps
 * (base/glob.h). When it reaches 0, no pattern matches any more.
 */
bool selection_matches(const struct selection *selection, struct slice client, enum verb verb,
                       struct slice key, uint64_t *budget);

/*
 * Budget for one request or notification, shared by all its selections: enough for usual patterns
 * and keys of 64 KiB.
 */
#define SELECTION_STEPS_MAX (UINT64_C(1) << 20)

/* The options of a command: each is a name and its value. */
enum query_option {
        QUERY_CLIENT = 1,   /* client ID */
        QUERY_KEY = 2,      /* key PATTERN */
        QUERY_VERB = 4,     /* verb VERB */
        QUERY_AFTER = 8,    /* after N */
        QUERY_COUNT = 16,   /* count N, at least 1 */
        QUERY_TIMEOUT = 32, /* timeout DURATION, from 1 ms to 10 minutes */
};

struct query {
        unsigned int given; /* bit set of enum query_option */
        struct selection selection;
        uint64_t after, count;
        int64_t timeout_ms;
};

/* The options that a command accepts. */
struct query_form {
        unsigned int options; /* bit set of enum query_option */
        const char *expected; /* description of them, for messages */
};

void query_deinit(struct query *query);

/*
 * Read the options; a field whose option is not given stays as it is. Call query_deinit() in any
 * case. Returns 0, -ENOMEM, or -EINVAL with *ret_problem, which says what was expected.
 */
int query_read(struct query *query, const struct query_form *form, const struct slice *words, size_t n_words,
               const char **ret_problem);
