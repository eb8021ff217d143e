/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/assert.h"
#include "base/bytes.h"

/*
 * A fuzz target is a file fuzz_NAME.c with this function: it decodes an input and checks properties
 * of any input with ASSERT. libFuzzer calls it with generated inputs, runner.c with stored files
 * and generated inputs. Returns 0.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Take values from the beginning of an input. After its end, values are zeros and empty texts. */
uint8_t input_byte(struct slice *input);
bool input_chance(struct slice *input, unsigned int percent);
size_t input_below(struct slice *input, size_t n); /* n: 1 to 256 */
uint64_t input_number(struct slice *input, size_t n_bytes);

/* A length in one byte, then that many bytes, or fewer at the end of the input. */
struct slice input_text(struct slice *input);

/*
 * A copy of the text in an allocation of exactly its length, so that the sanitizer reports reads
 * past its end.
 */
struct slice text_copy(struct slice text);
void text_free(struct slice *text);

/* Write an unnamed file, the same one for all inputs. Returns the path that opens it. */
char *input_file(struct slice content);
