/* SPDX-License-Identifier: Apache-2.0 */

#include "control/faults.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/parse.h"
#include "codec/invocation.h"
#include "control/test_clock.h"

#define IS_OF_NOTIFICATIONS(action) ((action) >= FAULT_DROP_NOTIFICATION)

static const char *const names[N_FAULT_ACTIONS] = {
        [FAULT_DELAY] = "delay",
        [FAULT_NO_ANSWER] = "no-answer",
        [FAULT_ANSWER_TWICE] = "answer-twice",
        [FAULT_ERROR] = "error",
        [FAULT_QUOTA] = "quota",
        [FAULT_WRONG_CORRELATION] = "wrong-correlation",
        [FAULT_MALFORMED] = "malformed",
        [FAULT_DISCONNECT] = "disconnect",
        [FAULT_DROP_NOTIFICATION] = "drop-notification",
        [FAULT_NOTIFY_TWICE] = "notify-twice",
};

const char *fault_action_name(enum fault_action action) {
        return names[action];
}

static void fault_free(struct fault *fault) {
        buf_deinit(&fault->text);
        selection_deinit(&fault->selection);
        free(fault);
}

static void fault_cleanup(struct fault **fault) {
        if (*fault)
                fault_free(*fault);
}

void faults_clear(struct faults *faults) {
        while (faults->first) {
                struct fault *next = faults->first->next;

                fault_free(faults->first);
                faults->first = next;
        }
        *faults = (struct faults){ 0 };
}

static int refuse(const char **ret_fault, const char *fault) {
        *ret_fault = fault;
        return -EINVAL;
}

static bool is_word(struct slice word, const char *text) {
        return slice_equal(word, slice_from_string(text));
}

/* Parse a probability such as 0.25 or 1, with up to nine decimal places. */
static int parse_chance(struct slice text, uint32_t *ret_chance) {
        struct slice fraction;
        struct slice whole = slice_split(text, '.', &fraction);
        uint64_t n_whole, n_fraction = 0;

        if (parse_uint64(whole, &n_whole) < 0 || n_whole > 1)
                return -EINVAL;
        if (fraction.data && (fraction.length > 9 || parse_uint64(fraction, &n_fraction) < 0))
                return -EINVAL;
        for (size_t i = fraction.data ? fraction.length : 9; i < 9; i++)
                n_fraction *= 10;

        n_fraction += n_whole * FAULT_CERTAIN;
        if (n_fraction == 0 || n_fraction > FAULT_CERTAIN)
                return -EINVAL;
        *ret_chance = (uint32_t)n_fraction;
        return 0;
}

static int set_option(struct fault *fault, struct slice name, struct slice value, const char **ret_fault) {
        int r;

        if (is_word(name, "verb") && IS_OF_NOTIFICATIONS(fault->action))
                return refuse(ret_fault, "a notification has no verb");
        r = selection_set(&fault->selection, name, value, ret_fault);
        if (r != 0)
                return r < 0 ? r : 0;

        if (is_word(name, "count")) {
                if (parse_uint64(value, &fault->n_remaining) < 0 || fault->n_remaining == 0)
                        return refuse(ret_fault, "a positive number was expected after count");
                fault->has_count = true;
                return 0;
        }
        if (is_word(name, "probability"))
                return parse_chance(value, &fault->chance) == 0
                               ? 0
                               : refuse(ret_fault,
                                        "a number above 0 and up to 1 was expected after probability");
        if (is_word(name, "seed"))
                return parse_uint64(value, &fault->seed) == 0
                               ? 0
                               : refuse(ret_fault, "a number was expected after seed");
        return refuse(ret_fault, "client, verb, key, count, probability or seed was expected");
}

/* Returns the number of words read, or -errno. */
static int read_action(struct fault *fault, const struct slice *words, size_t n_words,
                       const char **ret_fault) {
        fault->action = N_FAULT_ACTIONS;
        for (int i = 0; n_words > 0 && i < N_FAULT_ACTIONS; i++)
                if (is_word(words[0], names[i]))
                        fault->action = (enum fault_action)i;

        switch (fault->action) {
        case N_FAULT_ACTIONS:
                return refuse(ret_fault, "delay, no-answer, answer-twice, error, quota, wrong-correlation, "
                                         "malformed, disconnect, "
                                         "drop-notification or notify-twice was expected");
        case FAULT_DELAY:
                if (n_words < 2 || parse_duration(words[1], &fault->delay_ms) < 0 || fault->delay_ms == 0 ||
                    fault->delay_ms >
                            TEST_CLOCK_ADVANCE_MAX_MS) /* the sum with any clock reading cannot overflow */
                        return refuse(ret_fault,
                                      "a duration, such as 500ms or 10s, was expected after delay");
                return 2;
        case FAULT_ERROR:
                if (n_words < 2 || words[1].length == 0 || memchr(words[1].data, '\r', words[1].length) ||
                    memchr(words[1].data, '\n', words[1].length))
                        return refuse(ret_fault, "a text on one line was expected after error");
                buf_append_slice(&fault->text, words[1]);
                return buf_failed(&fault->text) ? -ENOMEM : 2;
        default:
                return 1;
        }
}

