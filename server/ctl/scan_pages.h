/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * What differs from one store to the next though it is the same: a SCAN's keys come in any order, and the token of a next
 * page is good at the store that gave it.
 */

/* Whether the request asks for another page than the first. */
bool page_is_continued(struct slice verb, struct slice payload);

/* Whether these answers to a request of this verb say the same. Of pages that others follow, only that they do. */
bool pages_are_same(struct slice verb, struct slice a, struct slice b);
