/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/requester.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

struct requester {
        struct requester *prev, *next;
        struct requesters *list; /* NULL: its end was reported */
        int64_t deadline_ns;
        struct inner_client client;
        struct slice client_id; /* followed by NUL */
        uint8_t text[];
};

int requester_new(struct requester **ret_requester, struct requesters *list,
                  const struct inner_client *client, int64_t deadline_ns) {
        const struct slice prefix = SLICE_LITERAL(INNER_CLIENT_PREFIX);
        struct requester *requester = malloc(sizeof(*requester) + prefix.length + client->user.length + 1);

        if (!requester)
                return -ENOMEM;

        *requester = (struct requester){ .list = list, .deadline_ns = deadline_ns, .client = *client };
        memcpy(requester->text, prefix.data, prefix.length);
        memcpy(requester->text + prefix.length, client->user.data, client->user.length);
        requester->client_id = (struct slice){ requester->text, prefix.length + client->user.length };
        requester->text[requester->client_id.length] = '\0';
        requester->client.user = slice_skip(requester->client_id, prefix.length);
        DL_APPEND(list->oldest, requester);
        *ret_requester = requester;
        return 0;
}

static void leave_list(struct requester *requester) {
        DL_DELETE(requester->list->oldest, requester);
        requester->list = NULL;
}

void requester_discard(struct requester *requester) {
        leave_list(requester);
        free(requester);
}

void requester_reply(struct requester *requester, const struct reply *reply, const struct message *message) {
        if (!requester->list)
                return;
        leave_list(requester);
        requester->client.ended(requester->client.userdata, reply, message);
}

void requester_free(struct requester *requester) {
        if (!requester)
                return;
        requester_reply(requester, NULL, NULL);
        free(requester);
}

bool requester_has_ended(const struct requester *requester) {
        return !requester->list;
}

struct slice requester_queue(const struct requester *requester) {
        return (struct slice){ requester->client_id.data, requester->client_id.length + 1 };
}

void requester_identify(const struct requester *requester, struct invocation *invocation) {
        struct request *request = &invocation->request;

        request->client = requester->client_id;
        request->user = requester->client.user;
        request->is_inner = true;
        request->version_condition = requester->client.version_condition;
        request->expected_version = requester->client.expected_version;
        if (request->verb != VERB_KEYNOTIFY)
                return;
        request->verb = VERB_UNKNOWN;
        invocation->outcome = OUTCOME_UNKNOWN_COMMAND;
}

void requesters_expire(struct requesters *list, int64_t now_ns) {
        while (list->oldest && list->oldest->deadline_ns <= now_ns)
                requester_reply(list->oldest, NULL, NULL);
}

int64_t requesters_next_deadline(const struct requesters *list) {
        return list->oldest ? list->oldest->deadline_ns : INT64_MAX;
}
