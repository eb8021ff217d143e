/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arguments of each verb (PROTOCOL.md "Request syntax"), and checks 1 to 5 of PROTOCOL.md "Errors".
 */

#include <criterion/criterion.h>

#include "codec/invocation.h"
#include "unit/support/table.h"
#include "unit/support/words.h"

#define S SLICE_LITERAL

/* With user properties as in a frame. */
static struct invocation decode_with(struct slice payload, struct slice properties) {
        struct frame_to_store_record record = {
                .kind = FRAME_REQUEST,
                .request = { .qos = 1,
                             .response_topic = S("replies"),
                             .correlation_data = S("1"),
                             .properties = properties,
                             .payload = payload },
        };
        struct decoder decoder = { 0 };
        struct invocation invocation;

        invocation_decode(&decoder, &record, &invocation);
        cr_expect_eq(invocation_is_accepted(&invocation), invocation.outcome == OUTCOME_DONE);
        return invocation;
}

/* A request with the properties that it requires. */
static struct invocation decode(struct slice payload) {
        return decode_with(payload, S("\0\4__ts\0\27"
                                      "1696374425000:0:Client1"));
}

static const struct {
        const char *name;
        struct slice words[WORDS_MAX];
        struct request request; /* verb, key, value, options */
} accepted[] = {
        { "SET", { S("SET"), S("k"), S("v") }, { .verb = VERB_SET, .key = S("k"), .value = S("v") } },
        { "SET of an empty value",
          { S("SET"), S("k"), S("") },
          { .verb = VERB_SET, .key = S("k"), .value = S("") } },
        { "SET whose key and value are option names",
          { S("SET"), S("NX"), S("PX") },
          { .verb = VERB_SET, .key = S("NX"), .value = S("PX") } },
        { "NX",
          { S("SET"), S("k"), S("v"), S("NX") },
          { .verb = VERB_SET, .key = S("k"), .value = S("v"), .condition = SET_IF_ABSENT } },
        { "PX",
          { S("SET"), S("k"), S("v"), S("PX"), S("10") },
          { .verb = VERB_SET, .key = S("k"), .value = S("v"), .has_px = true, .px_ms = 10 } },
        { "PX of one",
          { S("SET"), S("k"), S("v"), S("PX"), S("1") },
          { .verb = VERB_SET, .key = S("k"), .value = S("v"), .has_px = true, .px_ms = 1 } },
        { "PX of 2^63-1",
          { S("SET"), S("k"), S("v"), S("PX"), S("9223372036854775807") },
          { .verb = VERB_SET, .key = S("k"), .value = S("v"), .has_px = true, .px_ms = INT64_MAX } },
        { "NX PX",
          { S("SET"), S("k"), S("v"), S("NX"), S("PX"), S("10") },
          { .verb = VERB_SET,
            .key = S("k"),
            .value = S("v"),
            .condition = SET_IF_ABSENT,
            .has_px = true,
            .px_ms = 10 } },
        { "PX NX",
          { S("SET"), S("k"), S("v"), S("PX"), S("10"), S("NX") },
          { .verb = VERB_SET,
            .key = S("k"),
            .value = S("v"),
            .condition = SET_IF_ABSENT,
            .has_px = true,
            .px_ms = 10 } },

#define NEX(text)                                                                                           \
        .verb = VERB_SET, .key = S("k"), .value = S("v"), .condition = SET_IF_ABSENT_OR_EQUAL,              \
        .expected = S(text)
        { "NEX compares with the value that SET sets",
          { S("SET"), S("k"), S("v"), S("NEX") },
          { NEX("v") } },
        { "NEX value", { S("SET"), S("k"), S("v"), S("NEX"), S("w") }, { NEX("w") } },
        { "NEX of an empty value", { S("SET"), S("k"), S("v"), S("NEX"), S("") }, { NEX("") } },
        { "NEX and one word: it is the value",
          { S("SET"), S("k"), S("v"), S("NEX"), S("PX") },
          { NEX("PX") } },
        { "NEX and one word, spelled NX", { S("SET"), S("k"), S("v"), S("NEX"), S("NX") }, { NEX("NX") } },
        { "NEX and one word, spelled NEX",
          { S("SET"), S("k"), S("v"), S("NEX"), S("NEX") },
          { NEX("NEX") } },
        { "NEX and two words: PX and a time",
          { S("SET"), S("k"), S("v"), S("NEX"), S("PX"), S("10000") },
          { NEX("v"), .has_px = true, .px_ms = 10000 } },
        { "NEX and three words: a value, PX and a time",
          { S("SET"), S("k"), S("v"), S("NEX"), S("w"), S("PX"), S("10") },
          { NEX("w"), .has_px = true, .px_ms = 10 } },
        { "NEX and three words, the value spelled PX",
          { S("SET"), S("k"), S("v"), S("NEX"), S("PX"), S("PX"), S("10") },
          { NEX("PX"), .has_px = true, .px_ms = 10 } },
        { "PX NEX",
          { S("SET"), S("k"), S("v"), S("PX"), S("10"), S("NEX") },
          { NEX("v"), .has_px = true, .px_ms = 10 } },
        { "PX NEX value",
          { S("SET"), S("k"), S("v"), S("PX"), S("10"), S("NEX"), S("w") },
          { NEX("w"), .has_px = true, .px_ms = 10 } },
        { "PX NEX, the value spelled PX",
          { S("SET"), S("k"), S("v"), S("PX"), S("10"), S("NEX"), S("PX") },
          { NEX("PX"), .has_px = true, .px_ms = 10 } },

        { "GET", { S("GET"), S("k") }, { .verb = VERB_GET, .key = S("k") } },
        { "DEL", { S("DEL"), S("k") }, { .verb = VERB_DEL, .key = S("k") } },
        { "VDEL", { S("VDEL"), S("k"), S("v") }, { .verb = VERB_VDEL, .key = S("k"), .value = S("v") } },
        { "VDEL of an empty value",
          { S("VDEL"), S("k"), S("") },
          { .verb = VERB_VDEL, .key = S("k"), .value = S("") } },
        { "KEYNOTIFY", { S("KEYNOTIFY"), S("k") }, { .verb = VERB_KEYNOTIFY, .key = S("k") } },
        { "KEYNOTIFY STOP",
          { S("KEYNOTIFY"), S("k"), S("STOP") },
          { .verb = VERB_KEYNOTIFY, .key = S("k"), .stop = true } },
        { "KEYNOTIFY GET, an older form",
          { S("KEYNOTIFY"), S("k"), S("GET") },
          { .verb = VERB_KEYNOTIFY, .key = S("k") } },
        { "KEYNOTIFY of a key named STOP",
          { S("KEYNOTIFY"), S("STOP") },
          { .verb = VERB_KEYNOTIFY, .key = S("STOP") } },
        { "SCAN", { S("SCAN"), S("*") }, { .verb = VERB_SCAN, .key = S("*") } },
        { "SCAN with a token",
          { S("SCAN"), S("*"), S("token") },
          { .verb = VERB_SCAN, .key = S("*"), .value = S("token") } },
        { "bytes of any value",
          { S("SET"), S("\0\r\n"), S("$1\r\n\xFF") },
          { .verb = VERB_SET, .key = S("\0\r\n"), .value = S("$1\r\n\xFF") } },
};

