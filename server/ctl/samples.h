/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Parser for the text format of Prometheus. Skips comments. The text may be hostile. Does no I/O.
 */
struct sample {
        struct slice name;
        struct slice labels; /* the text between the braces */
        double value;
};

/* Initialize with zeros. */
struct samples {
        struct buf text; /* the slices point into it */
        struct sample *list;
        size_t n, capacity;
};

void samples_deinit(struct samples *samples);

/* Parse samples->text; replaces the list. Returns 0, -EBADMSG for a syntax error, or -ENOMEM. */
int samples_read(struct samples *samples);

/*
 * Return the sum of the samples with this name whose labels contain labels_part; NULL: all labels.
 * NAN if there are none.
 */
double samples_sum(const struct samples *samples, const char *name, const char *labels_part);

/* Return the value of a label of the first sample with this name; absent if there is none. */
struct slice samples_label(const struct samples *samples, const char *name, const char *label);

/*
 * Return a quantile, from 0 to 1, of a histogram. bucket_name: the name of its buckets.
 * Interpolates linearly within a bucket. NAN if nothing was counted.
 */
double samples_quantile(const struct samples *samples, const char *bucket_name, double quantile);
