/* SPDX-License-Identifier: Apache-2.0 */

#include "control/journal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "protocol/resp3.h"

/* Requests with more words are written as a payload. */
#define WORDS_MAX 16

struct exchange {
        struct journal_request request; /* its slices point into bytes */
        struct buf bytes;
        struct buf reply, version;
        bool has_reply;
};

static size_t exchange_size(const struct exchange *exchange) {
        return sizeof(*exchange) + exchange->bytes.length + exchange->reply.length +
               exchange->version.length;
}

static void exchange_free(struct exchange *exchange) {
        buf_deinit(&exchange->bytes);
        buf_deinit(&exchange->reply);
        buf_deinit(&exchange->version);
        free(exchange);
}

CLEANUP_FUNCTION(cleanup_exchange, struct exchange *, exchange_free)

static struct exchange **exchange_slot(const struct journal *journal, uint64_t index) {
        return &journal->exchanges[index % JOURNAL_SLOTS];
}

static void remove_exchange(struct journal *journal, struct exchange **exchange) {
        if (!*exchange)
                return;
        journal->n_bytes -= exchange_size(*exchange);
        exchange_free(*exchange);
        *exchange = NULL;
}

static void remove_first_exchange(struct journal *journal) {
        remove_exchange(journal, exchange_slot(journal, journal->first++));
}

/* Remove the oldest exchanges until the limits are met. The newest exchange always stays. */
static void enforce_limits(struct journal *journal) {
        while (journal->next - journal->first > JOURNAL_SLOTS - 1 ||
               (journal->n_bytes > JOURNAL_BYTES_MAX && journal->next - journal->first > 1))
                remove_first_exchange(journal);
}

void journal_clear(struct journal *journal) {
        while (journal->first < journal->next)
                remove_first_exchange(journal);
        journal->first = 0;
        journal->next = 0;
}

void journal_deinit(struct journal *journal) {
        journal_clear(journal);
        free(journal->exchanges);
        journal->exchanges = NULL;
}

/* Return the copy of the original in exchange->bytes, and advance *offset behind it. */
static struct slice copied_slice(const struct exchange *exchange, size_t *offset, struct slice original) {
        struct slice copy = { exchange->bytes.data + *offset, original.length };

        *offset += original.length;
        return original.data ? copy : original;
}

static struct exchange *exchange_new(const struct journal_request *request) {
        CLEANUP(cleanup_exchange) struct exchange *exchange = calloc(1, sizeof(*exchange));
        size_t offset = 0;

        if (!exchange)
                return NULL;

        buf_append_slice(&exchange->bytes, request->client);
        buf_append_slice(&exchange->bytes, request->key);
        buf_append_slice(&exchange->bytes, request->payload);
        buf_append(&exchange->bytes, "", 1); /* for empty fields: data NULL would mean absent */
        if (buf_failed(&exchange->bytes))
                return NULL;

        exchange->request = *request;
        exchange->request.client = copied_slice(exchange, &offset, request->client);
        exchange->request.key = copied_slice(exchange, &offset, request->key);
        exchange->request.payload = copied_slice(exchange, &offset, request->payload);
        return take_ptr(&exchange);
}

uint64_t journal_add(struct journal *journal, const struct journal_request *request) {
        struct exchange *exchange;

        if (!journal->exchanges)
                journal->exchanges = calloc(JOURNAL_SLOTS, sizeof(struct exchange *));
        exchange = journal->exchanges ? exchange_new(request) : NULL;
        if (!exchange)
                return 0;

        *exchange_slot(journal, journal->next++) = exchange;
        journal->n_bytes += exchange_size(exchange);
        enforce_limits(journal);
        return journal->next;
}

static struct exchange *find_exchange(const struct journal *journal, uint64_t number) {
        return number > journal->first && number <= journal->next ? *exchange_slot(journal, number - 1)
                                                                  : NULL;
}

void journal_add_reply(struct journal *journal, uint64_t number, struct slice payload,
                       struct slice version) {
        struct exchange *exchange = find_exchange(journal, number);

        if (!exchange || exchange->has_reply)
                return;

        journal->n_bytes -= exchange_size(exchange);
        buf_append_slice(&exchange->reply, payload);
        buf_append_slice(&exchange->version, version);
        exchange->has_reply = !buf_failed(&exchange->reply) && !buf_failed(&exchange->version);
        journal->n_bytes += exchange_size(exchange);
        enforce_limits(journal);
}

