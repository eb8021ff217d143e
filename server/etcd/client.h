/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/bytes.h"
#include "etcd.pb-c.h"

/*
 * A client of etcd's API (gRPC). A call blocks, on one connection. Not thread-safe.
 *
 * etcd.proto has the messages. protoc-c generates a struct Etcd__NAME of each, and
 * ETCD__NAME__INIT.
 */
struct etcd_client;

/* Strings are borrowed until etcd_client_free(). NULL: not used. */
struct etcd_config {
        /* As "https://gateway-a:2379": at least one. Begin with the etcd of this machine. */
        const char *const *endpoints;
        size_t n_endpoints;
        const char *ca_file;                     /* PEM; NULL: the certificate authorities of the system */
        const char *certificate_file, *key_file; /* PEM; of this client */
        const char *user, *password;
        int64_t timeout_ms;     /* of a call at one endpoint: 1 to INT_MAX */
        size_t max_reply_bytes; /* a larger reply is not read: -EMSGSIZE */
        /*
         * Log why an endpoint fails, or refuses the user: each reason once in ten minutes while the same
         * endpoint is used. And log which other endpoint is used. Other errors are for the caller to log.
         */
        bool logs_faults;
};

/* Does not connect. Returns 0 or -ENOMEM. The caller owns *ret_client. */
int etcd_client_new(struct etcd_client **ret_client, const struct etcd_config *config);

/* Accepts NULL, returns NULL. */
struct etcd_client *etcd_client_free(struct etcd_client *client);

/* The request and the response of each are the messages with its name, as Etcd__RangeRequest. */
enum etcd_method {
        ETCD_RANGE,
        ETCD_TXN,
        ETCD_COMPACTION,
        ETCD_AUTHENTICATE, /* etcd_call() does it by itself if there is a user */
        ETCD_MEMBER_LIST,
        ETCD_STATUS, /* of the member that answers */
        N_ETCD_METHODS,
};

/*
 * Call a method. request: the `base` of its request. *ret_response is the `base` of its response,
 * valid until the next call.
 *
 * The client uses one endpoint until a call fails there that may succeed elsewhere: -ENOTCONN, -EINVAL,
 * -ETIMEDOUT, -EBADMSG, or -EACCES for the user or the password. Then it uses the next one in turn. A call
 * that certainly was not executed is repeated there at once. Another one is not: the caller decides.
 *
 * Returns 0, or an error. etcd has not executed the call, and will not:
 *
 *     -ENOTCONN   the endpoint accepts no connection, or knows no leader; a later call may succeed
 *     -EINVAL     etcd refused the request: malformed, or above a limit of etcd
 *     -EACCES     etcd refused the user, the password, or what the user may do
 *     -ERANGE     the revision is compacted, or this member has not applied it yet
 *
 * The outcome is open: etcd may have executed the call, or may still do so, even after later calls:
 *
 *     -ETIMEDOUT  no reply in time, or the connection or the leader was lost
 *     -ENOSPC     the database exceeds its quota. etcd reports this for a transaction that it has
 *                 executed, too, if it was the first above the quota
 *                 (etcd-io/etcd: server/etcdserver/apply/quota.go). This reply is the end of the
 *                 call: it is not executed later
 *     -EMSGSIZE   the reply is larger than max_reply_bytes
 *     -EBADMSG    the reply is malformed
 *     -ENOMEM     out of memory
 */
int etcd_call(struct etcd_client *client, enum etcd_method method, const ProtobufCMessage *request,
              const ProtobufCMessage **ret_response);

/*
 * Send the request of the next call now, so that etcd executes it while the caller does something else. The
 * response of the last call stays valid; etcd_client_reason() does not. The next etcd_call() with this
 * request returns what became of it. If the next call is another one, this request is dropped with its
 * connection, and its outcome is open: so only read ahead. Without a connection, behind another request
 * that was sent ahead, or without memory, nothing is sent, and etcd_call() sends the request.
 */
void etcd_call_ahead(struct etcd_client *client, enum etcd_method method, const ProtobufCMessage *request);

/*
 * Return whether this error of etcd_call() means that etcd has not executed the call, and will not.
 */
bool etcd_is_refused(int error);

/*
 * For log messages: the endpoint of the last call, or the last one that was tried, and what the call failed
 * with there; "" if it did not.
 */
const char *etcd_client_endpoint(const struct etcd_client *client);
const char *etcd_client_reason(const struct etcd_client *client);

/* The bytes as a field of a message. Borrowed. */
ProtobufCBinaryData etcd_bytes(struct slice bytes);
struct slice etcd_slice(ProtobufCBinaryData bytes);
