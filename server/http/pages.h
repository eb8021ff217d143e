/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http/server.h"
#include "pipeline/pipeline.h"

/* The pages that statestored serves by HTTP. Their userdata is the pipeline. */
extern const struct http_page pages[];
extern const size_t n_pages;
