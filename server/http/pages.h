/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http/server.h"
#include "pipeline/pipeline.h"

/* What statestored serves by HTTP; their userdata is the pipeline. */
extern const struct http_page pages[];
extern const size_t n_pages;
