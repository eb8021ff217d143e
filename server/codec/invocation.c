/* SPDX-License-Identifier: Apache-2.0 */

#include "codec/invocation.h"

#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

/* The longest options of SET: NEX value PX ms. */
#define SET_OPTION_WORDS_MAX 4

/* The longest request: SET key value and options. */
#define REQUEST_WORDS_MAX (3 + SET_OPTION_WORDS_MAX)

/* 1. Names */

const char *request_fault_label(enum request_fault fault) {
        static const char *const labels[N_REQUEST_FAULTS] = { [REQUEST_FAULT_NONE] = "none",
#define FAULT_LABEL(symbol, label, ...) [REQUEST_FAULT_##symbol] = label,
                                                              REQUEST_FAULTS(FAULT_LABEL)
#undef FAULT_LABEL
        };

        return labels[fault];
}

void invocation_properties(const struct decoder *decoder, struct slice ret_names[N_REQUEST_PROPERTIES + 1]) {
        const struct slice names[N_REQUEST_PROPERTIES + 1] = {
                [REQUEST_TIMESTAMP] = SLICE_LITERAL(PROPERTY_TIMESTAMP),
                [REQUEST_FENCE] = SLICE_LITERAL(PROPERTY_FENCE),
                [REQUEST_SOURCE_ID] = SLICE_LITERAL(PROPERTY_SOURCE_ID),
                [REQUEST_VERSION] = SLICE_LITERAL(PROPERTY_VERSION),
                [REQUEST_DETAILS] = SLICE_LITERAL(PROPERTY_DETAILS),
                [REQUEST_PERSISTENCE] = slice_from_string(decoder->persistence_name),
        };

        memcpy(ret_names, names, sizeof(names));
}

/* 2. The payload */

/*
 * The words are NEX, NEX value, NEX PX ms, or NEX value PX ms. So their number tells whether there
 * is a value, even if the value is "PX". Returns the number of words taken.
 */
static size_t decode_nex(const struct slice *words, size_t n_words, struct request *request) {
        bool has_value = n_words == 2 || n_words == 4;

        request->condition = SET_IF_ABSENT_OR_EQUAL;
        request->expected = has_value ? words[1] : request->value;
        return has_value ? 2 : 1;
}

/* Returns the number of words taken; 0 for a syntax error. */
static size_t decode_px(const struct slice *words, size_t n_words, struct request *request) {
        uint64_t px_ms;

        if (n_words < 2 || request->has_px || parse_uint64(words[1], &px_ms) < 0 || px_ms == 0 ||
            px_ms > INT64_MAX)
                return 0;

        request->has_px = true;
        request->px_ms = (int64_t)px_ms;
        return 2;
}

/*
 * The decoders of VERBS: decode the arguments after the key. Their number is one that the verb
 * allows. Return OUTCOME_DONE or the error.
 */

static enum outcome decode_nothing(const struct slice *words, size_t n_words, struct request *request) {
        (void)words;
        (void)n_words;
        (void)request;
        return OUTCOME_DONE;
}

static enum outcome decode_value(const struct slice *words, size_t n_words, struct request *request) {
        if (n_words > 0)
                request->value = words[0];
        return OUTCOME_DONE;
}

static enum outcome decode_keynotify(const struct slice *words, size_t n_words, struct request *request) {
        request->stop = n_words > 0 && slice_equal_string(words[0], "STOP");
        return n_words == 0 || request->stop || slice_equal_string(words[0], "GET") ? OUTCOME_DONE
                                                                                    : OUTCOME_SYNTAX_ERROR;
}

/* The value, then the options [NX | NEX [value]] and [PX ms] in any order. */
static enum outcome decode_set(const struct slice *words, size_t n_words, struct request *request) {
        request->value = *words++;
        n_words--;
        if (n_words > SET_OPTION_WORDS_MAX)
                return OUTCOME_SYNTAX_ERROR;

        while (n_words > 0) {
                bool is_first_condition = request->condition == SET_ALWAYS;
                size_t n_taken = 0;

                if (slice_equal_string(words[0], "NX") && is_first_condition) {
                        request->condition = SET_IF_ABSENT;
                        n_taken = 1;
                } else if (slice_equal_string(words[0], "NEX") && is_first_condition) {
                        n_taken = decode_nex(words, n_words, request);
                } else if (slice_equal_string(words[0], "PX")) {
                        n_taken = decode_px(words, n_words, request);
                }
                if (n_taken == 0)
                        return OUTCOME_SYNTAX_ERROR;

                words += n_taken;
                n_words -= n_taken;
        }
        return OUTCOME_DONE;
}

static enum outcome decode_timestamps(struct request *request) {
        unsigned int flags = verbs[request->verb].flags;

        request->has_timestamp = request->timestamp_text.data;
        request->has_fence = request->fence_text.data && (flags & VERB_IS_FENCED);

