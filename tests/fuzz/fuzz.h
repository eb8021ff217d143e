/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/assert.h"
#include "base/bytes.h"

/*
 * A fuzz target is a file fuzz_NAME.c with this function: it takes an input apart, and what must hold of any input
 * stands in ASSERTs. libFuzzer calls it with what it makes up, runner.c with files that are kept. Returns 0.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken off the front of an input. Past its end there are zeros and empty texts. */
uint8_t input_byte(struct slice *input);
bool input_chance(struct slice *input, unsigned int percent);
size_t input_below(struct slice *input, size_t n); /* n: 1 to 256 */
uint64_t input_number(struct slice *input, size_t n_bytes);

/* A length in one byte, then so many bytes, or what is left of them. */
struct slice input_text(struct slice *input);

/* A copy of the text in an allocation of its very length, so that the sanitizer sees what is read past its end. */
struct slice text_copy(struct slice text);
void text_free(struct slice *text);

/* Writes a file that has no name, the same one for all inputs. Returns what opens it. */
char *input_file(struct slice content);
