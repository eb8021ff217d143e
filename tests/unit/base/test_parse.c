/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/parse.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *name;
        struct slice text;
        int result;
        uint64_t value;
} numbers[] = {
        { "zero", S("0"), 0, 0 },
        { "one digit", S("7"), 0, 7 },
        { "leading zeros", S("000123"), 0, 123 },
        { "more zeros than digits fit", S("00000000000000000000000000000001"), 0, 1 },
        { "2^63-1", S("9223372036854775807"), 0, INT64_MAX },
        { "2^63", S("9223372036854775808"), 0, (uint64_t)INT64_MAX + 1 },
        { "2^64-1", S("18446744073709551615"), 0, UINT64_MAX },
        { "2^64", S("18446744073709551616"), -ERANGE, 0 },
        { "past 2^64 in the last digit", S("18446744073709551619"), -ERANGE, 0 },
        { "past 2^64 by one more digit", S("100000000000000000000"), -ERANGE, 0 },
        { "nothing", S(""), -EINVAL, 0 },
        { "absent", { NULL, 0 }, -EINVAL, 0 },
        { "a plus", S("+1"), -EINVAL, 0 },
        { "a minus", S("-1"), -EINVAL, 0 },
        { "a blank before", S(" 1"), -EINVAL, 0 },
        { "a blank after", S("1 "), -EINVAL, 0 },
        { "a newline after", S("1\n"), -EINVAL, 0 },
        { "a NUL after", S("1\0"), -EINVAL, 0 },
        { "hexadecimal", S("0x10"), -EINVAL, 0 },
        { "an exponent", S("1e3"), -EINVAL, 0 },
        { "a fraction", S("1.5"), -EINVAL, 0 },
        { "the byte before 0", S("/"), -EINVAL, 0 },
        { "the byte after 9", S(":"), -EINVAL, 0 },
        { "a digit of another script", S("\xD9\xA1"), -EINVAL, 0 },
        { "too long and not a number", S("99999999999999999999999x"), -EINVAL, 0 },
};

Test(parse_uint64, accepts_only_decimal_digits) {
        for (size_t i = 0; i < N_ROWS(numbers); i++) {
                uint64_t value = 99;

                cr_expect_eq(parse_uint64(numbers[i].text, &value), numbers[i].result, ROW(numbers, i));
                cr_expect_eq(value, numbers[i].result == 0 ? numbers[i].value : 99, ROW(numbers, i));
        }
}

static const struct {
        const char *name;
        struct slice text;
        int result;
        int64_t value_ms;
} durations[] = {
        { "zero", S("0s"), 0, 0 },
        { "bare", S("1500"), -EINVAL, 0 },
        { "bare zero", S("0"), -EINVAL, 0 },
        { "milliseconds", S("1500ms"), 0, 1500 },
        { "seconds", S("10s"), 0, 10000 },
        { "minutes", S("2m"), 0, 120000 },
        { "hours", S("3h"), 0, 10800000 },
        { "days", S("4d"), 0, 345600000 },
        { "leading zeros", S("0010s"), 0, 10000 },
        { "2^63-1 ms", S("9223372036854775807ms"), 0, INT64_MAX },
        { "2^63", S("9223372036854775808ms"), -ERANGE, 0 },
        { "2^64", S("18446744073709551616ms"), -ERANGE, 0 },
        { "the maximum in seconds", S("9223372036854775s"), 0, INT64_C(9223372036854775000) },
        { "one second more", S("9223372036854776s"), -ERANGE, 0 },
        { "the maximum in days", S("106751991167d"), 0, INT64_C(106751991167) * 86400000 },
        { "one day more", S("106751991168d"), -ERANGE, 0 },
        { "past 2^64 by its unit", S("18446744073709551615d"), -ERANGE, 0 },
        { "wraps around 2^64 to a small value", S("213503982335d"), -ERANGE, 0 },
        { "nothing", S(""), -EINVAL, 0 },
        { "a unit alone", S("s"), -EINVAL, 0 },
        { "a blank between", S("10 s"), -EINVAL, 0 },
        { "a blank after", S("10s "), -EINVAL, 0 },
        { "upper case", S("10S"), -EINVAL, 0 },
        { "the unit spelled out", S("10sec"), -EINVAL, 0 },
        { "weeks", S("1w"), -EINVAL, 0 },
        { "a fraction", S("1.5s"), -EINVAL, 0 },
        { "a minus", S("-1s"), -EINVAL, 0 },
        { "two units", S("1h30m"), -EINVAL, 0 },
        { "a size's unit", S("1KiB"), -EINVAL, 0 },
        { "too long and without a unit", S("99999999999999999999x"), -EINVAL, 0 },
};

Test(parse_duration, converts_every_unit_to_milliseconds) {
        for (size_t i = 0; i < N_ROWS(durations); i++) {
                int64_t value_ms = 99;

                cr_expect_eq(parse_duration(durations[i].text, &value_ms), durations[i].result,
                             ROW(durations, i));
                cr_expect_eq(value_ms, durations[i].result == 0 ? durations[i].value_ms : 99,
                             ROW(durations, i));
        }
}

static const struct {
        const char *name;
        struct slice text;
        int result;
        uint64_t value;
} sizes[] = {
        { "zero", S("0"), 0, 0 },
        { "no unit: bytes", S("1048576"), 0, 1048576 },
        { "KiB", S("3KiB"), 0, 3072 },
        { "MiB", S("64MiB"), 0, UINT64_C(64) << 20 },
        { "GiB", S("1GiB"), 0, UINT64_C(1) << 30 },
        { "2^64-1", S("18446744073709551615"), 0, UINT64_MAX },
        { "2^64", S("18446744073709551616"), -ERANGE, 0 },
        { "the maximum in GiB", S("17179869183GiB"), 0, UINT64_C(17179869183) << 30 },
        { "one GiB more", S("17179869184GiB"), -ERANGE, 0 },
        { "the maximum in KiB", S("18014398509481983KiB"), 0, UINT64_C(18014398509481983) << 10 },
        { "one KiB more", S("18014398509481984KiB"), -ERANGE, 0 },
        { "nothing", S(""), -EINVAL, 0 },
        { "a unit alone", S("MiB"), -EINVAL, 0 },
        { "lower case", S("1mib"), -EINVAL, 0 },
        { "one letter", S("1M"), -EINVAL, 0 },
        { "powers of ten", S("1MB"), -EINVAL, 0 },
        { "a blank between", S("1 MiB"), -EINVAL, 0 },
        { "a fraction", S("1.5GiB"), -EINVAL, 0 },
        { "a minus", S("-1"), -EINVAL, 0 },
        { "a duration's unit", S("1s"), -EINVAL, 0 },
};

Test(parse_size, converts_every_unit_to_bytes) {
        for (size_t i = 0; i < N_ROWS(sizes); i++) {
                uint64_t value = 99;

                cr_expect_eq(parse_size(sizes[i].text, &value), sizes[i].result, ROW(sizes, i));
                cr_expect_eq(value, sizes[i].result == 0 ? sizes[i].value : 99, ROW(sizes, i));
        }
}