Test(invocation, is_decoded_word_by_word) {
        for (size_t i = 0; i < N_ROWS(accepted); i++) {
                const struct request *expected = &accepted[i].request;
                struct buf payload = { 0 };
                struct invocation invocation;
                struct request *request = &invocation.request;

                append_words(&payload, accepted[i].words);
                invocation = decode(buf_slice(&payload));
                cr_expect_eq(invocation.fault, REQUEST_FAULT_NONE, ROW(accepted, i));
                cr_expect_eq(invocation.outcome, OUTCOME_DONE, ROW(accepted, i));
                cr_expect_eq(request->verb, expected->verb, ROW(accepted, i));
                cr_expect(slice_equal(request->key, expected->key), ROW(accepted, i));
                cr_expect(slice_equal(request->value, expected->value), ROW(accepted, i));
                cr_expect_eq(!request->value.data, !expected->value.data, ROW(accepted, i));
                cr_expect_eq(request->condition, expected->condition, ROW(accepted, i));
                cr_expect(slice_equal(request->expected, expected->expected), ROW(accepted, i));
                cr_expect_eq(request->has_px, expected->has_px, ROW(accepted, i));
                cr_expect_eq(request->px_ms, expected->px_ms, ROW(accepted, i));
                cr_expect_eq(request->stop, expected->stop, ROW(accepted, i));
                buf_deinit(&payload);
        }
}

