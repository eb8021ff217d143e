/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tells who has started us that we answer, as statestored's --ready-file does. NULL: nobody wants to know. */
void ready_file_write(const char *name);
