/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file by which others learn that requests are served. It is there from then on, and stays. What goes wrong is logged
 * and stops nothing. name NULL: there is none.
 */

/* At start: one that was left behind must not say that we are ready. */
void ready_file_remove(const char *name);

/* Whoever sees it sees all of the text. */
void ready_file_write(const char *name, const char *text);
