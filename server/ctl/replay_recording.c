/* SPDX-License-Identifier: Apache-2.0 */

#define HASH_NONFATAL_OOM 1

#include "ctl/replay_recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/input.h"
#include "protocol/resp3.h"

struct numbered_name {
        UT_hash_handle hh; /* the key is part of a recorded request */
        size_t number;
};

static void free_names(struct numbered_name *names) {
        struct numbered_name *name, *next;

        HASH_ITER(hh, names, name, next) {
                HASH_DEL(names, name);
                free(name);
        }
}

void request_recording_deinit(struct request_recording *recording) {
        free_names(recording->clients);
        free_names(recording->response_topics);
        for (size_t i = 0; i < recording->n_requests; i++) {
                recorded_deinit(&recording->requests[i].request);
                recorded_deinit(&recording->requests[i].reply);
        }
        free(recording->requests);
        free(recording->waiting);
        buf_deinit(&recording->text);
}

/* Return the number of a name; add the name if it is new. The table refers to the bytes of the name. */
static int number_name(struct numbered_name **names, struct slice name, size_t *ret_number) {
        const void *key = name.length > 0 ? name.data : (const uint8_t *)"";
        struct numbered_name *numbered;

        HASH_FIND(hh, *names, key, name.length, numbered);
        if (!numbered) {
                numbered = calloc(1, sizeof(*numbered));
                if (!numbered)
                        return -ENOMEM;
                numbered->number = HASH_COUNT(*names);
                HASH_ADD_KEYPTR(hh, *names, key, name.length, numbered);
                if (!numbered->hh.tbl) {
                        free(numbered);
                        return -ENOMEM;
                }
        }
        *ret_number = numbered->number;
        return 0;
}

size_t request_recording_n_clients(const struct request_recording *recording) {
        return HASH_COUNT(recording->clients);
}

static int add_request(struct request_recording *recording, const struct recorded *recorded, uint64_t line) {
        struct recorded_request request = { .request = *recorded, .line = line };
        int r;

        r = array_reserve((void **)&recording->requests, &recording->requests_capacity,
                          recording->n_requests + 1, sizeof(*recording->requests));
        if (r == 0)
                r = number_name(&recording->clients, recorded->client, &request.client);
        if (r == 0)
                r = number_name(&recording->response_topics, recorded->message.response_topic,
                                &request.response_topic);
        if (r == 0)
                r = array_reserve((void **)&recording->waiting, &recording->waiting_capacity,
                                  recording->n_waiting + 1, sizeof(*recording->waiting));
        if (r < 0)
                return r;

        recording->waiting[recording->n_waiting++] = recording->n_requests;
        recording->requests[recording->n_requests++] = request;
        return 0;
}

/* Returns false if no request waits for the reply: the request came before the recording began. */
static bool add_reply(struct request_recording *recording, const struct recorded *recorded) {
        const struct message *reply = &recorded->message;

        for (size_t i = 0; i < recording->n_waiting; i++) {
                struct recorded_request *request = &recording->requests[recording->waiting[i]];

                if (!slice_equal(request->request.message.correlation_data, reply->correlation_data) ||
                    !slice_equal(request->request.message.response_topic, reply->topic))
                        continue;

                request->reply = *recorded;
                request->has_reply = true;
                recording->n_waiting--;
                memmove(&recording->waiting[i], &recording->waiting[i + 1],
                        (recording->n_waiting - i) * sizeof(*recording->waiting));
                return true;
        }
        return false;
}

static int add_line(struct request_recording *recording, struct slice text, uint64_t line,
                    const char **ret_fault) {
        struct recorded recorded;
        bool is_stored = false;
        int r;

        r = recording_read(text, &recorded, ret_fault);
        if (r < 0)
                return r;

        switch (recorded.type) {
        case RECORDED_START:
                recording->n_starts++;
                break;
        case RECORDED_REQUEST:
                r = add_request(recording, &recorded, line);
                is_stored = r == 0;
                break;
        case RECORDED_REPLY:
                is_stored = add_reply(recording, &recorded);
                break;
        case RECORDED_NOTIFICATION:
        case N_RECORDED_TYPES:
                break;
        }
        if (!is_stored)
                recorded_deinit(&recorded);
        return r;
}

int request_recording_read(struct request_recording *recording, const char *file) {
        struct slice rest;
        uint64_t line = 0;
        int r;

        r = input_read_file(file, &recording->text);
        if (r < 0)
                return r;

        rest = buf_slice(&recording->text);
        while (rest.length > 0) {
                const char *fault = "out of memory";
                struct slice text = slice_split(rest, '\n', &rest);

                line++;
                if (!rest.data) {
                        complain("%s:%" PRIu64 ": the last line does not end; it is left out",
                                 LOG_STRING(file), line);
                        return 0;
                }
                r = add_line(recording, text, line, &fault);
                if (r < 0) {
                        complain("%s:%" PRIu64 ": %s", LOG_STRING(file), line, fault);
                        return r;
                }
        }
        return 0;
}

static bool is_scan(struct slice verb) {
        return slice_equal(verb, SLICE_LITERAL("SCAN"));
}

bool is_later_page(struct slice verb, struct slice payload) {
        struct resp3_item item;

        return is_scan(verb) && resp3_read(&payload, &item) == 0 && item.type == RESP3_ARRAY &&
               item.number == 3;
}

static bool take_array(struct slice *rest, size_t *ret_n_items) {
        struct resp3_item item;

        if (resp3_read(rest, &item) < 0 || item.type != RESP3_ARRAY || item.number < 0)
                return false;
        *ret_n_items = (size_t)item.number;
        return true;
}

static int compare_keys(const void *a, const void *b) {
        return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Read n_keys keys and sort them. False: there are fewer. */
static bool read_keys(struct slice rest, struct slice *keys, size_t n_keys) {
        struct resp3_item item;

        for (size_t i = 0; i < n_keys; i++) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB)
                        return false;
                keys[i] = item.text;
        }
        qsort(keys, n_keys, sizeof(*keys), compare_keys);
        return true;
}

static bool have_same_keys(struct slice a, struct slice b, size_t n_keys) {
        CLEANUP(cleanup_free) struct slice *keys = NULL;

        if (n_keys == 0)
                return true;
        /* A key takes at least one byte, so the size of the reply limits the allocation. */
        if (n_keys > a.length || n_keys > b.length)
                return false;
        keys = calloc(2 * n_keys, sizeof(*keys));
        if (!keys || !read_keys(a, keys, n_keys) || !read_keys(b, keys + n_keys, n_keys))
                return false;
        for (size_t i = 0; i < n_keys; i++)
                if (!slice_equal(keys[i], keys[n_keys + i]))
                        return false;
        return true;
}

bool replies_are_equal(struct slice verb, struct slice a, struct slice b) {
        size_t n_parts, n_parts_b, n_keys, n_keys_b;

        if (slice_equal(a, b))
                return true;
        if (!is_scan(verb) || !take_array(&a, &n_parts) || !take_array(&b, &n_parts_b) ||
            n_parts != n_parts_b)
                return false;
        if (n_parts == 2)
                return true;
        return take_array(&a, &n_keys) && take_array(&b, &n_keys_b) && n_keys == n_keys_b &&
               have_same_keys(a, b, n_keys);
}
