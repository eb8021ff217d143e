/* SPDX-License-Identifier: Apache-2.0 */

/* Messages of the plugin: WELCOME, and the identity properties of a request. */

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "pipeline/verification.h"
#include "protocol/companion_hello.h"
#include "protocol/companion_mac.h"

static int compare(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* Parse line by line. Return whether all lines are valid; append the connections to the buffer. */
static bool reference(struct slice text, struct buf *numbers) {
        struct slice line;
        uint64_t number;
        size_t n_lines = 0;

        if (text.length < COMPANION_KEY_SIZE || text.data[text.length - 1] != '\n')
                return false;
        text.data += COMPANION_KEY_SIZE;
        text.length -= COMPANION_KEY_SIZE;
        for (; text.length > 0; n_lines++) {
                line = slice_split(text, '\n', &text);
                if (n_lines == 1 && !slice_equal(line, SLICE_LITERAL("guarded")) &&
                    !slice_equal(line, SLICE_LITERAL("unguarded")))
                        return false;
                if (n_lines != 1 && parse_uint64(line, &number) < 0)
                        return false;
                if (n_lines > 2)
                        buf_append(numbers, &number, sizeof(number));
        }
        if (numbers->length > 0)
                qsort(numbers->data, numbers->length / sizeof(number), sizeof(number), compare);
        return n_lines >= 3;
}

static void read_welcome(struct slice text) {
        CLEANUP(buf_deinit) struct buf expected = { 0 };
        CLEANUP(companion_welcome_deinit) struct companion_welcome welcome = { 0 };
        bool is_welcome = reference(text, &expected);

        ASSERT(companion_welcome_read(text, &welcome) == (is_welcome ? 0 : -EBADMSG));
        ASSERT(!is_welcome ||
               slice_equal((struct slice){ (uint8_t *)welcome.connections,
                                           welcome.n_connections * sizeof(*welcome.connections) },
                           buf_slice(&expected)));
}

/*
 * A message whose user properties are lines: the first byte chooses the name, the rest is the
 * value.
 */
static void check_identity(struct slice input) {
        static const char *const names[] = { COMPANION_PROPERTY_MAC, COMPANION_PROPERTY_CLIENT_ID,
                                             COMPANION_PROPERTY_USERNAME, "__srcId" };
        struct companion_key_states key_states = { .present = { .is_known = true } };
        struct message message = { .payload = input };
        struct companion_request request = { 0 };
        struct companion_mac mac;
        bool is_readable;

        while (input.data && message.n_user_properties < MESSAGE_USER_PROPERTIES_MAX) {
                struct slice line = slice_split(input, '\n', &input);
                size_t name = input_below(&line, 4);

                message.user_properties[message.n_user_properties++] =
                        (struct user_property){ slice_from_string(names[name]), line };
        }
        ASSERT(verification_check(&key_states, &message, true) ==
               VERIFICATION_FAILED); /* no input has a valid MAC */

        is_readable = companion_mac_read(message_property(&message, COMPANION_PROPERTY_MAC), &request) == 0;
        request.client_id = message_property(&message, COMPANION_PROPERTY_CLIENT_ID);
        request.username = message_property(&message, COMPANION_PROPERTY_USERNAME);
        request.payload = message.payload;
        request.properties = message.properties_digest;
        mac = companion_mac_compute(&request, key_states.present.key);
        for (size_t i = 0; i < message.n_user_properties; i++)
                if (slice_equal(message.user_properties[i].name, SLICE_LITERAL(COMPANION_PROPERTY_MAC)))
                        message.user_properties[i].value =
                                (struct slice){ (const uint8_t *)mac.text, mac.length };
        if (is_readable && request.connection > 0 && request.client_id.length > 0)
                ASSERT(verification_check(&key_states, &message, true) ==
                       (request.sequence > 0 ? VERIFICATION_PASSED : VERIFICATION_REPEATED));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = { data, size };

        read_welcome(input);
        check_identity(input);
        return 0;
}
