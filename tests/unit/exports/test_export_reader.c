/* SPDX-License-Identifier: Apache-2.0 */

/* Both formats of a seed, and the messages for faults. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "exports/export_reader.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

/* The keys of a seed, as lines of the export format. */
static const struct {
        const char *name;
        struct slice text, lines;
} seeds[] = {
        { "nothing", S(""), S("") },
        { "blanks", S(" \r\n\n\t"), S("") },
        { "a line", S("{\"key\":\"a\",\"value\":\"b\"}\n"), S("{\"key\":\"a\",\"value\":\"b\"}\n") },
        { "no newline after the last line", S("{\"key\":\"a\",\"value\":\"b\"}"),
          S("{\"key\":\"a\",\"value\":\"b\"}\n") },
        { "a byte order mark and lines", S("\xEF\xBB\xBF{\"key\":\"a\",\"value\":\"b\"}\n"),
          S("{\"key\":\"a\",\"value\":\"b\"}\n") },
        { "a byte order mark and a list", S("\xEF\xBB\xBF[{\"a\":\"b\"}]"),
          S("{\"key\":\"a\",\"value\":\"b\"}\n") },
        { "a byte order mark", S("\xEF\xBB\xBF"), S("") },
        { "empty lines between lines",
          S("\n{\"key\":\"a\",\"value\":\"b\",\"deadline\":3,\"token\":\"4:5:m\"}\r\n \n"
            "{\"key_base64\":\"/w==\",\"value\":\"\"}\n"),
          S("{\"key\":\"a\",\"value\":\"b\",\"deadline\":3,\"token\":\"4:5:m\"}\n"
            "{\"key_base64\":\"/w==\",\"value\":\"\"}\n") },

        { "an empty list", S("[]"), S("") },
        { "empty objects", S(" [ {}, {} ] \n"), S("") },
        { "the published statestore.json",
          S("[\n  {\n    \"factoryId\": \"factoryA\"\n  },\n  {\n"
            "    \"machineId\": \"machineA\"\n  }\n]"),
          S("{\"key\":\"factoryId\",\"value\":\"factoryA\"}\n"
            "{\"key\":\"machineId\",\"value\":\"machineA\"}\n") },
        { "several members", S("[{\"a\":\"1\",\"b\":\"2\"},{\"c\":\"3\"}]"),
          S("{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\"}\n"
            "{\"key\":\"c\",\"value\":\"3\"}\n") },
        { "values that are not strings", S("[{\"a\":{\"x\": [1, 2.50]},\"b\":true,\"c\":7,\"d\":\"\"}]"),
          S("{\"key\":\"a\",\"value\":\"{\\\"x\\\":[1,2.5]}\"}\n{\"key\":\"b\",\"value\":\"true\"}\n"
            "{\"key\":\"c\",\"value\":\"7\"}\n{\"key\":\"d\",\"value\":\"\"}\n") },
        { "a NUL in a value", S("[{\"a\":\"x\\u0000y\"}]"), S("{\"key\":\"a\",\"value\":\"x\\u0000y\"}\n") },
        { "exported keys in a list", S("[{\"key\":\"a\",\"value\":\"b\",\"deadline\":3},\n{\"c\":\"d\"}]"),
          S("{\"key\":\"a\",\"value\":\"b\",\"deadline\":3,\"token\":null}\n{\"key\":\"c\",\"value\":\"d\"}"
            "\n") },
        { "a key named key", S("[{\"key\":\"a\"}]"), S("{\"key\":\"key\",\"value\":\"a\"}\n") },
};

static int read_all(struct export_reader *reader, struct buf *lines) {
        CLEANUP(exported_key_deinit) struct exported_key exported = { 0 };
        int r;

        while ((r = export_reader_next(reader, &exported)) > 0)
                exported_key_write(&exported, lines);
        return r;
}

Test(reader, accepts_both_formats) {
        for (size_t i = 0; i < N_ROWS(seeds); i++) {
                CLEANUP(buf_deinit) struct buf lines = { 0 };
                CLEANUP(export_reader_deinit) struct export_reader reader;

                export_reader_init(&reader, "seed.json", seeds[i].text);
                cr_assert_eq(read_all(&reader, &lines), 0, "row %zu: %s: %s", i, seeds[i].name,
                             reader.fault);
                cr_expect(slice_equal(buf_slice(&lines), seeds[i].lines), "row %zu: %s: %.*s", i,
                          seeds[i].name, (int)lines.length, (const char *)lines.data);
                cr_expect_eq(read_all(&reader, &lines), 0, ROW(seeds, i));
        }
}

/* Open a file with this text. Its name is in reader->name. */
static int open_file(struct export_reader *reader, struct slice text) {
        static char name[64];
        int fd = memfd_create("seed", MFD_CLOEXEC), r;

        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        cr_assert_eq(write(fd, text.data, text.length), (ssize_t)text.length);
        r = export_reader_open(reader, name);
        close(fd);
        return r;
}

