/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

struct policy;

/* A policy from a file of the form that conf/policy.conf shows. */

/* Is told of each fault: where is FILE:LINE. */
struct policy_file_sink {
        void (*fault)(void *userdata, const char *where, const char *what);
        void *userdata;
};

/*
 * Tells all that is wrong. Returns the policy, which the caller owns, or NULL where anything was. allows_unverified: as
 * policy_compile().
 */
struct policy *policy_file_read(const char *name, bool allows_unverified,
                                const struct policy_file_sink *sink);
