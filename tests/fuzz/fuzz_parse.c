/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers, durations and sizes, compared with arithmetic that cannot overflow. */

#include <errno.h>

#include "base/array.h"
#include "base/parse.h"
#include "fuzz/fuzz.h"

#define OUT_OF_RANGE ((unsigned __int128)1 << 100)

struct unit {
        const char *name;
        uint64_t factor;
};

static const struct unit durations[] = {
        { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 }
};
static const struct unit sizes[] = { { "", 1 }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 } };

/* Return false if the text is not digits and one of the units. */
static bool reference(struct slice text, const struct unit *units, size_t n_units,
                      unsigned __int128 *ret_value) {
        unsigned __int128 value = 0;
        size_t n_digits = 0;

        for (; n_digits < text.length && text.data[n_digits] >= '0' && text.data[n_digits] <= '9';
             n_digits++)
                if (value < OUT_OF_RANGE)
                        value = value * 10 + (unsigned)(text.data[n_digits] - '0');

        for (size_t i = 0; i < n_units && n_digits > 0; i++)
                if (slice_equal((struct slice){ text.data + n_digits, text.length - n_digits },
                                slice_from_string(units[i].name))) {
                        *ret_value = value < OUT_OF_RANGE ? value * units[i].factor : value;
                        return true;
                }
        return false;
}

static void check(int result, uint64_t read, bool is_number, unsigned __int128 value, uint64_t max) {
        if (!is_number)
                ASSERT(result == -EINVAL);
        else if (value > max)
                ASSERT(result == -ERANGE);
        else
                ASSERT(result == 0 && read == (uint64_t)value);
}

static void format(uint64_t value) {
        char text[UINT64_DIGITS_MAX];
        uint64_t read;

        for (size_t width = 1; width <= UINT64_DIGITS_MAX; width++) {
                size_t length = format_uint64(text, value, width);

                ASSERT(length >= width && length <= sizeof(text));
                ASSERT(parse_uint64((struct slice){ (uint8_t *)text, length }, &read) == 0 && read == value);
                ASSERT(length == width || text[0] != '0');
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice text = { data, size };
        unsigned __int128 value = 0;
        uint64_t number = 0;
        int64_t duration = 0;
        bool is_number;
        int r;

        is_number = reference(text, sizes, 1, &value);
        r = parse_uint64(text, &number);
        check(r, number, is_number, value, UINT64_MAX);
        if (r == 0)
                format(number);

        is_number = reference(text, sizes, ARRAY_LENGTH(sizes), &value);
        r = parse_size(text, &number);
        check(r, number, is_number, value, UINT64_MAX);

        is_number = reference(text, durations, ARRAY_LENGTH(durations), &value);
        r = parse_duration(text, &duration);
        check(r, (uint64_t)duration, is_number, value, INT64_MAX);
        return 0;
}
