/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <inttypes.h>

/* What people read about faults that the store (GET /api/health) and statestorectl doctor both report. */

#define FAULT_NO_PLUGIN                                                                                     \
        "the plugin does not announce itself; without the plugin client ids are not verified, and only "    \
        "clients that subscribe are notified"
#define REMEDY_NO_PLUGIN                                                                                    \
        "load mosquitto_statestore.so if the broker is mosquitto; for another broker see \"Access rules "   \
        "of the broker\" in OPERATIONS.md"

/* Arguments: the distance in seconds, an int64_t, and "ahead of" or "behind". */
#define FAULT_CLOCK                                                                                         \
        "the store's clock is %" PRId64                                                                     \
        " s %s this machine's; timestamps more than a minute ahead are refused"
#define REMEDY_CLOCK          "synchronize the clocks of all machines by NTP"
#define CLOCK_DISTANCE_MAX_MS 1000 /* the fault is reported above this distance */
