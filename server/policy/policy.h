/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Access rules. A policy is a set of rules; each rule grants clients access to keys. Anything that
 * no rule grants is denied. Rules only grant, so their order has no effect.
 *
 * A policy is built once (policy_build.h) and then immutable. A decision allocates no memory. Its
 * time depends on the number of patterns whose literal prefix is a prefix of the key, not on the
 * number of rules.
 */
struct policy;

enum access {
        ACCESS_READ = 1,  /* get, watch and list keys */
        ACCESS_WRITE = 2, /* set and delete keys */
        ACCESS_READWRITE = ACCESS_READ | ACCESS_WRITE,
};

/* The client that sent a request. Slices are borrowed. */
struct request_origin {
        struct slice client; /* client id; empty: unknown */
        struct slice user;   /* user name at the broker; empty: none */
        bool is_verified;    /* true: the broker's plugin verified both; false: the request claims them */
};

/*
 * Maximum number of matching steps of a decision. Only long keys with patterns of many wildcards
 * need so many.
 */
#define POLICY_STEPS_MAX (1000 * 1000)

/* A line of keys: one line of a rule, with a pattern or one key. */
struct policy_keys;

/*
 * Find a line that grants the origin access to the key. Borrowed from the policy; NULL if access is
 * denied. If several lines grant it, the result is one of them, always the same. Decrements *budget
 * by the number of matching steps. A decision that needs more than *budget or POLICY_STEPS_MAX
 * steps denies access.
 */
const struct policy_keys *policy_decide(const struct policy *policy, const struct request_origin *origin,
                                        enum access access, struct slice key, uint64_t *budget);

/* Return whether the policy grants the origin access to any key. */
bool policy_grants_any(const struct policy *policy, const struct request_origin *origin, enum access access);

/* The place of a line in the policy file, for messages. Borrowed. */
struct policy_location {
        struct slice rule;
        unsigned int line;
};
struct policy_location policy_location(const struct policy *policy, const struct policy_keys *keys);

size_t policy_n_rules(const struct policy *policy);

/* Accepts NULL, returns NULL. */
struct policy *policy_free(struct policy *policy);