Test(reader, is_read_from_a_file_as_from_a_text) {
        for (size_t i = 0; i < N_ROWS(seeds); i++) {
                CLEANUP(buf_deinit) struct buf lines = { 0 };
                CLEANUP(export_reader_deinit) struct export_reader reader;

                cr_assert_eq(open_file(&reader, seeds[i].text), 0, ROW(seeds, i));
                cr_assert_eq(read_all(&reader, &lines), 0, "row %zu: %s: %s", i, seeds[i].name,
                             reader.fault);
                cr_expect(slice_equal(buf_slice(&lines), seeds[i].lines), "row %zu: %s: %.*s", i,
                          seeds[i].name, (int)lines.length, (const char *)lines.data);
        }
}

static const struct {
        const char *name;
        struct slice text;
        const char *fault;
} faults[] = {
        { "text", S("\nhello"), "seed.json:2: the line is not JSON" },
        { "bytes", S("\xFF\x00"), "seed.json:1: the line is not JSON" },
        { "a byte order mark in the second line", S("[]\n\xEF\xBB\xBF"),
          "seed.json:2: unexpected text after the list" },
        { "the second line", S("{\"key\":\"a\",\"value\":\"b\"}\n\n{\"key\":\"a\"}\n"),
          "seed.json:3: \"value\" or \"value_base64\" was expected" },
        { "two objects on a line", S("{\"key\":\"a\",\"value\":\"b\"}{\"key\":\"a\",\"value\":\"b\"}"),
          "seed.json:1: the line is not JSON" },
        { "an object instead of a list", S("{\"factoryId\":\"a\"}"),
          "seed.json:1: a non-empty \"key\" or \"key_base64\" was expected" },

        { "a list without its end", S("[{\"a\":\"b\"}\n"), "seed.json:2: ',' or ']' was expected" },
        { "a list without objects and end", S("["),
          "seed.json:1: a JSON object without duplicate keys was expected" },
        { "a comma after the last object", S("[{\"a\":\"b\"},\n]"),
          "seed.json:2: a JSON object without duplicate keys was expected" },
        { "a fault within an object", S("[{\"a\":\"b\"},\n{\n\"c\":}]"),
          "seed.json:3: a JSON object without duplicate keys was expected" },
        { "a repeated key", S("[{\"a\":\"b\",\"a\":\"c\"}]"),
          "seed.json:1: a JSON object without duplicate keys was expected" },
        { "a list in the list", S("[\n[]]"), "seed.json:2: a JSON object was expected" },
        { "an empty key", S("[{},\n{\"\":\"b\"\n}]"), "seed.json:2: a non-empty key was expected" },
        { "null", S("[{\"a\":\n null}]"),
          "seed.json:1: null is not a value: a string, an object, a list, a number, true or false was "
          "expected" },
        { "an invalid exported key",
          S("[{\"a\":\"b\"},\n{\"key\":\"a\",\"value\":\"b\",\"deadline\":\"x\"}]"),
          "seed.json:2: \"deadline\" is not a number of milliseconds" },
        { "text after the list", S("[]\n{}"), "seed.json:2: unexpected text after the list" },
};

Test(reader, reports_the_line_and_what_was_expected) {
        for (size_t i = 0; i < N_ROWS(faults); i++) {
                CLEANUP(buf_deinit) struct buf lines = { 0 };
                CLEANUP(export_reader_deinit) struct export_reader reader;

                export_reader_init(&reader, "seed.json", faults[i].text);
                cr_assert_eq(read_all(&reader, &lines), -EBADMSG, ROW(faults, i));
                cr_expect_str_eq(reader.fault, faults[i].fault, ROW(faults, i));
        }
}

Test(reader, reports_the_lines_of_a_file) {
        for (size_t i = 0; i < N_ROWS(faults); i++) {
                CLEANUP(buf_deinit) struct buf lines = { 0 };
                CLEANUP(export_reader_deinit) struct export_reader reader;

                cr_assert_eq(open_file(&reader, faults[i].text), 0, ROW(faults, i));
                cr_expect_eq(read_all(&reader, &lines), -EBADMSG, ROW(faults, i));
                cr_expect_str_eq(reader.fault + strlen(reader.name), faults[i].fault + strlen("seed.json"),
                                 ROW(faults, i));
        }
}

Test(reader, reports_why_a_file_cannot_be_read) {
        CLEANUP(export_reader_deinit) struct export_reader reader;

        cr_expect_eq(export_reader_open(&reader, "/nowhere/seed.json"), -ENOENT);
        cr_expect_str_eq(reader.fault, "/nowhere/seed.json: No such file or directory");
}

Test(reader, reports_that_a_directory_cannot_be_read) {
        CLEANUP(exported_key_deinit) struct exported_key exported = { 0 };
        CLEANUP(export_reader_deinit) struct export_reader reader;

        cr_assert_eq(export_reader_open(&reader, "/"), 0);
        cr_expect_eq(export_reader_next(&reader, &exported), -EBADMSG);
        cr_expect_str_eq(reader.fault, "/: Is a directory");
}

Test(reader, rejects_unbounded_nesting) {
        CLEANUP(buf_deinit) struct buf text = { 0 }, lines = { 0 };
        CLEANUP(export_reader_deinit) struct export_reader reader;

        for (size_t i = 0; i < 1000000; i++)
                buf_append_string(&text, "[{\"a\":");
        export_reader_init(&reader, "seed.json", buf_slice(&text));
        cr_expect_eq(read_all(&reader, &lines), -EBADMSG);
}
