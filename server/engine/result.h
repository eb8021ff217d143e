/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/outcome.h"
#include "engine/version.h"

/*
 * What a repeated request gets again: the part of a reply that the engine remembers (engine/dedup.h) and that a storage stores (storage/stored_form.h). Whatever the payload of a
 * remembered reply is built from must be here.
 */
struct result {
        struct version version; /* if has_version */
        enum outcome outcome;
        bool has_version;
};
