/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Without TLS, libcurl has two ways to HTTP/2. PRIOR_KNOWLEDGE begins a connection with it, but
 * libcurl 7.88 fails a second request on that connection (curl #10634). 2TLS reuses a connection
 * that has HTTP/2, but begins a new one with HTTP/1.1. So the first request of a connection uses
 * PRIOR_KNOWLEDGE, the others 2TLS. If libcurl then makes a new connection, because the old one has
 * ended, etcd answers by HTTP/1.1 "404": the call fails, and the next one begins another
 * connection.
 *
 * If a reused connection ends before a reply, libcurl sends the request again on a new one by
 * itself. The first copy may be executed, so an error on a new connection in place of a reused one
 * leaves the outcome open, and so does a failure to make the new one.
 *
 * There is no grpc-timeout: etcd would cancel a transaction without undoing it. The time-out is of
 * this client, and ends the connection, so that a peer that has ended silently is not used again.
 * It is not libcurl's, which would count from the sending, and drop a reply that waits to be read.
 */

#include "etcd/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "etcd/grpc.h"
#include "etcd/response.h"

/*
 * libcurl 7.88 reads 32 KiB at a time from an HTTP/2 connection. With its default buffer of 16 KiB
 * it sometimes waits for more from etcd although it has unread bytes, until the time-out.
 */
#define BUFFER_BYTES 65536L

static const struct {
        const char *path;
        const ProtobufCMessageDescriptor *response;
} methods[N_ETCD_METHODS] = {
        [ETCD_RANGE] = { "/etcdserverpb.KV/Range", &etcd__range_response__descriptor },
        [ETCD_TXN] = { "/etcdserverpb.KV/Txn", &etcd__txn_response__descriptor },
        [ETCD_COMPACTION] = { "/etcdserverpb.KV/Compact", &etcd__compaction_response__descriptor },
        [ETCD_AUTHENTICATE] = { "/etcdserverpb.Auth/Authenticate",
                                &etcd__authenticate_response__descriptor },
        [ETCD_MEMBER_LIST] = { "/etcdserverpb.Cluster/MemberList", &etcd__member_list_response__descriptor },
        [ETCD_STATUS] = { "/etcdserverpb.Maintenance/Status", &etcd__status_response__descriptor },
};

/*
 * Why calls failed at an endpoint. One fault can have several texts by turns: if etcd refuses a certificate,
 * libcurl notices it at different times.
 */
#define FAULTS_FORGET_MS (10 * 60 * MS_PER_S)
struct endpoint_faults {
        int64_t forget_ms;
        char logged[512]; /* each between two ends of line, without its digits, such as milliseconds */
};

struct etcd_client {
        struct etcd_config config;
        size_t current; /* endpoint of the last call */
        size_t next;    /* endpoint of the next one */
        size_t used;    /* endpoint of the last call that succeeded; at first, the first one */
        struct endpoint_faults *faults; /* of each endpoint */
        struct log_limit log_limit;
        CURLM *connection; /* NULL: none */
        CURL *curl;        /* the exchange on the connection */
        bool is_reused;    /* the connection has had a request */
        char *token;       /* NULL: none yet */
        struct curl_slist *headers;
        enum etcd_method method; /* of the request */
        struct buf request, body;
        bool is_sent;      /* the request, and its reply is not received */
        bool is_too_large; /* the reply */
        struct grpc_status status;
        char curl_reason[CURL_ERROR_SIZE];
        struct etcd_response response;
};

int etcd_client_new(struct etcd_client **ret_client, const struct etcd_config *config) {
        struct etcd_client *client = calloc(1, sizeof(*client));

        if (client)
                client->faults = calloc(config->n_endpoints, sizeof(*client->faults));
        if (!client || !client->faults) {
                free(client);
                return -ENOMEM;
        }
        client->config = *config;
        *ret_client = client;
        return 0;
}

static void disconnect(struct etcd_client *client) {
        if (client->is_sent)
                curl_multi_remove_handle(client->connection, client->curl);
        curl_easy_cleanup(client->curl);
        curl_multi_cleanup(client->connection);
        client->curl = NULL;
        client->connection = NULL;
        client->is_reused = client->is_sent = false;
}

struct etcd_client *etcd_client_free(struct etcd_client *client) {
        if (!client)
                return NULL;

        disconnect(client);
        curl_slist_free_all(client->headers);
        buf_deinit(&client->request);
        buf_deinit(&client->body);
        etcd_response_deinit(&client->response);
        free(client->token);
        free(client->faults);
        free(client);
        return NULL;
}

bool etcd_is_refused(int error) {
        return error == -ENOTCONN || error == -EINVAL || error == -EACCES || error == -ERANGE;
}

const char *etcd_client_endpoint(const struct etcd_client *client) {
        return client->config.endpoints[client->current];
}

const char *etcd_client_reason(const struct etcd_client *client) {
        return client->curl_reason[0] ? client->curl_reason : client->status.message;
}

ProtobufCBinaryData etcd_bytes(struct slice bytes) {
        return (ProtobufCBinaryData){ .len = bytes.length, .data = (uint8_t *)bytes.data };
}

struct slice etcd_slice(ProtobufCBinaryData bytes) {
        return (struct slice){ bytes.data, bytes.len };
}

/* 1. One exchange */

static size_t receive_header(char *line, size_t size, size_t n, void *userdata) {
        struct etcd_client *client = userdata;

        grpc_read_header(&client->status, (struct slice){ (const uint8_t *)line, size * n });
        return size * n;
}

static size_t receive_body(char *bytes, size_t size, size_t n, void *userdata) {
        struct etcd_client *client = userdata;
        size_t length = size * n;

        client->is_too_large = length > client->config.max_reply_bytes ||
                               client->body.length > client->config.max_reply_bytes - length;
        if (client->is_too_large)
                return 0;
        buf_append(&client->body, bytes, length);
        return buf_failed(&client->body) ? 0 : length;
}

static int connect_to_endpoint(struct etcd_client *client) {
        const struct etcd_config *config = &client->config;
        CURL *curl = curl_easy_init();

        client->connection = curl_multi_init();
        client->curl = curl;
        if (!curl || !client->connection)
                return -ENOMEM;

        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        /* Do not wait for a name server after the time-out: the thread that asks it ends later. */
        curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)config->timeout_ms); /* of all addresses */
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->curl_reason);
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, receive_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, client);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive_body);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, client);
        if (config->ca_file) {
                curl_easy_setopt(curl, CURLOPT_CAINFO, config->ca_file);
                curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); /* the default has those of the system */
        }
        if (config->certificate_file) {
                curl_easy_setopt(curl, CURLOPT_SSLCERT, config->certificate_file);
                curl_easy_setopt(curl, CURLOPT_SSLKEY, config->key_file);
        }
        return 0;
}

