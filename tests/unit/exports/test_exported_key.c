/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/cleanup.h"
#include "exports/exported_key.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *name;
        struct slice line;
} lines[] = {
        { "key and value", S("{\"key\":\"a\",\"value\":\"b\"}\n") },
        { "an empty value", S("{\"key\":\"a\",\"value\":\"\"}\n") },
        { "bytes", S("{\"key_base64\":\"/w==\",\"value_base64\":\"/v8=\"}\n") },
        { "all members", S("{\"key\":\"a\",\"value\":\"b\",\"version\":\"1:2:n\",\"deadline\":3,"
                           "\"token\":\"4:5:m\"}\n") },
        { "neither deadline nor token",
          S("{\"key\":\"a\",\"value\":\"b\",\"deadline\":null,\"token\":null}\n") },
        { "a deadline only", S("{\"key\":\"a\",\"value\":\"b\",\"deadline\":3,\"token\":null}\n") },
};

Test(exported, round_trip) {
        for (size_t i = 0; i < N_ROWS(lines); i++) {
                CLEANUP(exported_key_deinit) struct exported_key exported = { 0 };
                CLEANUP(buf_deinit) struct buf line = { 0 };
                const char *fault = "";

                cr_assert_eq(exported_key_read(&exported, lines[i].line, &fault), 0, ROW(lines, i));
                exported_key_write(&exported, &line);
                cr_expect(slice_equal(buf_slice(&line), lines[i].line), ROW(lines, i));
        }
}

static const struct {
        const char *name;
        struct slice line;
        const char *fault;
} faults[] = {
        { "nothing", S(""), "the line is not JSON" },
        { "an incomplete line", S("{\"key\":\"a\","), "the line is not JSON" },
        { "a repeated member", S("{\"key\":\"a\",\"key\":\"a\",\"value\":\"b\"}"), "the line is not JSON" },
        { "a list", S("[]"), "a JSON object was expected" },
        { "no key", S("{\"value\":\"b\"}"), "a non-empty \"key\" or \"key_base64\" was expected" },
        { "an empty key", S("{\"key\":\"\",\"value\":\"b\"}"),
          "a non-empty \"key\" or \"key_base64\" was expected" },
        { "a number as value", S("{\"key\":\"a\",\"value\":1}"),
          "\"value\" or \"value_base64\" was expected" },
        { "invalid base64", S("{\"key\":\"a\",\"value_base64\":\"b\"}"),
          "\"value\" or \"value_base64\" was expected" },
        { "an invalid version", S("{\"key\":\"a\",\"value\":\"b\",\"version\":\"1\"}"),
          "\"version\" is not wallClock:counter:nodeId" },
        { "an invalid token", S("{\"key\":\"a\",\"value\":\"b\",\"token\":7}"),
          "\"token\" is not wallClock:counter:nodeId" },
        { "a negative deadline", S("{\"key\":\"a\",\"value\":\"b\",\"deadline\":-1}"),
          "\"deadline\" is not a number of milliseconds" },
};

Test(exported, reports_what_was_expected) {
        for (size_t i = 0; i < N_ROWS(faults); i++) {
                CLEANUP(exported_key_deinit) struct exported_key exported = { 0 };
                const char *fault = "";

                cr_assert_eq(exported_key_read(&exported, faults[i].line, &fault), -EBADMSG, ROW(faults, i));
                cr_expect_str_eq(fault, faults[i].fault, ROW(faults, i));
        }
}
