/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/recorded_messages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "ctl/input.h"
#include "ctl/output.h"

void tape_deinit(struct request_recording *tape) {
        for (size_t i = 0; i < tape->n_requests; i++) {
                recorded_deinit(&tape->requests[i].request);
                recorded_deinit(&tape->requests[i].answer);
        }
        free(tape->requests);
        free(tape->waiting);
        free(tape->clients.names);
        free(tape->senders.names);
        buf_deinit(&tape->text);
}

static int number_name(struct name_table *names, struct slice name, size_t *ret_number) {
        int r;

        for (size_t i = 0; i < names->n; i++)
                if (slice_equal(names->names[i], name)) {
                        *ret_number = i;
                        return 0;
                }

        r = array_reserve((void **)&names->names, &names->capacity, names->n + 1, sizeof(*names->names));
        if (r < 0)
                return r;

        *ret_number = names->n;
        names->names[names->n++] = name;
        return 0;
}

static int add_request(struct request_recording *tape, const struct recorded *recorded, uint64_t line) {
        struct recorded_request request = { .request = *recorded, .line = line };
        int r;

        r = array_reserve((void **)&tape->requests, &tape->requests_capacity, tape->n_requests + 1,
                          sizeof(*tape->requests));
        if (r == 0)
                r = number_name(&tape->clients, recorded->client, &request.client);
        if (r == 0)
                r = number_name(&tape->senders, recorded->message.response_topic, &request.sender);
        if (r == 0)
                r = array_reserve((void **)&tape->waiting, &tape->waiting_capacity, tape->n_waiting + 1,
                                  sizeof(*tape->waiting));
        if (r < 0)
                return r;

        tape->waiting[tape->n_waiting++] = tape->n_requests;
        tape->requests[tape->n_requests++] = request;
        return 0;
}

/* Returns false if no request is pending for it: the request was sent before the recording began. */
static bool add_answer(struct request_recording *tape, const struct recorded *recorded) {
        const struct message *answer = &recorded->message;

        for (size_t i = 0; i < tape->n_waiting; i++) {
                struct recorded_request *request = &tape->requests[tape->waiting[i]];

                if (!slice_equal(request->request.message.correlation_data, answer->correlation_data) ||
                    !slice_equal(request->request.message.response_topic, answer->topic))
                        continue;

                request->answer = *recorded;
                request->is_answered = true;
                tape->n_waiting--;
                memmove(&tape->waiting[i], &tape->waiting[i + 1],
                        (tape->n_waiting - i) * sizeof(*tape->waiting));
                return true;
        }
        return false;
}

static int add_line(struct request_recording *tape, struct slice text, uint64_t line,
                    const char **ret_fault) {
        struct recorded recorded;
        bool is_retained = false;
        int r;

        r = recording_read(text, &recorded, ret_fault);
        if (r < 0)
                return r;

        switch (recorded.type) {
        case RECORDED_START:
                tape->n_starts++;
                break;
        case RECORDED_REQUEST:
                r = add_request(tape, &recorded, line);
                is_retained = r == 0;
                break;
        case RECORDED_ANSWER:
                is_retained = add_answer(tape, &recorded);
                break;
        case RECORDED_NOTIFICATION:
        case N_RECORDED_TYPES:
                break;
        }
        if (!is_retained)
                recorded_deinit(&recorded);
        return r;
}

int tape_read(struct request_recording *tape, const char *file) {
        struct slice rest;
        uint64_t line = 0;
        int r;

        r = input_read_file(file, INPUT_LENGTH_MAX, &tape->text);
        if (r < 0)
                return r;

        rest = buf_slice(&tape->text);
        while (rest.length > 0) {
                const char *fault = "out of memory";
                struct slice text = slice_split(rest, '\n', &rest);

                line++;
                if (!rest.data) {
                        complain("%s:%" PRIu64 ": the last line does not end; it is left out",
                                 LOG_TEXT(slice_from_string(file)), line);
                        return 0;
                }
                r = add_line(tape, text, line, &fault);
                if (r < 0) {
                        complain("%s:%" PRIu64 ": %s", LOG_TEXT(slice_from_string(file)), line, fault);
                        return r;
                }
        }
        return 0;
}
