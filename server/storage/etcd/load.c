/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loading reads ranges of each table, at the revision of the last transaction of this process.
 * Nobody else writes while this process leads, and it writes only the header meanwhile. So the
 * content of each later transaction is the same, and if a revision is compacted, or the member that
 * is read has not applied it, another renewal makes a readable one. A process that only reads does
 * not renew, and does not try again.
 *
 * The size of the ranges follows the size of what they contained. While the rows of one are loaded, etcd
 * reads the next one.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "protocol/wire.h"
#include "storage/etcd/internal.h"
#include "storage/stored_form.h"

#define PAGE_BYTES_MIN ((size_t)256 << 10) /* the next range is larger if one has less */
#define PAGE_BYTES_MAX ((size_t)1 << 20)   /* the next range is smaller if one has more */

#define FIRST_PARTS 64 /* the first range is this part of a table */

struct etcd_load {
        struct etcd_storage *storage;
        const struct storage_sink *sink;
};

/* 1. Rows */

/* Return whether the row is within the limits in the header. */
static bool is_within_limits(const struct etcd_load *load, const struct row *row) {
        const struct etcd_header *header = &load->storage->header;

        return storage_may_have(&header->state, row) &&
               (row->type != ROW_REPLY || row->reply.number <= header->last_reply);
}

/* Return whether the row is removed, although a later one of its list is not. */
static bool is_removed(const struct etcd_load *load, const struct row *row) {
        return (row->type == ROW_REPLY && row->reply.number <= load->storage->header.forgotten_up_to) ||
               (row->type == ROW_NOTIFICATION &&
                row->notification.sequence <= load->storage->header.acknowledged);
}

/*
 * Pass the rows of a value to the sink. Returns 0, -EBADMSG if the value is damaged, or the error of the
 * sink.
 */
static int load_key(const struct etcd_load *load, enum row_type type, const Etcd__KeyValue *stored) {
        CLEANUP(buf_deinit) struct buf expected = { 0 };
        struct etcd_storage *storage = load->storage;
        struct slice key = etcd_slice(stored->key), content;
        struct wire_reader reader;
        struct row row;
        int r;

        if (etcd_value_open(key, etcd_slice(stored->value), &content) < 0)
                return -EBADMSG;
        reader = (struct wire_reader){ .rest = content };
        do {
                r = stored_row_read(wire_read_blob(&reader), type, &row);
                if (r < 0 || !is_within_limits(load, &row))
                        return -EBADMSG;
                if (type == ROW_EXECUTION)
                        storage->executions[executions_place(row.execution.number)] = row.execution;
                if (!is_removed(load, &row))
                        r = load->sink->row(load->sink->userdata, &row);
        } while (r == 0 && reader.rest.length > 0);
        if (r < 0)
                return r;

        /* The key is that of the last row. */
        etcd_key_append(&expected, storage->config.prefix, &storage->header.state.row_hash_key, &row);
        if (buf_failed(&expected))
                return -ENOMEM;
        return slice_equal(key, buf_slice(&expected)) ? 0 : -EBADMSG;
}

/* 2. Ranges */

/* A range of the numbers of a table, or of the beginnings of digests. */
struct number_range {
        uint64_t first, last;
};

/* The request of a range, and the bytes that it borrows. */
struct range_request {
        Etcd__RangeRequest request;
        struct buf from, end;
};

static void range_request_deinit(struct range_request *range_request) {
        buf_deinit(&range_request->from);
        buf_deinit(&range_request->end);
}

/*
 * Make the request of the range at the revision of the last transaction; to read only, of the header's
 * reading. Returns 0 or -ENOMEM.
 */
static int range_request_init(struct range_request *range_request, const struct etcd_load *load,
                              enum row_type type, struct number_range range) {
        const char *prefix = load->storage->config.prefix;
        Etcd__RangeRequest *request = &range_request->request;

        etcd_key_append_number(&range_request->from, prefix, type, range.first);
        if (range.last == UINT64_MAX)
                etcd_key_append_end(&range_request->end, prefix, type);
        else
                etcd_key_append_number(&range_request->end, prefix, type, range.last + 1);
        if (buf_failed(&range_request->from) || buf_failed(&range_request->end))
                return -ENOMEM;

        etcd__range_request__init(request);
        request->key = etcd_bytes(buf_slice(&range_request->from));
        request->range_end = etcd_bytes(buf_slice(&range_request->end));
        request->revision = (int64_t)load->storage->header.holder.mod_revision;
        request->serializable = !load->storage->config.read_only;
        return 0;
}

/* Returns as etcd_call(). */
static int try_range(const struct etcd_load *load, enum row_type type, struct number_range range,
                     const Etcd__RangeResponse **ret_response) {
        CLEANUP(range_request_deinit) struct range_request range_request = { 0 };
        int r = range_request_init(&range_request, load, type, range);

        return r < 0 ? r
                     : etcd_call(load->storage->client, ETCD_RANGE, &range_request.request.base,
                                 (const ProtobufCMessage **)ret_response);
}

/* Let etcd read the range that is read next. */
static void read_range_ahead(const struct etcd_load *load, enum row_type type, struct number_range range) {
        CLEANUP(range_request_deinit) struct range_request range_request = { 0 };

        if (range_request_init(&range_request, load, type, range) == 0)
                etcd_call_ahead(load->storage->client, ETCD_RANGE, &range_request.request.base);
}

