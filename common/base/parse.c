/* SPDX-License-Identifier: Apache-2.0 */

#include "base/parse.h"

#include <errno.h>

#include "base/array.h"

static bool is_digit(uint8_t byte) {
        return byte >= '0' && byte <= '9';
}

struct parse_unit {
        const char *name;
        uint64_t factor;
};

static int parse_with_unit(struct slice text, const struct parse_unit *units, size_t n_units,
                           uint64_t *ret_value) {
        struct slice digits = text, rest;
        const struct parse_unit *unit = NULL;
        uint64_t value;
        int r;

        while (digits.length > 0 && !is_digit(digits.data[digits.length - 1]))
                digits.length--;
        rest = slice_skip(text, digits.length);

        for (size_t i = 0; i < n_units; i++)
                if (slice_equal(rest, slice_from_string(units[i].name)))
                        unit = &units[i];
        if (!unit)
                return -EINVAL;

        r = parse_uint64(digits, &value);
        if (r < 0)
                return r;
        if (__builtin_mul_overflow(value, unit->factor, &value))
                return -ERANGE;

        *ret_value = value;
        return 0;
}

int parse_duration(struct slice text, int64_t *ret_value_ms) {
        static const struct parse_unit units[] = {
                { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 }
        };
        uint64_t value;
        int r;

        r = parse_with_unit(text, units, ARRAY_LENGTH(units), &value);
        if (r < 0)
                return r;
        if (value > INT64_MAX)
                return -ERANGE;

        *ret_value_ms = (int64_t)value;
        return 0;
}

int parse_size(struct slice text, uint64_t *ret_value) {
        static const struct parse_unit units[] = {
                { "", 1 }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 }
        };

        return parse_with_unit(text, units, ARRAY_LENGTH(units), ret_value);
}