static bool is_exchange_selected(const struct exchange *exchange, const struct selection *selection,
                                 uint64_t *budget) {
        return exchange && selection_matches(selection, exchange->request.client, exchange->request.verb,
                                             exchange->request.key, budget);
}

void journal_remove(struct journal *journal, const struct selection *selection, uint64_t *budget) {
        for (uint64_t i = journal->first; i < journal->next; i++)
                if (is_exchange_selected(*exchange_slot(journal, i), selection, budget))
                        remove_exchange(journal, exchange_slot(journal, i));
}

static uint64_t first_index_after(const struct journal *journal, uint64_t after) {
        return after > journal->first ? after : journal->first;
}

int journal_count(const struct journal *journal, const struct selection *selection, uint64_t after,
                  uint64_t *ret_n) {
        uint64_t budget = JOURNAL_STEPS_MAX, n = 0;

        for (uint64_t i = first_index_after(journal, after); i < journal->next; i++)
                n += is_exchange_selected(*exchange_slot(journal, i), selection, &budget);
        if (budget == 0)
                return -ERANGE;

        *ret_n = n;
        return 0;
}

static bool are_words_text(const struct slice *words, size_t n_words) {
        for (size_t i = 0; i < n_words; i++)
                if (!slice_is_utf8(words[i]))
                        return false;
        return true;
}

static void write_request(struct buf *line, struct slice payload) {
        struct slice words[WORDS_MAX];
        size_t n_words;

        if (resp3_read_request(payload, words, WORDS_MAX, &n_words) < 0 || n_words > WORDS_MAX ||
            !are_words_text(words, n_words)) {
                json_add_bytes(line, "payload", payload, false);
                return;
        }
        json_add_name(line, "request");
        buf_append_string(line, "[");
        for (size_t i = 0; i < n_words; i++) {
                buf_append_string(line, i > 0 ? "," : "");
                json_append_string(line, words[i]);
        }
        buf_append_string(line, "]");
}

void journal_format_request(const struct exchange *exchange, struct buf *line) {
        const struct journal_request *request = &exchange->request;

        json_add_bytes(line, "verb", verbs[request->verb].text, false);
        json_add_bytes(line, "key", request->key, false);
        write_request(line, request->payload);
        json_add_bytes(line, "reply",
                       exchange->has_reply ? buf_slice(&exchange->reply) : (struct slice){ 0 }, false);
        json_add_bytes(line, "version",
                       exchange->version.length > 0 ? buf_slice(&exchange->version) : (struct slice){ 0 },
                       false);
}

void journal_format_notification(const struct exchange *exchange, struct buf *line) {
        const struct journal_request *request = &exchange->request;

        json_add_bytes(line, "key", request->key, false);
        json_add_bytes(line, "event", slice_from_string(request->verb == VERB_SET ? "SET" : "DELETE"),
                       false);
        json_add_bytes(line, "value", request->payload, false);
        json_add_bytes(line, "version", buf_slice(&exchange->version), false);
}

static void write_exchange(const struct exchange *exchange, uint64_t number, journal_format *format,
                           struct buf *lines) {
        const struct journal_request *request = &exchange->request;

        json_begin(lines);
        json_add_uint(lines, "number", number);
        json_add_uint(lines, "time", (uint64_t)request->wall_ms);
        json_add_bytes(lines, "client", request->client, false);
        format(exchange, lines);
        json_add_bytes(lines, "fault", slice_from_string(request->fault), false);
        json_end(lines);
}

int journal_write(const struct journal *journal, const struct selection *selection, uint64_t after,
                  journal_format *format, struct buf *lines) {
        uint64_t budget = JOURNAL_STEPS_MAX;

        for (uint64_t i = first_index_after(journal, after); i < journal->next; i++)
                if (is_exchange_selected(*exchange_slot(journal, i), selection, &budget))
                        write_exchange(*exchange_slot(journal, i), i + 1, format, lines);
        return budget == 0 ? -ERANGE : 0;
}