/* Returns 0 or -ENOMEM. */
static int add_header(struct etcd_client *client, const char *name, const char *value) {
        CLEANUP(cleanup_free) char *line = NULL;
        struct curl_slist *longer;

        if (asprintf(&line, "%s: %s", name, value) < 0)
                return -ENOMEM;
        longer = curl_slist_append(client->headers, line);
        if (!longer)
                return -ENOMEM;
        client->headers = longer;
        return 0;
}

/* "hasleader": a member without a leader refuses at once, instead of waiting for one. */
static int set_headers(struct etcd_client *client) {
        int r;

        curl_slist_free_all(client->headers);
        client->headers = NULL;
        r = add_header(client, "content-type", "application/grpc");
        if (r == 0)
                r = add_header(client, "te", "trailers");
        if (r == 0)
                r = add_header(client, "hasleader", "true");
        if (r == 0 && client->token)
                r = add_header(client, "token", client->token);
        return r;
}

/* Return the error of a request that failed with this code. */
static int error_of_request(const struct etcd_client *client, CURLcode code) {
        long n_sent = 0; /* bytes, over the connection before */

        switch (code) {
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_CONNECT:
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
                curl_easy_getinfo(client->curl, CURLINFO_REQUEST_SIZE, &n_sent);
                return n_sent > 0 ? -ETIMEDOUT : -ENOTCONN;
        case CURLE_WRITE_ERROR:
                return client->is_too_large ? -EMSGSIZE : -ENOMEM;
        case CURLE_OUT_OF_MEMORY:
                return -ENOMEM;
        default:
                return -ETIMEDOUT;
        }
}

struct request_buffer {
        ProtobufCBuffer base;
        struct buf *buf;
};

static void append_packed(ProtobufCBuffer *base, size_t length, const uint8_t *bytes) {
        buf_append(((struct request_buffer *)base)->buf, bytes, length);
}

static int pack(struct buf *buf, const ProtobufCMessage *request) {
        struct request_buffer buffer = { .base = { .append = append_packed }, .buf = buf };

        buf_reset(buf);
        grpc_append_prefix(buf, protobuf_c_message_get_packed_size(request));
        protobuf_c_message_pack_to_buffer(request, &buffer.base);
        return buf_failed(buf) ? -ENOMEM : 0;
}

/* Name a reason that libcurl and etcd do not name. */
static void complete_reason(struct etcd_client *client, int error) {
        if (error == -EMSGSIZE || !*etcd_client_reason(client))
                snprintf(client->curl_reason, sizeof(client->curl_reason), "%s",
                         error == -EMSGSIZE ? "the reply is too large"
                         : error == -ENOMEM ? "out of memory"
                                            : "the reply has no valid content");
}

