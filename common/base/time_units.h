/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#define MS_PER_S  INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)