static bool renewal_is_due(const struct etcd_storage *storage) {
        const struct election_header *holder = &storage->header.holder;

        return !storage->config.read_only &&
               system_clock_boot_ns() > election_renewal_ns(holder->lease_ns, holder->sent_ns);
}

/*
 * Read the range. After a failure, a leader renews the lease if that is due, or if the revision is not
 * readable. Returns 0, an error of storage_load(), or -EMSGSIZE: the range is too large, or it may be, as a
 * leader got no reply in time.
 */
static int read_range(const struct etcd_load *load, enum row_type type, struct number_range range,
                      const Etcd__RangeResponse **ret_response) {
        struct etcd_storage *storage = load->storage;
        bool leads = !storage->config.read_only;
        int r;

        for (;;) {
                etcd_storage_report_alive(storage);
                r = try_range(load, type, range, ret_response);
                if (r == 0 || r == -EMSGSIZE || r == -ENOMEM)
                        return r;
                etcd_storage_log_failure(storage, "cannot load");
                if (!leads || r == -EINVAL || r == -EACCES)
                        return -EIO;
                etcd_storage_pause(storage);
                if ((r == -ERANGE || renewal_is_due(storage)) && etcd_storage_renew(storage, false) < 0)
                        return -EIO;
                if (r == -ETIMEDOUT && range.first < range.last)
                        return -EMSGSIZE;
        }
}

static int load_key_logged(const struct etcd_load *load, enum row_type type, const Etcd__KeyValue *stored) {
        int r = load_key(load, type, stored);

        if (r == -EBADMSG)
                log_error("cannot load from etcd: the value of the key \"%s\" is damaged",
                          LOG_TEXT(etcd_slice(stored->key)));
        return r;
}

static size_t bytes_of(const Etcd__RangeResponse *response) {
        size_t n_bytes = 0;

        for (size_t i = 0; i < response->n_kvs; i++)
                n_bytes += response->kvs[i]->value.len;
        return n_bytes;
}

/* Return a number of numbers that is better for the next range: for less bytes, or for more. */
static uint64_t adapt_length(uint64_t length, const Etcd__RangeResponse *response) {
        size_t n_bytes = bytes_of(response);

        if (n_bytes < PAGE_BYTES_MIN && length <= UINT64_MAX / 2)
                return length * 2;
        return n_bytes > PAGE_BYTES_MAX && length > 1 ? length / 2 : length;
}

static struct number_range range_from(uint64_t first, uint64_t length, uint64_t last) {
        return (struct number_range){ first, last - first < length ? last : first + length - 1 };
}

static int load_rows(const struct etcd_load *load, enum row_type type, const Etcd__RangeResponse *response) {
        int r = 0;

        for (size_t i = 0; i < response->n_kvs && r == 0; i++)
                r = load_key_logged(load, type, response->kvs[i]);
        return r;
}

static int load_table(const struct etcd_load *load, enum row_type type, struct number_range all) {
        uint64_t length = (all.last - all.first) / FIRST_PARTS + 1;
        struct number_range range = range_from(all.first, length, all.last);
        const Etcd__RangeResponse *response;
        bool is_last = false, is_due;
        int r;

        while (!is_last) {
                r = read_range(load, type, range, &response);
                is_due = renewal_is_due(load->storage);
                if (r == -EMSGSIZE && length > 1) {
                        length /= 2;
                        range = range_from(range.first, length, all.last);
                } else if (r == -EMSGSIZE) {
                        etcd_storage_log_failure(load->storage, "cannot load");
                        return -EIO;
                } else if (r < 0) {
                        return r;
                } else {
                        is_last = range.last == all.last;
                        length = adapt_length(length, response);
                        if (!is_last)
                                range = range_from(range.last + 1, length, all.last);
                        if (!is_last && !is_due) /* the renewal would drop it */
                                read_range_ahead(load, type, range);
                        r = load_rows(load, type, response);
                        if (r < 0)
                                return r;
                }
                if (is_due && etcd_storage_renew(load->storage, false) < 0)
                        return -EIO;
        }
        return 0;
}

int etcd_storage_load(struct storage *base, const struct storage_sink *sink) {
        struct etcd_storage *storage = (struct etcd_storage *)base;
        struct etcd_load load = { .storage = storage, .sink = sink };
        const struct etcd_header *header = &storage->header;
        const struct number_range ranges[N_ROW_TYPES] = {
                [ROW_ENTRY] = { 0, UINT64_MAX },
                [ROW_REGISTRATION] = { 0, UINT64_MAX },
                [ROW_REPLY] = { header->forgotten_up_to + 1, header->last_reply },
                [ROW_EXECUTION] = { 0, EXECUTIONS_PLACES - 1 },
                [ROW_NOTIFICATION] = { header->acknowledged + 1, header->state.notification_sequence },
        };
        int r;

        memset(storage->executions, 0, sizeof(storage->executions));
        r = sink->header(sink->userdata, &header->state);
        for (size_t i = 0; i < N_ROW_TYPES && r == 0; i++)
                if (ranges[i].first <= ranges[i].last)
                        r = load_table(&load, (enum row_type)i, ranges[i]);
        return r;
}