/*
 * Begin to send the request to the present endpoint, over the present connection if there is one. Returns
 * 0 or -ENOMEM.
 */
static int send_request(struct etcd_client *client, enum etcd_method method,
                        const ProtobufCMessage *request) {
        CLEANUP(cleanup_free) char *url = NULL;
        bool is_tls = strncmp(etcd_client_endpoint(client), "https:", strlen("https:")) == 0;
        int r;

        buf_reset(&client->body);
        client->status = (struct grpc_status){ 0 };
        client->curl_reason[0] = '\0';
        client->method = method;
        r = pack(&client->request, request);
        if (r == 0 && asprintf(&url, "%s%s", etcd_client_endpoint(client), methods[method].path) < 0)
                r = -ENOMEM;
        if (r == 0)
                r = set_headers(client);
        if (r == 0 && !client->connection)
                r = connect_to_endpoint(client);
        if (r < 0)
                return r;

        curl_easy_setopt(client->curl, CURLOPT_URL, url);
        curl_easy_setopt(client->curl, CURLOPT_HTTP_VERSION,
                         is_tls || client->is_reused ? CURL_HTTP_VERSION_2TLS
                                                     : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
        curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, client->headers);
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, client->request.data);
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)client->request.length);
        if (curl_multi_add_handle(client->connection, client->curl) != CURLM_OK)
                return -ENOMEM;
        client->is_sent = true;
        return 0;
}

/* Wait for the end of the exchange, or until the time-out. Returns how it ended. */
static CURLcode wait_for_reply(struct etcd_client *client) {
        int64_t end_ms = system_clock_mono_ms() + client->config.timeout_ms, left_ms;
        CURLcode code = CURLE_OPERATION_TIMEDOUT;
        const CURLMsg *message;
        int n_running, n_messages;
        CURLMcode r;

        for (;;) {
                r = curl_multi_perform(client->connection, &n_running);
                left_ms = end_ms - system_clock_mono_ms();
                if (r != CURLM_OK || n_running == 0 || left_ms <= 0)
                        break;
                r = curl_multi_poll(client->connection, NULL, 0, (int)left_ms, NULL);
                if (r != CURLM_OK)
                        break;
        }
        message = curl_multi_info_read(client->connection, &n_messages);
        if (message)
                code = message->data.result;
        else if (r != CURLM_OK)
                code = CURLE_OUT_OF_MEMORY;
        curl_multi_remove_handle(client->connection, client->curl);
        client->is_sent = false;
        return code;
}

/* Receive the reply to the request that was sent. Returns as etcd_call(). */
static int receive_reply(struct etcd_client *client) {
        CURLcode code = wait_for_reply(client);
        long n_connects = 0;
        int r;

        if (code == CURLE_OK)
                client->curl_reason[0] = '\0'; /* of a connection before */
        else if (!client->curl_reason[0])
                snprintf(client->curl_reason, sizeof(client->curl_reason), "%s", curl_easy_strerror(code));
        curl_easy_getinfo(client->curl, CURLINFO_NUM_CONNECTS, &n_connects);
        r = code == CURLE_OK ? grpc_status_error(&client->status) : error_of_request(client, code);
        if (r < 0 && client->is_reused && n_connects > 0)
                r = -ETIMEDOUT; /* libcurl may have sent the request twice */
        client->is_reused = true;
        return r;
}

/* Return whether client->request is a request of this method with these fields. */
static bool is_same_request(const struct etcd_client *client, enum etcd_method method,
                            const ProtobufCMessage *request) {
        CLEANUP(buf_deinit) struct buf packed = { 0 };

        return method == client->method && pack(&packed, request) == 0 &&
               slice_equal(buf_slice(&packed), buf_slice(&client->request));
}

/*
 * Call the method at the present endpoint, over the present connection if there is one. Takes the reply to
 * a request that was sent ahead.
 */
static int exchange(struct etcd_client *client, enum etcd_method method, const ProtobufCMessage *request,
                    const ProtobufCMessage **ret_response) {
        int r = 0;

        if (client->is_sent && !is_same_request(client, method, request))
                disconnect(client);
        if (!client->is_sent)
                r = send_request(client, method, request);
        if (r == 0)
                r = receive_reply(client);
        if (r == 0)
                r = etcd_response_unpack(&client->response, buf_slice(&client->body),
                                         methods[method].response);
        if (r == 0)
                *ret_response = client->response.message;
        else
                complete_reason(client, r);
        return r;
}

/* 2. Tokens and endpoints */

/*
 * Get a token for the user. Returns as etcd_call(); an open outcome is none, as nothing is stored.
 */
