/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Create the file when the responder replies to requests, as statestored's --ready-file. NULL: no
 * file.
 */
void ready_file_write(const char *name);
