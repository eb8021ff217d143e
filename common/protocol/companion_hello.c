/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/companion_hello.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"

/* 1. HELLO */

size_t companion_hello_write(const struct companion_hello *hello, uint8_t ret_payload[COMPANION_HELLO_MAX]) {
        ASSERT(hello->instance_id.length > 0 && hello->instance_id.length <= COMPANION_INSTANCE_MAX);

        memcpy(ret_payload, hello->key, COMPANION_KEY_SIZE);
        memcpy(ret_payload + COMPANION_KEY_SIZE, hello->instance_id.data, hello->instance_id.length);
        return COMPANION_KEY_SIZE + hello->instance_id.length;
}

int companion_hello_read(struct slice payload, struct companion_hello *ret_hello) {
        if (payload.length <= COMPANION_KEY_SIZE || payload.length > COMPANION_HELLO_MAX)
                return -EBADMSG;

        memcpy(ret_hello->key, payload.data, COMPANION_KEY_SIZE);
        ret_hello->instance_id = slice_skip(payload, COMPANION_KEY_SIZE);
        return 0;
}

/* 2. WELCOME */

#define GUARDED   "guarded"
#define UNGUARDED "unguarded"

static void append_number(struct buf *text, uint64_t number) {
        buf_append_uint(text, number);
        buf_append_string(text, "\n");
}

void companion_welcome_append(struct buf *text, const struct companion_welcome *welcome) {
        buf_append(text, welcome->mac_key, sizeof(welcome->mac_key));
        append_number(text, welcome->sequence);
        buf_append_string(text, welcome->is_guarded ? GUARDED "\n" : UNGUARDED "\n");
        append_number(text, welcome->delivered);
        for (size_t i = 0; i < welcome->n_connections; i++)
                append_number(text, welcome->connections[i]);
}

/* Remove the first line, which must end with \n, from the text. */
static int remove_line(struct slice *text, struct slice *ret_line) {
        *ret_line = slice_split(*text, '\n', text);
        return text->data ? 0 : -EBADMSG;
}

static int remove_number(struct slice *text, uint64_t *ret_number) {
        struct slice line;

        return remove_line(text, &line) == 0 && parse_uint64(line, ret_number) == 0 ? 0 : -EBADMSG;
}

static int remove_guard(struct slice *text, bool *ret_is_guarded) {
        struct slice line;

        if (remove_line(text, &line) < 0)
                return -EBADMSG;

        *ret_is_guarded = slice_equal(line, SLICE_LITERAL(GUARDED));
        return *ret_is_guarded || slice_equal(line, SLICE_LITERAL(UNGUARDED)) ? 0 : -EBADMSG;
}

static int read_connections(struct slice text, struct companion_welcome *welcome) {
        size_t capacity = 0;
        int r;

        while (text.length > 0) {
                r = array_reserve((void **)&welcome->connections, &capacity, welcome->n_connections + 1,
                                  sizeof(*welcome->connections));
                if (r == 0)
                        r = remove_number(&text, &welcome->connections[welcome->n_connections]);
                if (r < 0)
                        return r;
                welcome->n_connections++;
        }
        if (welcome->n_connections > 1)
                qsort(welcome->connections, welcome->n_connections, sizeof(*welcome->connections),
                      compare_uint64);
        return 0;
}

int companion_welcome_read(struct slice text, struct companion_welcome *ret_welcome) {
        CLEANUP(companion_welcome_deinit) struct companion_welcome welcome = { 0 };
        int r;

        if (text.length < sizeof(welcome.mac_key))
                return -EBADMSG;
        memcpy(welcome.mac_key, text.data, sizeof(welcome.mac_key));
        text = slice_skip(text, sizeof(welcome.mac_key));

        r = remove_number(&text, &welcome.sequence);
        if (r == 0)
                r = remove_guard(&text, &welcome.is_guarded);
        if (r == 0)
                r = remove_number(&text, &welcome.delivered);
        if (r == 0)
                r = read_connections(text, &welcome);
        if (r < 0)
                return r;

        *ret_welcome = welcome;
        welcome.connections = NULL;
        return 0;
}

void companion_welcome_deinit(struct companion_welcome *welcome) {
        free(welcome->connections);
}
