/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/broker_log.h"

#include <string.h>

#define TEXT          SLICE_LITERAL("Outgoing messages are being dropped for client ")
#define TIMESTAMP_END SLICE_LITERAL(": ")

static bool is_timestamp_character(uint8_t c) {
        return c != '\0' && strchr("0123456789 +-./:TZ", c);
}

/* Return the line without its timestamp; the whole line if it has none. */
static struct slice skip_timestamp(struct slice line) {
        size_t n = 0;

        while (n < line.length && is_timestamp_character(line.data[n]))
                n++;
        if (n < TIMESTAMP_END.length ||
            memcmp(line.data + n - TIMESTAMP_END.length, TIMESTAMP_END.data, TIMESTAMP_END.length) != 0)
                return line;
        return (struct slice){ line.data + n, line.length - n };
}

bool broker_log_read_drop(struct slice line, struct slice *ret_client_id) {
        struct slice client_id;

        if (line.length >= BROKER_LOG_LINE_MAX)
                return false;
        line = skip_timestamp(line);
        if (!slice_starts_with(line, TEXT))
                return false;

        client_id = (struct slice){ line.data + TEXT.length, line.length - TEXT.length };
        if (client_id.length < 2 || client_id.data[client_id.length - 1] != '.')
                return false;
        client_id.length--;
        *ret_client_id = client_id;
        return true;
}
