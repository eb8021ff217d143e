/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "daemon.h"

/* Counters and gauges in Prometheus' text format, version 0.0.4. Pure. */
void metrics_append(struct buf *text, const struct counters *counters, const struct gauges *gauges);
