/* SPDX-License-Identifier: Apache-2.0 */

#include "control/journal.h"

#include <errno.h>

#include "base/json.h"
#include "protocol/resp3.h"

/* Requests with more words are written as a payload. */
#define WORDS_MAX 16

enum exchange_part { PART_CLIENT, PART_KEY, PART_PAYLOAD, PART_VERSION, PART_REPLY, N_PARTS };
#define PART_ABSENT SIZE_MAX

/* A record of the ring. */
struct exchange {
        int64_t wall_ms;
        enum verb verb;
        bool is_notification;
        const char *fault; /* name of the action; NULL: none */
        struct injected_fault injected;
        size_t lengths[N_PARTS]; /* PART_ABSENT: null in the line */
        uint8_t bytes[];         /* all parts */
};

/* Where the part begins in `bytes`: behind those before it. */
static size_t offset_of(const struct exchange *exchange, enum exchange_part part) {
        size_t offset = 0;

        for (int i = 0; i < (int)part; i++)
                offset += exchange->lengths[i] == PART_ABSENT ? 0 : exchange->lengths[i];
        return offset;
}

static struct slice part_of(const struct exchange *exchange, enum exchange_part part) {
        return exchange->lengths[part] == PART_ABSENT
                       ? (struct slice){ 0 }
                       : (struct slice){ exchange->bytes + offset_of(exchange, part),
                                         exchange->lengths[part] };
}

/* Copy a part behind those before it. The record has room for it. */
static void set_part(struct exchange *exchange, enum exchange_part part, struct slice bytes) {
        exchange->lengths[part] = bytes.data ? bytes.length : PART_ABSENT;
        if (bytes.length > 0)
                memcpy(exchange->bytes + offset_of(exchange, part), bytes.data, bytes.length);
}

uint64_t journal_add(struct ring *journal, const struct journal_entry *entry) {
        struct exchange *exchange =
                ring_add(journal, sizeof(*exchange) + entry->client.length + entry->key.length +
                                          entry->payload.length + entry->version.length);

        if (!exchange)
                return journal->last;
        exchange->wall_ms = entry->wall_ms;
        exchange->verb = entry->verb;
        exchange->is_notification = entry->is_notification;
        exchange->fault = entry->rule ? fault_action_name(entry->rule->action) : NULL;
        exchange->injected = (struct injected_fault){ journal->last, entry->rule, entry->connection };
        set_part(exchange, PART_CLIENT, entry->client);
        set_part(exchange, PART_KEY, entry->key);
        set_part(exchange, PART_PAYLOAD, entry->payload);
        set_part(exchange, PART_VERSION, entry->version);
        exchange->lengths[PART_REPLY] = PART_ABSENT;
        return journal->last;
}

struct injected_fault journal_fault_of(const struct ring *journal, uint64_t number) {
        const struct exchange *exchange = ring_find(journal, number);

        return exchange ? exchange->injected : (struct injected_fault){ 0 };
}

void journal_add_reply(struct ring *journal, uint64_t number, struct slice payload, struct slice version) {
        struct exchange *exchange = ring_find(journal, number);

        if (!exchange || exchange->lengths[PART_REPLY] != PART_ABSENT)
                return;
        exchange = ring_resize(journal, number,
                               sizeof(*exchange) + offset_of(exchange, PART_VERSION) + version.length +
                                       payload.length);
        if (!exchange)
                return;
        set_part(exchange, PART_VERSION, version);
        set_part(exchange, PART_REPLY, payload);
}

static bool is_exchange_selected(const struct exchange *exchange, const struct selection *selection,
                                 uint64_t *budget) {
        return selection_matches(selection, part_of(exchange, PART_CLIENT), exchange->verb,
                                 part_of(exchange, PART_KEY), budget);
}

/* Return the next selected exchange, and set *number, which was before it, to its number; NULL: none. */
static const struct exchange *next_exchange(const struct ring *journal, const struct selection *selection,
                                            uint64_t *number, uint64_t *budget) {
        if (*number < journal->before_oldest)
                *number = journal->before_oldest;
        while (*number < journal->last) {
                const struct exchange *exchange = ring_find(journal, ++*number);

                if (exchange && is_exchange_selected(exchange, selection, budget))
                        return exchange;
        }
        return NULL;
}

void journal_remove(struct ring *journal, const struct selection *selection, uint64_t *budget) {
        uint64_t number = 0;

        while (next_exchange(journal, selection, &number, budget))
                ring_remove(journal, number);
}

int journal_count(const struct ring *journal, const struct selection *selection, uint64_t after,
                  uint64_t *ret_n) {
        uint64_t budget = JOURNAL_STEPS_MAX, n = 0;

        while (next_exchange(journal, selection, &after, &budget))
                n++;
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

static void add_part(struct buf *line, const char *name, const struct exchange *exchange,
                     enum exchange_part part) {
        json_add_bytes(line, name, part_of(exchange, part), false);
}

static void write_exchange(const struct exchange *exchange, uint64_t number, struct buf *lines) {
        json_begin(lines);
        json_add_uint(lines, "number", number);
        json_add_uint(lines, "time", (uint64_t)exchange->wall_ms);
        add_part(lines, "client", exchange, PART_CLIENT);
        if (!exchange->is_notification)
                json_add_bytes(lines, "verb", verbs[exchange->verb].text, false);
        add_part(lines, "key", exchange, PART_KEY);
        if (exchange->is_notification) {
                bool is_set = exchange->lengths[PART_PAYLOAD] != PART_ABSENT;

                json_add_bytes(lines, "event", slice_from_string(is_set ? "SET" : "DELETE"), false);
                add_part(lines, "value", exchange, PART_PAYLOAD);
        } else {
                write_request(lines, part_of(exchange, PART_PAYLOAD));
                add_part(lines, "reply", exchange, PART_REPLY);
        }
        add_part(lines, "version", exchange, PART_VERSION);
        json_add_bytes(lines, "fault", slice_from_string(exchange->fault), false);
        json_end(lines);
}

int journal_write(const struct ring *journal, const struct selection *selection, uint64_t after,
                  struct buf *lines) {
        uint64_t budget = JOURNAL_STEPS_MAX;
        const struct exchange *exchange;

        while ((exchange = next_exchange(journal, selection, &after, &budget)))
                write_exchange(exchange, after, lines);
        return budget == 0 ? -ERANGE : 0;
}
