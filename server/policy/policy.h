/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Who may do what. A policy is rules, each of which grants access to keys to clients: what no rule grants is denied.
 * There are only grants, so their order means nothing. Made once (policy_build.h) and never changed: deciding allocates
 * nothing, and takes a time that depends on the patterns that begin as the key does, not on how many rules there are.
 */
struct policy;

enum access {
        ACCESS_READ = 1,  /* GET, KEYNOTIFY, SCAN */
        ACCESS_WRITE = 2, /* SET, DEL, VDEL */
        ACCESS_READWRITE = ACCESS_READ | ACCESS_WRITE,
};

/* Who asks. Slices are borrowed. */
struct request_origin {
        struct slice client; /* empty: nobody can tell */
        struct slice user;   /* as which it logged in at the broker; empty: none */
        bool is_verified;    /* the broker vouches for both; else they are what the request claims */
};

/* What a decision may cost. Where that is used up, megabytes of key under a pattern made for it, nothing is granted. */
#define POLICY_STEPS_MAX (1000 * 1000)

/* A line of a rule: keys that it grants. */
struct policy_keys;

/*
 * The keys, among them this one, that are granted to the asker; borrowed from the policy; NULL: nothing grants it. Where
 * several do it is one of them, always the same. *budget is counted down by the steps that were taken.
 */
const struct policy_keys *policy_decide(const struct policy *policy, const struct request_origin *asker,
                                        enum access access, struct slice key, uint64_t *budget);

/* Whether there are keys at all to which the asker is granted access. */
bool policy_grants_any(const struct policy *policy, const struct request_origin *asker, enum access access);

/*
 * For people: the lines that grant the asker access to keys, in the order of the file. after: the one before, NULL: begins.
 * NULL ends.
 */
const struct policy_keys *policy_next_keys(const struct policy *policy, const struct request_origin *asker,
                                           enum access access, const struct policy_keys *after);

/* For people: where it says so. Borrowed. */
struct policy_reason {
        struct slice rule;
        unsigned int line;
};
struct policy_reason policy_reason(const struct policy *policy, const struct policy_keys *keys);

size_t policy_n_rules(const struct policy *policy);
bool policy_allows_unverified(const struct policy *policy);

/* Accepts NULL, returns NULL. */
struct policy *policy_free(struct policy *policy);
