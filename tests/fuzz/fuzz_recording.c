/* SPDX-License-Identifier: Apache-2.0 */

/* Lines of a recording: a parsed message is formatted and parsed again, and must be equal. */

#include <errno.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "records/recording.h"

static void write_and_read(const struct recorded *recorded) {
        CLEANUP(buf_deinit) struct buf line = { 0 }, again = { 0 };
        CLEANUP(recorded_deinit) struct recorded read = { 0 };
        const char *fault;

        recording_append(&line, recorded->type, recorded->client, &recorded->message, recorded->time_ms);
        ASSERT(line.data[line.length - 1] == '\n');
        ASSERT(!memchr(line.data, '\n', line.length - 1));
        ASSERT(recording_read(buf_slice(&line), &read, &fault) == 0);
        ASSERT(slice_equal(read.message.payload, recorded->message.payload));
        ASSERT(slice_equal(read.message.correlation_data, recorded->message.correlation_data));

        recording_append(&again, read.type, read.client, &read.message, read.time_ms);
        ASSERT(slice_equal(buf_slice(&line), buf_slice(&again)) ||
               read.message.n_user_properties < recorded->message.n_user_properties);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct recorded recorded;
        const char *fault = NULL;
        int r;

        r = recording_read((struct slice){ data, size }, &recorded, &fault);
        ASSERT(r == 0 || (r == -EBADMSG && fault));
        if (r < 0)
                return 0;

        write_and_read(&recorded);
        recorded_deinit(&recorded);
        return 0;
}
