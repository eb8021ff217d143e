/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/samples.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

/* Maximum length of a number. */
#define NUMBER_MAX 64

void samples_deinit(struct samples *samples) {
        buf_deinit(&samples->text);
        free(samples->list);
        *samples = (struct samples){ 0 };
}

static int parse_value(struct slice text, double *ret_number) {
        char copy[NUMBER_MAX], *end;

        if (text.length == 0 || text.length >= sizeof(copy) || memchr(text.data, '\0', text.length) ||
            text.data[0] == ' ')
                return -EBADMSG;

        memcpy(copy, text.data, text.length);
        copy[text.length] = '\0';
        *ret_number = strtod(copy, &end);
        return *end == '\0' || *end == ' ' ? 0 : -EBADMSG; /* a timestamp may follow */
}

/* Return the length up to and including '}'; 0 if it is missing. Quoted values may contain one. */
static size_t labels_length(struct slice text) {
        bool is_quoted = false;

        for (size_t i = 0; i < text.length; i++) {
                if (is_quoted && text.data[i] == '\\')
                        i++;
                else if (text.data[i] == '"')
                        is_quoted = !is_quoted;
                else if (text.data[i] == '}' && !is_quoted)
                        return i + 1;
        }
        return 0;
}

static int parse_sample(struct samples *samples, struct slice line) {
        struct sample sample = { 0 };
        size_t length = 0;
        int r;

        while (length < line.length && line.data[length] != '{' && line.data[length] != ' ')
                length++;
        sample.name = (struct slice){ line.data, length };
        line = slice_skip(line, length);
        if (length == 0 || line.length == 0)
                return -EBADMSG;

        if (line.data[0] == '{') {
                length = labels_length(line);
                if (length == 0)
                        return -EBADMSG;
                sample.labels = (struct slice){ line.data + 1, length - 2 };
                line = slice_skip(line, length);
        }
        if (line.length == 0 || line.data[0] != ' ' || parse_value(slice_skip(line, 1), &sample.value) < 0)
                return -EBADMSG;

        r = array_reserve((void **)&samples->list, &samples->capacity, samples->n + 1,
                          sizeof(*samples->list));
        if (r < 0)
                return r;
        samples->list[samples->n++] = sample;
        return 0;
}

int samples_read(struct samples *samples) {
        struct slice rest = buf_slice(&samples->text);
        int r = 0;

        samples->n = 0;
        while (rest.length > 0 && r == 0) {
                const uint8_t *end = memchr(rest.data, '\n', rest.length);
                size_t length = end ? (size_t)(end - rest.data) : rest.length;

                if (length > 0 && rest.data[0] != '#')
                        r = parse_sample(samples, (struct slice){ rest.data, length });
                rest = slice_skip(rest, end ? length + 1 : length);
        }
        if (r < 0)
                samples->n = 0;
        return r;
}

static bool is_named(const struct sample *sample, const char *name) {
        return slice_equal(sample->name, slice_from_string(name));
}

static bool has_part(struct slice text, const char *part) {
        return !part || (text.length > 0 && memmem(text.data, text.length, part, strlen(part)));
}

double samples_sum(const struct samples *samples, const char *name, const char *labels_part) {
        double sum = NAN;

        for (size_t i = 0; i < samples->n; i++)
                if (is_named(&samples->list[i], name) && has_part(samples->list[i].labels, labels_part))
                        sum = isnan(sum) ? samples->list[i].value : sum + samples->list[i].value;
        return sum;
}

static struct slice label_of(struct slice labels, const char *label) {
        const uint8_t *value, *end;
        char start[64];

        snprintf(start, sizeof(start), "%s=\"", label);
        value = labels.length > 0 ? memmem(labels.data, labels.length, start, strlen(start)) : NULL;
        if (!value)
                return (struct slice){ 0 };
        value += strlen(start);
        end = memchr(value, '"', (size_t)(labels.data + labels.length - value));
        return (struct slice){ value, end ? (size_t)(end - value) : 0 };
}

struct slice samples_label(const struct samples *samples, const char *name, const char *label) {
        for (size_t i = 0; i < samples->n; i++)
                if (is_named(&samples->list[i], name))
                        return label_of(samples->list[i].labels, label);
        return (struct slice){ 0 };
}

double samples_quantile(const struct samples *samples, const char *bucket_name, double quantile) {
        double n_all = 0, n_below = 0, bound_below = 0;

        for (size_t i = 0; i < samples->n; i++)
                if (is_named(&samples->list[i], bucket_name))
                        n_all = samples->list[i].value; /* the last one is the bucket +Inf */
        if (!(n_all > 0))
                return NAN;

        for (size_t i = 0; i < samples->n; i++) {
                const struct sample *bucket = &samples->list[i];
                double n = bucket->value, bound;

                if (!is_named(bucket, bucket_name))
                        continue;
                if (parse_value(label_of(bucket->labels, "le"), &bound) < 0)
                        return NAN;
                if (n >= quantile * n_all && n > n_below)
                        return isinf(bound)
                                       ? bound_below
                                       : bound_below + (bound - bound_below) * (quantile * n_all - n_below) /
                                                               (n - n_below);
                n_below = n;
                bound_below = bound;
        }
        return bound_below;
}
