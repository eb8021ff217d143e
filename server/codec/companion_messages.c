/* SPDX-License-Identifier: Apache-2.0 */

#include "codec/companion_messages.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

void welcome_deinit(struct welcome *welcome) {
        free(welcome->connections);
}

/* Read the numbers of the tracked connections: one a line, each line ends with \n. */
static int read_connections(struct slice lines, struct welcome *welcome) {
        size_t capacity = 0;
        int r;

        while (lines.length > 0) {
                struct slice line = slice_split(lines, '\n', &lines);

                if (!lines.data)
                        return -EBADMSG;
                r = array_reserve((void **)&welcome->connections, &capacity, welcome->n_connections + 1,
                                  sizeof(*welcome->connections));
                if (r < 0)
                        return r;
                if (parse_uint64(line, &welcome->connections[welcome->n_connections]) < 0)
                        return -EBADMSG;
                welcome->n_connections++;
        }
        if (welcome->n_connections > 1)
                qsort(welcome->connections, welcome->n_connections, sizeof(*welcome->connections),
                      compare_uint64);
        return 0;
}

int welcome_read(struct slice text, struct welcome *ret_welcome) {
        CLEANUP(welcome_deinit) struct welcome welcome = { 0 };
        struct slice guard;
        int r;

        if (text.length < sizeof(welcome.key))
                return -EBADMSG;
        memcpy(welcome.key, text.data, sizeof(welcome.key));
        text.data += sizeof(welcome.key);
        text.length -= sizeof(welcome.key);

        if (parse_uint64(slice_split(text, '\n', &text), &welcome.sequence) < 0)
                return -EBADMSG;
        guard = slice_split(text, '\n', &text);
        welcome.is_guarded = slice_equal(guard, SLICE_LITERAL(COMPANION_GUARDED));
        welcome.may_change_client_id = !slice_equal(guard, SLICE_LITERAL(COMPANION_FIXED));
        if (!text.data || (!welcome.is_guarded && welcome.may_change_client_id &&
                           !slice_equal(guard, SLICE_LITERAL(COMPANION_UNGUARDED))))
                return -EBADMSG;
        if (parse_uint64(slice_split(text, '\n', &text), &welcome.delivered) < 0 || !text.data)
                return -EBADMSG;
        r = read_connections(text, &welcome);
        if (r < 0)
                return r;

        *ret_welcome = welcome;
        welcome.connections = NULL;
        return 0;
}
