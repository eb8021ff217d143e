/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/time_units.h"
#include "engine/engine.h"

#define TEST_REGISTRATION_TIMEOUT_MS 10000

/* The limits of all tests in C. No test reaches them by chance: a test lowers the one it is about. */
#define TEST_LIMITS                                                                                         \
        {                                                                                                   \
                .max_keys = 1000000, .max_bytes = 1 << 30, .max_registrations = 1000000,                    \
                .max_remembered_bytes = 64 << 20,                                                           \
                .registration_timeout_ns = TEST_REGISTRATION_TIMEOUT_MS * NS_PER_MS,                        \
        }
