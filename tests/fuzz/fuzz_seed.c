/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A seed is a JSON array, or lines of JSON. Its keys, formatted as lines, must be parsed to the
 * same keys.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "records/seed.h"

static int read_all(struct slice text, struct buf *lines) {
        CLEANUP(key_record_deinit) struct key_record record = { 0 };
        CLEANUP(seed_deinit) struct seed seed;
        int r;

        seed_init(&seed, "seed", text);
        while ((r = seed_next(&seed, &record)) > 0) {
                ASSERT(record.key.length > 0 && record.deadline_ms >= 0);
                key_record_write(&record, lines);
        }
        ASSERT(r == 0 || r == -EBADMSG);
        ASSERT((r == 0) == (seed.fault[0] == '\0'));
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(buf_deinit) struct buf lines = { 0 }, again = { 0 };

        read_all((struct slice){ data, size }, &lines);
        ASSERT(read_all(buf_slice(&lines), &again) == 0);
        ASSERT(slice_equal(buf_slice(&lines), buf_slice(&again)));
        return 0;
}