        if ((flags & VERB_NEEDS_TIMESTAMP) && !request->has_timestamp)
                return OUTCOME_MISSING_TIMESTAMP;
        if ((request->has_timestamp && hlc_parse(request->timestamp_text, &request->timestamp) < 0) ||
            (request->has_fence && hlc_parse(request->fence_text, &request->fence) < 0))
                return OUTCOME_MALFORMED_TIMESTAMP;
        return OUTCOME_DONE;
}

/* Decode the payload, and what depends on its command. */
static enum outcome decode_request(struct request *request) {
        static enum outcome (*const decoders[N_VERBS])(const struct slice *, size_t, struct request *) = {
#define VERB_DECODER(symbol, name, access, min, max, flags, decode, execute) [VERB_##symbol] = decode,
                VERBS(VERB_DECODER)
#undef VERB_DECODER
        };
        struct slice words[REQUEST_WORDS_MAX];
        size_t n_words, n_arguments;
        enum outcome outcome;

        if (resp3_read_request(request->payload, words, REQUEST_WORDS_MAX, &n_words) < 0)
                return OUTCOME_SYNTAX_ERROR;

        if (!verb_from_text(words[0], &request->verb))
                return OUTCOME_UNKNOWN_COMMAND;

        n_arguments = n_words - 1;
        if (n_arguments < verbs[request->verb].n_arguments_min ||
            n_arguments > verbs[request->verb].n_arguments_max)
                return OUTCOME_WRONG_NUMBER_OF_ARGUMENTS;

        request->key = words[1];
        if (request->key.length == 0)
                return verbs[request->verb].flags & VERB_TAKES_PATTERN ? OUTCOME_SYNTAX_ERROR
                                                                       : OUTCOME_EMPTY_KEY;
        outcome = decoders[request->verb](words + 2, n_arguments - 1, request);
        return outcome == OUTCOME_DONE ? decode_timestamps(request) : outcome;
}

/* 3. The properties */

/*
 * Return whether the store serves this protocol version: MAJOR.MINOR with major 0 or 1, or absent.
 */
static bool is_served_version(struct slice version) {
        struct slice major, minor;
        uint64_t major_number, minor_number;

        if (!version.data)
                return true;

        major = slice_split(version, '.', &minor);
        return parse_uint64(major, &major_number) == 0 && parse_uint64(minor, &minor_number) == 0 &&
               major_number <= 1;
}

static enum request_fault check_properties(const struct frame_request *request, struct slice version,
                                           struct slice *ret_value) {
        static const struct slice qos_texts[] = { SLICE_LITERAL("0"), SLICE_LITERAL("1"),
                                                  SLICE_LITERAL("2") };

        if (request->qos != 1) {
                *ret_value = qos_texts[request->qos];
                return REQUEST_FAULT_QOS;
        }
        if (!request->correlation_data.data) {
                *ret_value = SLICE_LITERAL("");
                return REQUEST_FAULT_CORRELATION;
        }
        if (!is_served_version(version)) {
                *ret_value = version;
                return REQUEST_FAULT_VERSION;
        }
        return REQUEST_FAULT_NONE;
}

/* Set the values of the user properties that the store reads, by enum request_property. */
static void read_properties(const struct decoder *decoder, struct slice properties,
                            struct slice values[N_REQUEST_PROPERTIES]) {
        struct slice names[N_REQUEST_PROPERTIES + 1];
        struct user_property property;

        invocation_properties(decoder, names);
        while (frame_property_next(&properties, &property))
                for (size_t i = 0; names[i].data; i++) /* the configuration may name one twice */
                        if (!values[i].data && slice_equal(property.name, names[i]))
                                values[i] = property.value;
}

/* 4. A request */

void invocation_decode(const struct decoder *decoder, const struct frame_to_store_record *record,
                       struct invocation *ret_invocation) {
        const struct frame_request *request = &record->request;
        struct slice values[N_REQUEST_PROPERTIES] = { 0 };

        read_properties(decoder, request->properties, values);
        *ret_invocation = (struct invocation){
                .request = {
                        .verb = VERB_UNKNOWN,
                        .client = record->client_id,
                        .number = record->number,
                        .connection = record->connection,
                        .user = request->username,
                        .response_topic = request->response_topic,
                        .correlation_data = request->correlation_data,
                        .payload = request->payload,
                        .timestamp_text = values[REQUEST_TIMESTAMP],
                        .fence_text = values[REQUEST_FENCE],
                        .wants_details = slice_equal_string(values[REQUEST_DETAILS], "1"),
                        .wants_persistence =
                                decoder->persistence_name &&
                                slice_equal(values[REQUEST_PERSISTENCE], decoder->persistence_value),
                },
                .has_response_topic = topic_is_valid_response(request->response_topic),
                .outcome = OUTCOME_DONE,
        };
        ret_invocation->fault =
                check_properties(request, values[REQUEST_VERSION], &ret_invocation->fault_value);
        if (ret_invocation->fault == REQUEST_FAULT_NONE)
                ret_invocation->outcome = decode_request(&ret_invocation->request);
}
