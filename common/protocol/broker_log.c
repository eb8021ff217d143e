/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/broker_log.h"

#define TEXT                 SLICE_LITERAL("Outgoing messages are being dropped for client ")
#define TIMESTAMP_CHARACTERS SLICE_LITERAL("0123456789 +-./:TZ")
#define TIMESTAMP_END        SLICE_LITERAL(": ")

/* Return the line without its timestamp; the whole line if it has none. */
static struct slice skip_timestamp(struct slice line) {
        size_t n = 0;

        while (n < line.length &&
               memchr(TIMESTAMP_CHARACTERS.data, line.data[n], TIMESTAMP_CHARACTERS.length))
                n++;
        return slice_ends_with((struct slice){ line.data, n }, TIMESTAMP_END) ? slice_skip(line, n) : line;
}

bool broker_log_read_drop(struct slice line, struct slice *ret_client_id) {
        struct slice client_id;

        if (line.length >= BROKER_LOG_LINE_MAX)
                return false;
        line = skip_timestamp(line);
        if (!slice_starts_with(line, TEXT))
                return false;

        client_id = slice_skip(line, TEXT.length);
        if (client_id.length < 2 || !slice_ends_with(client_id, SLICE_LITERAL(".")))
                return false;
        client_id.length--;
        *ret_client_id = client_id;
        return true;
}
