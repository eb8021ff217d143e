/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tune malloc() for a process with large, growing arrays. Call before the first thread starts. */
void allocator_init(void);
