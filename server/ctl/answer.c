/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/answer.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/output.h"

/* The document dialect's "condition not met" is -1, which reads as an error of this text. */
static void unify_dialects(struct resp3_item *item) {
        if (item->type == RESP3_ERROR && slice_equal(item->text, SLICE_LITERAL("1")))
                *item = (struct resp3_item){ .type = RESP3_NUMBER, .number = -1 };
}

static void print_error(const char *prefix, struct slice text) {
        CLEANUP(buf_deinit) struct buf line = { 0 };

        buf_append_string(&line, prefix);
        append_printable(&line, text, false);
        buf_append_string(&line, "\n");
        if (!buf_failed(&line))
                fwrite(line.data, 1, line.length, stderr);
}

enum exit_code answer_read(const struct session_reply *reply, struct resp3_item *ret_item,
                           struct slice *ret_rest) {
        struct slice rest = reply->payload;
        struct resp3_item item;

        if (reply->fault.data) {
                print_error("statestorectl: the store answers with ", reply->fault);
                return EXIT_STORE_ERROR;
        }
        if (resp3_read(&rest, &item) < 0)
                return answer_is_unexpected(reply);

        unify_dialects(&item);
        if (item.type == RESP3_ERROR) {
                print_error("-", item.text);
                return EXIT_STORE_ERROR;
        }
        if (item.type != RESP3_ARRAY && rest.length > 0)
                return answer_is_unexpected(reply);

        *ret_item = item;
        *ret_rest = rest;
        return EXIT_DONE;
}

enum exit_code answer_is_unexpected(const struct session_reply *reply) {
        complain("the store answers with something that is no answer to this: \"%s\"",
                 LOG_TEXT(reply->payload));
        return EXIT_STORE_ERROR;
}

enum exit_code answer_get(struct session *session, const struct session_request *request,
                          struct session_reply *ret_reply, struct resp3_item *ret_item,
                          struct slice *ret_rest) {
        struct session_reply reply;
        enum exit_code code;

        if (session_request(session, request, &reply) != CONNECTION_OK) {
                complain("%s", session_problem(session));
                return EXIT_NO_ANSWER;
        }

        code = answer_read(&reply, ret_item, ret_rest);
        if (code == EXIT_DONE)
                *ret_reply = reply;
        return code;
}
