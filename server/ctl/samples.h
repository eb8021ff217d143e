/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Prometheus' text format, read: samples, without what comments say of them. All zeros is none. Pure; what is read may be
 * anybody's.
 */
struct sample {
        struct slice name;
        struct slice labels; /* what stands between the braces, as it stands */
        double value;
};

struct samples {
        struct buf text; /* what the slices point into */
        struct sample *list;
        size_t n, capacity;
};

void samples_deinit(struct samples *samples);

/* Reads samples->text, in the place of what was read before. Returns 0, -EBADMSG for what is no such text, or -ENOMEM. */
int samples_read(struct samples *samples);

/* The sum of the samples of this name whose labels have this part in them; NULL: of all. NAN where there is none. */
double samples_sum(const struct samples *samples, const char *name, const char *labels_part);

/* The value of this label of the first sample of this name; absent where there is none. */
struct slice samples_label(const struct samples *samples, const char *name, const char *label);

/*
 * The value below which this share (0 to 1) of what the histogram counted since `before` lies, NULL for all of it: between
 * the bounds of its bucket as if they were evenly spread. NAN where nothing was counted.
 */
double samples_quantile(const struct samples *samples, const struct samples *before, const char *bucket_name,
                        double share);
