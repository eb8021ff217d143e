/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decode an MQTT message that waited, or the same message in a frame of the plugin, to a request. The result
 * must be allowed by PROTOCOL.md "Requests", "Request syntax" and "Errors". The decoded options of
 * SET must equal the options in a list of all valid forms.
 */

#include "base/array.h"
#include "base/cleanup.h"
#include "codec/invocation.h"
#include "fuzz/fuzz.h"
#include "pipeline/queue.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

#define N_WORDS_MAX 9

/* The sender in a frame. */
#define CLIENT     "client-2"
#define USER       "user"
#define CONNECTION 7

static const struct decoder decoder = { .persistence_name = PROPERTY_PERSIST,
                                        .persistence_value = { (const uint8_t *)"true", 4 } };

/* Words with a meaning, from which the input chooses. */
static const char *const dictionary[] = { "SET",
                                          "GET",
                                          "DEL",
                                          "VDEL",
                                          "KEYNOTIFY",
                                          "SCAN",
                                          "NX",
                                          "NEX",
                                          "PX",
                                          "STOP",
                                          "key",
                                          "value",
                                          "1",
                                          "",
                                          "0",
                                          "1000",
                                          "get",
                                          "9223372036854775807",
                                          "9223372036854775808" };
#define N_DICTIONARY ARRAY_LENGTH(dictionary)

static const char *const names[] = { PROPERTY_TIMESTAMP, PROPERTY_FENCE,   PROPERTY_SOURCE_ID,
                                     PROPERTY_VERSION,   PROPERTY_PERSIST, "another" };

static const char *const usual[] = {
        "1696374425000:0:Client1", "1696374400000:7:Client2", "client-1", "1.0", "true", "value"
};

static struct slice take_text(struct slice *input, const char *usual_text) {
        switch (input_below(input, 4)) {
        case 0:
                return input_text(input);
        case 1:
                return (struct slice){ 0 };
        default:
                return slice_from_string(usual_text);
        }
}

/* A payload of words, most of them from the dictionary; or of arbitrary bytes. */
static void take_payload(struct slice *input, struct buf *payload) {
        size_t n_words = input_below(input, N_WORDS_MAX + 2);

        if (n_words == 0) {
                buf_append_slice(payload, input_text(input));
                return;
        }
        resp3_append_array(payload, n_words);
        for (size_t i = 0; i < n_words; i++) {
                size_t word = input_byte(input);

                resp3_append_blob(payload, word < 2 * N_DICTIONARY
                                                   ? slice_from_string(dictionary[word % N_DICTIONARY])
                                                   : input_text(input));
        }
}

static void take_message(struct slice *input, struct buf *payload, struct message *message) {
        take_payload(input, payload);
        message->qos = (uint8_t)(input_chance(input, 90) ? 1 : input_below(input, 3));
        message->topic = SLICE_LITERAL(TOPIC_INVOKE);
        message->payload = buf_slice(payload);
        message->response_topic = take_text(input, "clients/client-3/replies");
        message->correlation_data = take_text(input, "1234");
        message->has_expiry = input_chance(input, 50);
        message->expiry_s = (uint32_t)input_number(input, 2);
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                struct slice value = take_text(input, usual[i]);

                if (value.data)
                        message->user_properties[message->n_user_properties++] =
                                (struct user_property){ slice_from_string(names[i]), value };
        }
}

/*
 * All valid forms of SET's options. One letter per word: X is NX, E is NEX, P is PX, v a value, n a
 * number.
 */
static const char *const forms[] = { "", "X", "E", "Ev", "Pn", "XPn", "PnX", "EPn", "PnE", "EvPn", "PnEv" };

static bool fits(const char *form, const struct slice *words, size_t n_words, struct request *request) {
        const struct slice *value = NULL;
        uint64_t px_ms = 0;

        if (strlen(form) != n_words)
                return false;
        for (size_t i = 0; i < n_words; i++) {
                bool is_number = parse_uint64(words[i], &px_ms) == 0 && px_ms > 0 && px_ms <= INT64_MAX;

                if ((form[i] == 'X' && !slice_equal(words[i], SLICE_LITERAL("NX"))) ||
                    (form[i] == 'E' && !slice_equal(words[i], SLICE_LITERAL("NEX"))) ||
                    (form[i] == 'P' && !slice_equal(words[i], SLICE_LITERAL("PX"))) ||
                    (form[i] == 'n' && !is_number))
                        return false;
                if (form[i] == 'v')
                        value = &words[i];
                if (form[i] == 'n') {
                        request->has_px = true;
                        request->px_ms = (int64_t)px_ms;
                }
        }

        request->condition = strchr(form, 'X')   ? SET_IF_ABSENT
                             : strchr(form, 'E') ? SET_IF_ABSENT_OR_EQUAL
                                                 : SET_ALWAYS;
        request->expected = value ? *value : request->value;
        return true;
}

static void check_set(const struct slice *words, size_t n_words, const struct invocation *invocation) {
        const struct request *request = &invocation->request;
        struct request expected = { .value = words[2] };
        int n_forms = 0;

        for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
                struct request attempt = { .value = words[2] };

                if (fits(forms[i], words + 3, n_words - 3, &attempt)) {
                        expected = attempt;
                        n_forms++;
                }
        }

        ASSERT(n_forms <= 1);
        ASSERT((n_forms == 0) == (invocation->outcome == OUTCOME_SYNTAX_ERROR));
        if (n_forms == 0)
                return;
        ASSERT(request->condition == expected.condition && request->has_px == expected.has_px);
        ASSERT(!request->has_px || request->px_ms == expected.px_ms);
        ASSERT(slice_equal(request->value, words[2]));
        if (request->condition == SET_IF_ABSENT_OR_EQUAL)
                ASSERT(slice_equal(request->expected, expected.expected));
}