#define UNKNOWN   OUTCOME_UNKNOWN_COMMAND
#define ARGUMENTS OUTCOME_WRONG_NUMBER_OF_ARGUMENTS
#define EMPTY     OUTCOME_EMPTY_KEY
#define SYNTAX    OUTCOME_SYNTAX_ERROR

static const struct {
        const char *name;
        struct slice words[WORDS_MAX];
        enum outcome outcome;
} refused[] = {
        { "lower case", { S("set"), S("k"), S("v") }, UNKNOWN },
        { "mixed case", { S("Get"), S("k") }, UNKNOWN },
        { "an empty verb", { S(""), S("k") }, UNKNOWN },
        { "a longer word that begins with a verb", { S("GETX"), S("k") }, UNKNOWN },
        { "the start of a verb", { S("GE"), S("k") }, UNKNOWN },
        { "a verb with a blank", { S("GET "), S("k") }, UNKNOWN },
        { "a verb with a NUL", { S("GET\0"), S("k") }, UNKNOWN },
        { "a verb of Redis", { S("HGET"), S("k") }, UNKNOWN },
        { "an unknown verb alone", { S("PING") }, UNKNOWN },
        { "an option as the verb", { S("NX"), S("k") }, UNKNOWN },

        { "SET alone", { S("SET") }, ARGUMENTS },
        { "SET key", { S("SET"), S("k") }, ARGUMENTS },
        { "SET of an empty key alone", { S("SET"), S("") }, ARGUMENTS },
        { "GET alone", { S("GET") }, ARGUMENTS },
        { "GET of two keys", { S("GET"), S("k"), S("l") }, ARGUMENTS },
        { "GET of two empty keys", { S("GET"), S(""), S("") }, ARGUMENTS },
        { "DEL alone", { S("DEL") }, ARGUMENTS },
        { "DEL of two keys", { S("DEL"), S("k"), S("l") }, ARGUMENTS },
        { "VDEL alone", { S("VDEL") }, ARGUMENTS },
        { "VDEL key", { S("VDEL"), S("k") }, ARGUMENTS },
        { "VDEL of two values", { S("VDEL"), S("k"), S("v"), S("w") }, ARGUMENTS },
        { "KEYNOTIFY alone", { S("KEYNOTIFY") }, ARGUMENTS },
        { "KEYNOTIFY of two options", { S("KEYNOTIFY"), S("k"), S("STOP"), S("STOP") }, ARGUMENTS },
        { "SCAN alone", { S("SCAN") }, ARGUMENTS },
        { "SCAN of two tokens", { S("SCAN"), S("*"), S("t"), S("t") }, ARGUMENTS },

        { "SET of an empty key", { S("SET"), S(""), S("v") }, EMPTY },
        { "SET of an empty key, and a wrong option", { S("SET"), S(""), S("v"), S("XX") }, EMPTY },
        { "SET of an empty key, and many options",
          { S("SET"), S(""), S("v"), S("NX"), S("NX"), S("NX"), S("NX"), S("NX") },
          EMPTY },
        { "GET of an empty key", { S("GET"), S("") }, EMPTY },
        { "DEL of an empty key", { S("DEL"), S("") }, EMPTY },
        { "VDEL of an empty key", { S("VDEL"), S(""), S("v") }, EMPTY },
        { "KEYNOTIFY of an empty key", { S("KEYNOTIFY"), S("") }, EMPTY },
        { "KEYNOTIFY of an empty key, and a wrong option", { S("KEYNOTIFY"), S(""), S("X") }, EMPTY },

        { "SET with an unknown option", { S("SET"), S("k"), S("v"), S("XX") }, SYNTAX },
        { "SET with an empty option", { S("SET"), S("k"), S("v"), S("") }, SYNTAX },
        { "SET with an option in lower case", { S("SET"), S("k"), S("v"), S("nx") }, SYNTAX },
        { "SET with an option of Redis", { S("SET"), S("k"), S("v"), S("EX"), S("10") }, SYNTAX },
        { "NX twice", { S("SET"), S("k"), S("v"), S("NX"), S("NX") }, SYNTAX },
        { "NX with an argument", { S("SET"), S("k"), S("v"), S("NX"), S("w") }, SYNTAX },
        { "NX with NEX", { S("SET"), S("k"), S("v"), S("NX"), S("NEX") }, SYNTAX },
        { "NX with NEX value", { S("SET"), S("k"), S("v"), S("NX"), S("NEX"), S("w") }, SYNTAX },
        { "NEX value with NX", { S("SET"), S("k"), S("v"), S("NEX"), S("w"), S("NX") }, SYNTAX },
        { "NEX twice", { S("SET"), S("k"), S("v"), S("NEX"), S("w"), S("NEX") }, SYNTAX },
        { "NEX of two values", { S("SET"), S("k"), S("v"), S("NEX"), S("w"), S("x") }, SYNTAX },
        { "NEX and two words, no PX", { S("SET"), S("k"), S("v"), S("NEX"), S("px"), S("10") }, SYNTAX },
        { "NEX and two words, PX without its time",
          { S("SET"), S("k"), S("v"), S("NEX"), S("PX"), S("PX") },
          SYNTAX },
        { "NEX and three words, no PX",
          { S("SET"), S("k"), S("v"), S("NEX"), S("w"), S("x"), S("10") },
          SYNTAX },
        { "NEX and three words, PX first",
          { S("SET"), S("k"), S("v"), S("NEX"), S("PX"), S("10"), S("w") },
          SYNTAX },
        { "NEX and four words",
          { S("SET"), S("k"), S("v"), S("NEX"), S("w"), S("PX"), S("10"), S("NX") },
          SYNTAX },
        { "NEX between two PX",
          { S("SET"), S("k"), S("v"), S("PX"), S("1"), S("NEX"), S("PX"), S("2") },
          SYNTAX },
        { "PX without its time", { S("SET"), S("k"), S("v"), S("PX") }, SYNTAX },
        { "PX twice", { S("SET"), S("k"), S("v"), S("PX"), S("1"), S("PX"), S("2") }, SYNTAX },
        { "PX and an unknown option", { S("SET"), S("k"), S("v"), S("PX"), S("1"), S("XX") }, SYNTAX },
        { "PX in lower case", { S("SET"), S("k"), S("v"), S("px"), S("1") }, SYNTAX },
        { "PX of nothing", { S("SET"), S("k"), S("v"), S("PX"), S("") }, SYNTAX },
        { "PX of zero", { S("SET"), S("k"), S("v"), S("PX"), S("0") }, SYNTAX },
        { "PX of a negative time", { S("SET"), S("k"), S("v"), S("PX"), S("-1") }, SYNTAX },
        { "PX with a plus", { S("SET"), S("k"), S("v"), S("PX"), S("+1") }, SYNTAX },
        { "PX of a fraction", { S("SET"), S("k"), S("v"), S("PX"), S("1.5") }, SYNTAX },
        { "PX with a unit", { S("SET"), S("k"), S("v"), S("PX"), S("10ms") }, SYNTAX },
        { "PX with a blank", { S("SET"), S("k"), S("v"), S("PX"), S(" 10") }, SYNTAX },
        { "PX of an exponent", { S("SET"), S("k"), S("v"), S("PX"), S("1e3") }, SYNTAX },
        { "PX of 2^63", { S("SET"), S("k"), S("v"), S("PX"), S("9223372036854775808") }, SYNTAX },
        { "PX past 64 bits", { S("SET"), S("k"), S("v"), S("PX"), S("18446744073709551617") }, SYNTAX },
        { "more words than any SET has",
          { S("SET"), S("k"), S("v"), S("NEX"), S("w"), S("PX"), S("10"), S("PX"), S("10") },
          SYNTAX },
        { "KEYNOTIFY with an unknown option", { S("KEYNOTIFY"), S("k"), S("START") }, SYNTAX },
        { "KEYNOTIFY with an option in lower case", { S("KEYNOTIFY"), S("k"), S("stop") }, SYNTAX },
        { "KEYNOTIFY with an empty option", { S("KEYNOTIFY"), S("k"), S("") }, SYNTAX },
        { "SCAN of an empty pattern", { S("SCAN"), S("") }, SYNTAX },
        { "SCAN of an empty pattern, and a token", { S("SCAN"), S(""), S("t") }, SYNTAX },
};

