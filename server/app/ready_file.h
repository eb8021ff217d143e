/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The ready file, which shows other processes that requests are served. It is not removed when the server
 * stops. Errors are logged and otherwise ignored. name NULL: none.
 */

/* Remove the file at start: a stale file must not signal readiness. */
void ready_file_remove(const char *name);

/* Write the file atomically: readers never see a part of the text. */
void ready_file_write(const char *name, const char *text);