static void check_payload(const struct message *message, const struct invocation *invocation) {
        struct slice words[N_WORDS_MAX + 2];
        size_t n_words;
        bool is_set;

        if (resp3_read_request(message->payload, words, N_WORDS_MAX + 2, &n_words) < 0) {
                ASSERT(invocation->outcome == OUTCOME_SYNTAX_ERROR);
                return;
        }
        is_set = slice_equal(words[0], SLICE_LITERAL("SET"));
        if (is_set && n_words >= 3 && n_words <= N_WORDS_MAX && words[1].length > 0)
                check_set(words, n_words, invocation);
        if (invocation->outcome != OUTCOME_DONE)
                return;

        ASSERT(n_words >= 2 && n_words <= 7 && words[1].length > 0);
        ASSERT(slice_equal(invocation->request.key, words[1]));
        ASSERT((invocation->request.verb == VERB_SET) == is_set);
        ASSERT(invocation->request.stop == (invocation->request.verb == VERB_KEYNOTIFY && n_words == 3 &&
                                            slice_equal(words[2], SLICE_LITERAL("STOP"))));
}

static void check_properties(const struct message *message, const struct invocation *invocation) {
        if (message->qos != 1)
                ASSERT(invocation->fault == REQUEST_FAULT_QOS);
        else if (!message->correlation_data.data)
                ASSERT(invocation->fault == REQUEST_FAULT_CORRELATION);
        else
                ASSERT(invocation->fault == REQUEST_FAULT_NONE ||
                       invocation->fault == REQUEST_FAULT_VERSION);
}

static void check_request(const struct message *message, const struct request *request) {
        struct slice timestamp = message_property(message, PROPERTY_TIMESTAMP);
        struct slice fence = message_property(message, PROPERTY_FENCE);
        struct slice persistence = message_property(message, decoder.persistence_name);
        struct hlc hlc;

        ASSERT(request->has_timestamp == (timestamp.data != NULL));
        ASSERT(request->has_timestamp || !(verbs[request->verb].flags & VERB_NEEDS_TIMESTAMP));
        ASSERT(!request->has_timestamp || hlc_parse(timestamp, &hlc) == 0);
        ASSERT(request->has_fence == (fence.data && (verbs[request->verb].flags & VERB_IS_FENCED)));
        ASSERT(!request->has_fence || hlc_parse(fence, &hlc) == 0);
        ASSERT(request->wants_persistence == slice_equal(persistence, decoder.persistence_value));
}

/* message: as the client has published it. */
static void check(const struct message *message, const struct invocation *invocation) {
        ASSERT(invocation->has_response_topic == topic_is_valid_response(message->response_topic));
        ASSERT(invocation->fault == REQUEST_FAULT_NONE || invocation->outcome == OUTCOME_DONE);
        check_properties(message, invocation);
        if (invocation->fault == REQUEST_FAULT_NONE)
                check_payload(message, invocation);
        if (invocation_is_accepted(invocation))
                check_request(message, &invocation->request);
}

static void decode(const struct message *message) {
        CLEANUP(queue_deinit) struct queue queue = { 0 };
        const struct queue_item *item;
        struct invocation invocation;

        ASSERT(queue_add_message(&queue, message, NULL, 0, SIZE_MAX) == 0);
        item = queue_first(&queue);
        ASSERT(item && item->kind == QUEUE_REQUEST);
        invocation_decode(&decoder, &item->record, &invocation);
        check(message, &invocation);
        ASSERT(invocation.request.connection == 0 && !invocation.request.user.data);
        ASSERT(item->has_expiry == message->has_expiry);
        ASSERT(item->expiry_s == (message->has_expiry ? message->expiry_s : 0));
}

/* Put the message into a frame. */
static void append_frame(const struct message *message, struct buf *frame) {
        CLEANUP(buf_deinit) struct buf properties = { 0 };
        struct frame_to_store_record record = { .kind = FRAME_REQUEST,
                                                .connection = CONNECTION,
                                                .client_id = SLICE_LITERAL(CLIENT),
                                                .request = {
                                                        .qos = message->qos,
                                                        .username = SLICE_LITERAL(USER),
                                                        .response_topic = message->response_topic,
                                                        .correlation_data = message->correlation_data,
                                                        .payload = message->payload,
                                                } };

        frame_properties_append(&properties, message);
        record.request.properties = buf_slice(&properties);
        frame_to_store_append(frame, &(struct frame_to_store){ .frame_number = 1, .next_record_number = 1 });
        frame_to_store_append_record(frame, &record);
        ASSERT(!buf_failed(&properties) && !buf_failed(frame));
}

static void decode_in_frame(const struct message *message) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 };
        CLEANUP(text_free) struct slice copy = { 0 };
        struct frame_to_store_record record;
        struct invocation invocation;
        struct frame_to_store frame;

        append_frame(message, &bytes);
        copy = text_copy(buf_slice(&bytes));
        ASSERT(frame_to_store_read(copy, &frame) == 0);
        ASSERT(frame_to_store_next(&frame, &record));
        invocation_decode(&decoder, &record, &invocation);
        check(message, &invocation);
        ASSERT(invocation.request.number == 1 && invocation.request.connection == CONNECTION);
        ASSERT(slice_equal(invocation.request.client, SLICE_LITERAL(CLIENT)));
        ASSERT(slice_equal(invocation.request.user, SLICE_LITERAL(USER)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = { data, size };
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        struct message message = { 0 };

        take_message(&input, &payload, &message);
        decode(&message);
        decode_in_frame(&message);
        return 0;
}
