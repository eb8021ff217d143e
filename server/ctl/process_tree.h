/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * Send a signal to all descendants of this process that /proc shows, except zombies. Returns their
 * number, or 0 if /proc cannot be read. A descendant whose parent has ended counts only if this
 * process is a child subreaper: see prctl(2). Processes that start while /proc is read are missed.
 */
size_t process_tree_signal(int number);
