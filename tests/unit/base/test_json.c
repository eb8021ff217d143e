/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *name;
        struct slice bytes;
        bool hex;
        const char *line;
} members[] = {
        { "text", S("hello"), false, "{\"key\":\"hello\"}\n" },
        { "UTF-8", S("\xC3\xA4"), false, "{\"key\":\"\xC3\xA4\"}\n" },
        { "what JSON escapes", S("a\"b\\c\n\x01\x7F"), false,
          "{\"key\":\"a\\\"b\\\\c\\n\\u0001\\u007f\"}\n" },
        { "control characters of terminals", S("\xC2\x80\xC2\x9B\xC2\x9F\xC2\xA0"), false,
          "{\"key\":\"\\u0080\\u009b\\u009f\xC2\xA0\"}\n" },
        { "characters that are not shown", S("\xE2\x80\xAE|\xEF\xBB\xBF|\xE2\x82\xAC"), false,
          "{\"key\":\"\\u202e|\\ufeff|\xE2\x82\xAC\"}\n" },
        { "a NUL", S("a\0b"), false, "{\"key\":\"a\\u0000b\"}\n" },
        { "nothing", S(""), false, "{\"key\":\"\"}\n" },
        { "absent", { NULL, 0 }, false, "{\"key\":null}\n" },
        { "invalid UTF-8", S("\xFF"), false, "{\"key_base64\":\"/w==\"}\n" },
        { "hex", S("hello"), true, "{\"key_hex\":\"68656C6C6F\"}\n" },
};

Test(json, writes_any_bytes_on_one_line) {
        for (size_t i = 0; i < N_ROWS(members); i++) {
                CLEANUP(buf_deinit) struct buf line = { 0 };

                json_begin(&line);
                json_add_bytes(&line, "key", members[i].bytes, members[i].hex);
                json_end(&line);
                cr_expect(slice_equal(buf_slice(&line), slice_from_string(members[i].line)),
                          ROW(members, i));
        }
}

Test(json, separates_members_with_commas) {
        CLEANUP(buf_deinit) struct buf line = { 0 };

        json_begin(&line);
        json_add_bool(&line, "a", true);
        json_add_name(&line, "b");
        buf_append_string(&line, "[1]");
        json_end(&line);
        cr_expect(slice_equal(buf_slice(&line), S("{\"a\":true,\"b\":[1]}\n")));
}

Test(json, separates_objects_of_an_array_with_commas) {
        CLEANUP(buf_deinit) struct buf line = { 0 };

        for (int i = 0; i < 2; i++) { /* lines have no comma */
                json_begin(&line);
                json_add_name(&line, "list");
                buf_append_string(&line, "[");
                for (int j = 0; j < 3; j++) {
                        json_begin(&line);
                        buf_append_string(&line, "}");
                }
                buf_append_string(&line, "]");
                json_end(&line);
        }
        cr_expect(slice_equal(buf_slice(&line), S("{\"list\":[{},{},{}]}\n{\"list\":[{},{},{}]}\n")));
}
