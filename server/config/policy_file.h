/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

struct policy;

/* Reads a policy from a file. conf/policy.conf shows the format. */

/* Receives each fault. The argument `where` is "FILE:LINE", or the file name. */
typedef void policy_file_fault(void *userdata, const char *where, const char *what);

/*
 * Read the file and report all faults. Returns the policy, which the caller owns, or NULL if there
 * was a fault. allows_unverified: as for policy_compile().
 */
struct policy *policy_file_read(const char *name, bool allows_unverified, policy_file_fault *take_fault,
                                void *userdata);
