/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http/http_server.h"
#include "pipeline/pipeline.h"

/* The pages of statestored: metrics, health, readiness, version. userdata of render() is the pipeline. */
extern const struct http_page store_pages[];
extern const size_t n_store_pages;
