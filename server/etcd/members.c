/* SPDX-License-Identifier: Apache-2.0 */

#include "etcd/members.h"

#include <errno.h>

#include "base/cleanup.h"

/* The list of hundreds of members, and the status of one with many errors. */
#define REPLY_BYTES_MAX 65536

CLEANUP_FUNCTION(cleanup_client, struct etcd_client *, etcd_client_free)

/* Complete the member, and pass it on. */
static int query_status(const struct etcd_config *common, struct etcd_member *member,
                        void (*take)(void *userdata, const struct etcd_member *member), void *userdata) {
        CLEANUP(cleanup_client) struct etcd_client *client = NULL;
        Etcd__StatusRequest request = ETCD__STATUS_REQUEST__INIT;
        struct etcd_config config = *common;
        const ProtobufCMessage *response;
        int r;

        config.endpoints = &member->address;
        config.n_endpoints = 1;
        config.user = NULL; /* etcd names the address, which may be without TLS */
        r = etcd_client_new(&client, &config);
        if (r == 0)
                r = etcd_call(client, ETCD_STATUS, &request.base, &response);
        if (r == -ENOMEM)
                return r;

        if (r < 0) {
                member->is_refused = r == -EACCES;
                member->reason = !*member->address    ? "has not been started yet"
                                 : member->is_refused ? "tells its status only to root"
                                                      : etcd_client_reason(client);
        } else {
                const Etcd__StatusResponse *status = (const Etcd__StatusResponse *)response;

                member->version = status->version;
                member->n_bytes = (uint64_t)status->db_size;
                member->n_bytes_in_use = (uint64_t)status->db_size_in_use;
                member->leads =
                        status->header && status->leader != 0 && status->leader == status->header->member_id;
                member->errors = (const char *const *)status->errors;
                member->n_errors = status->n_errors;
        }
        take(userdata, member);
        return 0;
}

static struct etcd_member from_list(const Etcd__Member *listed) {
        return (struct etcd_member){ .name = listed->name,
                                     .address = listed->n_client_urls > 0 ? listed->client_urls[0] : "",
                                     .is_learner = listed->is_learner };
}

/* Ask for the list, at the next endpoint if one does not reply as etcd does. Returns as etcd_call(). */
static int query_list(struct etcd_client *client, size_t n_endpoints,
                      const Etcd__MemberListResponse **ret_list) {
        Etcd__MemberListRequest request = ETCD__MEMBER_LIST_REQUEST__INIT;
        const ProtobufCMessage *response;
        int r = -ETIMEDOUT;

        for (size_t i = 0; i < n_endpoints && (r == -ETIMEDOUT || r == -EBADMSG); i++)
                r = etcd_call(client, ETCD_MEMBER_LIST, &request.base, &response);
        if (r == 0)
                *ret_list = (const Etcd__MemberListResponse *)response;
        return r;
}

int etcd_members_query(const struct etcd_config *config, bool asks_for_list,
                       void (*take)(void *userdata, const struct etcd_member *member), void *userdata) {
        CLEANUP(cleanup_client) struct etcd_client *client = NULL;
        const Etcd__MemberListResponse *list = NULL;
        struct etcd_config limited = *config;
        size_t n_members = config->n_endpoints;
        int r;

        limited.max_reply_bytes = REPLY_BYTES_MAX;
        limited.logs_faults = false; /* the caller shows them */
        r = etcd_client_new(&client, &limited);
        if (r == 0 && asks_for_list)
                r = query_list(client, config->n_endpoints, &list);
        if (list)
                n_members = list->n_members;
        for (size_t i = 0; i < n_members && r != -ENOMEM; i++) {
                struct etcd_member member = list ? from_list(list->members[i])
                                                 : (struct etcd_member){ .address = config->endpoints[i] };

                r = query_status(&limited, &member, take, userdata);
        }
        return r == -ENOMEM ? r : 0;
}
