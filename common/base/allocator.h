/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Settings of malloc() for a process that holds a store; before the first thread. */
void allocator_init(void);