static int read_rule(struct fault *fault, const struct slice *words, size_t n_words,
                     const char **ret_fault) {
        int n_taken = read_action(fault, words, n_words, ret_fault);
        int r;

        if (n_taken < 0)
                return n_taken;
        words += n_taken;
        n_words -= (size_t)n_taken;
        if (n_words % 2 != 0)
                return refuse(ret_fault, "the last word has no value");

        for (size_t i = 0; i < n_words; i += 2) {
                r = set_option(fault, words[i], words[i + 1], ret_fault);
                if (r < 0)
                        return r;
        }
        return 0;
}

int faults_add(struct faults *faults, const struct slice *words, size_t n_words, uint64_t *ret_number,
               const char **ret_fault) {
        CLEANUP(fault_cleanup) struct fault *fault = NULL;
        struct fault **end = &faults->first;
        int r;

        if (faults->n == FAULTS_MAX)
                return -ENOSPC;
        fault = calloc(1, sizeof(*fault));
        if (!fault)
                return -ENOMEM;

        fault->chance = FAULT_CERTAIN;
        r = read_rule(fault, words, n_words, ret_fault);
        if (r < 0)
                return r;

        fault->random = fault->seed;
        fault->number = ++faults->last_number;
        *ret_number = fault->number;
        while (*end)
                end = &(*end)->next;
        *end = take_ptr(&fault);
        faults->n++;
        return 0;
}

static void write_fault(const struct fault *fault, struct buf *line) {
        const struct selection *selection = &fault->selection;
        char chance[16];

        json_begin(line);
        json_add_uint(line, "number", fault->number);
        json_add_bytes(line, "action", slice_from_string(names[fault->action]), false);
        if (fault->action == FAULT_DELAY)
                json_add_uint(line, "delay_ms", (uint64_t)fault->delay_ms);
        if (fault->action == FAULT_ERROR)
                json_add_bytes(line, "text", buf_slice(&fault->text), false);
        if (selection->has_client)
                json_add_bytes(line, "client", buf_slice(&selection->client), false);
        if (selection->has_verb)
                json_add_bytes(line, "verb", verb_text(selection->verb), false);
        if (selection->has_key)
                json_add_bytes(line, "pattern", buf_slice(&selection->key), false);
        if (fault->chance != FAULT_CERTAIN) {
                snprintf(chance, sizeof(chance), "0.%09" PRIu32, fault->chance);
                json_add_raw(line, "probability", chance);
                json_add_uint(line, "seed", fault->seed);
        }
        if (fault->has_count)
                json_add_uint(line, "left", fault->n_remaining);
        json_add_uint(line, "strikes", fault->n_strikes);
        json_end(line);
}

void faults_write(const struct faults *faults, struct buf *lines) {
        for (const struct fault *fault = faults->first; fault; fault = fault->next)
                write_fault(fault, lines);
}

/* splitmix64: sufficient for probabilities, and the same on every machine. */
static uint64_t next_random(uint64_t *state) {
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static bool strikes(struct fault *fault, struct slice client, enum verb verb, struct slice key) {
        if ((fault->has_count && fault->n_remaining == 0) ||
            !selection_matches(&fault->selection, client, verb, key))
                return false;
        if (fault->chance != FAULT_CERTAIN && next_random(&fault->random) % FAULT_CERTAIN >= fault->chance)
                return false;

        if (fault->has_count)
                fault->n_remaining--;
        fault->n_strikes++;
        return true;
}

static const struct fault *strike(struct faults *faults, bool is_notification, struct slice client,
                                  enum verb verb, struct slice key) {
        for (struct fault *fault = faults->first; fault; fault = fault->next)
                if (IS_OF_NOTIFICATIONS(fault->action) == is_notification &&
                    strikes(fault, client, verb, key))
                        return fault;
        return NULL;
}

const struct fault *faults_strike_request(struct faults *faults, struct slice client, enum verb verb,
                                          struct slice key) {
        return strike(faults, false, client, verb, key);
}

const struct fault *faults_strike_notification(struct faults *faults, struct slice client,
                                               struct slice key) {
        return strike(faults, true, client, N_VERBS, key);
}
