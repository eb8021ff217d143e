/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A seed is a JSON array, or lines of JSON. Its keys, formatted as lines, must be parsed to the
 * same keys.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "exports/export_reader.h"
#include "fuzz/fuzz.h"

static int read_all(struct slice text, struct buf *lines) {
        CLEANUP(exported_key_deinit) struct exported_key exported = { 0 };
        CLEANUP(export_reader_deinit) struct export_reader reader;
        int r;

        export_reader_init(&reader, "seed", text);
        while ((r = export_reader_next(&reader, &exported)) > 0) {
                ASSERT(exported.key.length > 0 && exported.deadline_ms >= 0);
                exported_key_write(&exported, lines);
        }
        ASSERT(r == 0 || r == -EBADMSG);
        ASSERT((r == 0) == (reader.fault[0] == '\0'));
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(buf_deinit) struct buf lines = { 0 }, again = { 0 };

        read_all((struct slice){ data, size }, &lines);
        ASSERT(read_all(buf_slice(&lines), &again) == 0);
        ASSERT(slice_equal(buf_slice(&lines), buf_slice(&again)));
        return 0;
}