Test(invocation, is_refused_by_the_first_failed_check) {
        for (size_t i = 0; i < N_ROWS(refused); i++) {
                struct buf payload = { 0 };

                append_words(&payload, refused[i].words);
                cr_expect_eq(decode(buf_slice(&payload)).outcome, refused[i].outcome, ROW(refused, i));
                buf_deinit(&payload);
        }
}

static const struct {
        const char *name;
        struct slice payload;
} broken[] = {
        { "nothing", S("") },
        { "no RESP3", S("GET k") },
        { "an empty array", S("*0\r\n") },
        { "cut", S("*2\r\n$3\r\nGET\r\n$1\r\nk") },
        { "bytes after the array", S("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n ") },
        { "malformed, and the verb is unknown too", S("*2\r\n$3\r\nget\r\n:1\r\n") },
        { "a number for a verb", S("*2\r\n:1\r\n$1\r\nk\r\n") },
};

Test(invocation, checks_syntax_first) {
        for (size_t i = 0; i < N_ROWS(broken); i++)
                cr_expect_eq(decode(broken[i].payload).outcome, SYNTAX, ROW(broken, i));
}

Test(verb, text_parses_back_to_the_verb) {
        for (enum verb verb = 0; verb < N_VERBS; verb++) {
                enum verb read = VERB_UNKNOWN;

                cr_expect(verbs[verb].text.data, "verb %d", (int)verb);
                cr_expect(verb_from_text(verbs[verb].text, &read), "verb %d", (int)verb);
                cr_expect_eq(read, verb);
        }
        cr_expect_null(verbs[VERB_UNKNOWN].text.data);
}

