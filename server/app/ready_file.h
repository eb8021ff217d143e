/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file of --ready-file. Its existence tells other processes that requests are served. The
 * server does not remove it when it stops. Errors are logged and otherwise ignored. name: NULL for
 * no file.
 */

/* Remove the file at start: a stale file must not signal readiness. */
void ready_file_remove(const char *name);

/* Write the file atomically: readers never see a part of the text. */
void ready_file_write(const char *name, const char *text);
