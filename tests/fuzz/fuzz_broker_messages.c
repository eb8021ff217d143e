/* SPDX-License-Identifier: Apache-2.0 */

/* What the plugin in the broker says: the stamp on a request, and its welcome. */

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "fuzz/fuzz.h"
#include "proto/broker_messages.h"

#define SEAL "0123456789abcdef0123456789abcdef"

static int compare(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* The rule for one line after the other. Returns whether all are numbers; they are added to the buffer. */
static bool reference(struct slice payload, struct buf *numbers) {
        struct slice rest, line = slice_split(payload, '\n', &rest);
        uint64_t number;

        if (line.length != COMPANION_SEAL_LENGTH)
                return false;
        while (rest.length > 0) {
                line = slice_split(rest, '\n', &rest);
                if (parse_uint64(line, &number) < 0)
                        return false;
                buf_append(numbers, &number, sizeof(number));
        }
        if (numbers->length > 0)
                qsort(numbers->data, numbers->length / sizeof(number), sizeof(number), compare);
        return true;
}

static void welcome(struct slice payload) {
        CLEANUP(cleanup_free) uint64_t *connections = NULL;
        CLEANUP(buf_deinit) struct buf expected = { 0 };
        bool is_welcome = reference(payload, &expected);
        struct slice seal;
        size_t n;
        int r = welcome_read(payload, &seal, &connections, &n);

        ASSERT(r == (is_welcome ? 0 : -EBADMSG));
        if (r < 0)
                return;
        ASSERT(seal.data == payload.data && seal.length == COMPANION_SEAL_LENGTH);
        ASSERT(slice_equal((struct slice){ (uint8_t *)connections, n * sizeof(*connections) },
                           buf_slice(&expected)));
        for (size_t i = 0; i < n; i++) {
                struct connection_text text = connection_text(connections[i]);
                uint64_t again;

                ASSERT(text.text[text.length] == '\0');
                ASSERT(parse_uint64((struct slice){ (uint8_t *)text.text, text.length }, &again) == 0 &&
                       again == connections[i]);
        }
}

/* A message whose user properties are lines: the first byte chooses the name, the rest is the value. */
static void stamp(struct slice input, struct slice seal) {
        static const char *const names[] = { COMPANION_PROPERTY_SEAL, COMPANION_PROPERTY_CLIENT_ID,
                                             COMPANION_PROPERTY_USERNAME, "__srcId" };
        struct message message = { 0 };
        struct slice sealed, number_text;
        struct stamp stamp = { 0 };
        uint64_t number = 0;
        bool is_valid;

        while (input.data && message.n_user_properties < MESSAGE_USER_PROPERTIES_MAX) {
                struct slice line = slice_split(input, '\n', &input);
                size_t name = input_below(&line, 4);

                message.user_properties[message.n_user_properties++] =
                        (struct user_property){ slice_from_string(names[name]), line };
        }

        is_valid = stamp_read(&message, seal, &stamp);
        sealed = slice_split(message_property(&message, COMPANION_PROPERTY_SEAL), ':', &number_text);
        ASSERT(is_valid ==
               (seal.data && slice_equal(sealed, seal) && parse_uint64(number_text, &number) == 0 &&
                number > 0 && message_property(&message, COMPANION_PROPERTY_CLIENT_ID).length > 0));
        if (is_valid) {
                ASSERT(stamp.connection == number);
                ASSERT(slice_equal(stamp.client_id,
                                   message_property(&message, COMPANION_PROPERTY_CLIENT_ID)));
                ASSERT(slice_equal(stamp.username, message_property(&message, COMPANION_PROPERTY_USERNAME)));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = { data, size };

        welcome(input);
        stamp(input, SLICE_LITERAL(SEAL));
        stamp(input, (struct slice){ 0 });
        return 0;
}