Test(verb, text_is_matched_exactly_and_in_upper_case) {
        static const struct slice others[] = { S("get"), S("GE"), S("GETS"), S("") };
        enum verb verb = VERB_UNKNOWN;

        for (size_t i = 0; i < N_ROWS(others); i++)
                cr_expect_not(verb_from_text(others[i], &verb), "%zu", i);
        cr_expect_eq(verb, VERB_UNKNOWN);
}

/* Decode the request with no, and with malformed, timestamps. Add the bits of the outcomes. */
static void add_outcomes(const struct slice *words, enum verb verb, uint64_t *outcomes_seen) {
        static const struct slice properties[] = { S(""), S("\0\4__ts\0\1x"), S("\0\4__ft\0\1x") };
        struct buf payload = { 0 };

        append_words(&payload, words);
        for (size_t i = 0; i < N_ROWS(properties); i++) {
                struct invocation invocation = decode_with(buf_slice(&payload), properties[i]);

                cr_expect_eq(invocation.request.verb, verb);
                *outcomes_seen |= UINT64_C(1) << invocation.outcome;
        }
        buf_deinit(&payload);
}

/* Requests with all arguments of these words, four at most. */
static uint64_t outcomes_of(enum verb verb) {
        static const struct slice arguments[] = { { NULL, 0 }, S(""),   S("k"), S("1"),
                                                  S("STOP"),   S("NX"), S("PX") };
        const size_t n = N_ROWS(arguments);
        uint64_t outcomes_seen = 0;

        for (size_t i = 0; i < n * n * n * n; i++)
                add_outcomes((const struct slice[WORDS_MAX]){ verbs[verb].text, arguments[i % n],
                                                              arguments[i / n % n], arguments[i / n / n % n],
                                                              arguments[i / n / n / n] },
                             verb, &outcomes_seen);
        return outcomes_seen;
}

/* The errors up to MALFORMED_TIMESTAMP are those of decoding. */
Test(verb, has_exactly_the_errors_of_its_rows) {
        for (enum verb verb = 0; verb < N_VERBS; verb++) {
                uint64_t outcomes_seen = outcomes_of(verb);

                for (enum outcome outcome = OUTCOME_SYNTAX_ERROR; outcome < N_OUTCOMES; outcome++)
                        cr_expect_eq(outcomes_seen >> outcome & 1,
                                     outcome <= OUTCOME_MALFORMED_TIMESTAMP &&
                                             outcome_is_possible(verb, outcome),
                                     "%s: %s", verbs[verb].label, outcome_name(outcome));
        }
}