static int authenticate(struct etcd_client *client) {
        const struct etcd_config *config = &client->config;
        Etcd__AuthenticateRequest request = ETCD__AUTHENTICATE_REQUEST__INIT;
        const ProtobufCMessage *response;
        int r;

        free(client->token);
        client->token = NULL;
        request.name = (char *)config->user;
        request.password = config->password ? (char *)config->password : "";
        r = exchange(client, ETCD_AUTHENTICATE, &request.base, &response);
        if (r < 0)
                return etcd_is_refused(r) || r == -ENOMEM ? r : -ENOTCONN;

        client->token = strdup(((const Etcd__AuthenticateResponse *)response)->token);
        return client->token ? 0 : -ENOMEM;
}

/* Return whether the call may succeed at another endpoint. */
static bool may_succeed_elsewhere(const struct etcd_client *client, int error) {
        switch (error) {
        case -ENOTCONN:
        case -ETIMEDOUT:
        case -EBADMSG:
        case -EINVAL: /* perhaps this is no etcd */
                return true;
        case -EACCES: /* without a token: the user or the password, not what the user may do */
                return client->config.user && !client->token;
        default:
                return false;
        }
}

static void copy_without_digits(char *copy, size_t size, const char *text) {
        size_t length = 0;

        for (; *text && length + 1 < size; text++)
                if (*text < '0' || *text > '9')
                        copy[length++] = *text;
        copy[length] = '\0';
}

/* Log why a call failed at this endpoint, unless it was logged some minutes ago. */
static void log_fault(struct etcd_client *client) {
        struct endpoint_faults *faults = &client->faults[client->current];
        int64_t now_ms = system_clock_mono_ms();
        char reason[LOG_TEXT_MAX], line[LOG_TEXT_MAX + 2];
        bool is_forgotten = now_ms >= faults->forget_ms;

        copy_without_digits(reason, sizeof(reason), etcd_client_reason(client));
        snprintf(line, sizeof(line), "\n%s\n", reason);
        if (!is_forgotten && strstr(faults->logged, line))
                return;
        if (is_forgotten || strlen(faults->logged) + strlen(line) >= sizeof(faults->logged))
                *faults = (struct endpoint_faults){ .forget_ms = now_ms + FAULTS_FORGET_MS };
        strcat(faults->logged, line);
        log_limited(&client->log_limit, LOG_WARNING, "etcd %s failed: %s",
                    LOG_STRING(etcd_client_endpoint(client)), LOG_STRING(etcd_client_reason(client)));
}

/* Log that another endpoint is used than before. What fails there from now on is new. */
static void log_use(struct etcd_client *client) {
        client->used = client->current;
        client->faults[client->used] = (struct endpoint_faults){ 0 };
        log_limited(&client->log_limit, LOG_INFO, "etcd %s is used",
                    LOG_STRING(etcd_client_endpoint(client)));
}

/* Call the method at the present endpoint, with a token if there is a user. Returns as etcd_call(). */
static int exchange_as_user(struct etcd_client *client, enum etcd_method method,
                            const ProtobufCMessage *request, const ProtobufCMessage **ret_response) {
        int r = 0;

        if (!client->config.user)
                return exchange(client, method, request, ret_response);
        if (!client->token)
                r = authenticate(client);
        if (r == 0)
                r = exchange(client, method, request, ret_response);
        if (etcd_is_refused(r) && grpc_status_refuses_token(&client->status)) {
                r = authenticate(client);
                if (r == 0)
                        r = exchange(client, method, request, ret_response);
        }
        return r;
}

/* Call the method at one endpoint. Returns as etcd_call(). */
static int call_endpoint(struct etcd_client *client, enum etcd_method method,
                         const ProtobufCMessage *request, const ProtobufCMessage **ret_response) {
        bool logs = client->config.logs_faults, moves_on;
        int r;

        client->current = client->next;
        r = exchange_as_user(client, method, request, ret_response);
        moves_on = may_succeed_elsewhere(client, r);
        if (moves_on || (r < 0 && !client->status.is_known))
                disconnect(client);
        if (moves_on)
                client->next = (client->current + 1) % client->config.n_endpoints;
        if (logs && (moves_on || r == -EACCES))
                log_fault(client);
        if (logs && r == 0 && client->current != client->used)
                log_use(client);
        return r;
}

void etcd_call_ahead(struct etcd_client *client, enum etcd_method method, const ProtobufCMessage *request) {
        int n_running;

        if (client->is_reused && !client->is_sent && send_request(client, method, request) == 0)
                curl_multi_perform(client->connection, &n_running);
}

int etcd_call(struct etcd_client *client, enum etcd_method method, const ProtobufCMessage *request,
              const ProtobufCMessage **ret_response) {
        size_t first = client->next;
        int r;

        do
                r = call_endpoint(client, method, request, ret_response);
        while (etcd_is_refused(r) && client->next != client->current && client->next != first);
        return r;
}
