/* SPDX-License-Identifier: Apache-2.0 */

#include "control/selection.h"

#include <errno.h>

#include "base/array.h"
#include "base/glob.h"
#include "base/parse.h"

/* A test does not wait for longer. */
#define TIMEOUT_MAX_MS 600000

void selection_deinit(struct selection *selection) {
        buf_deinit(&selection->client);
        buf_deinit(&selection->key);
        *selection = (struct selection){ 0 };
}

int refuse_words(const char **ret_problem, const char *problem) {
        *ret_problem = problem;
        return -EINVAL;
}

bool selection_matches(const struct selection *selection, struct slice client, enum verb verb,
                       struct slice key, uint64_t *budget) {
        return (!selection->has_client || slice_equal(buf_slice(&selection->client), client)) &&
               (!selection->has_verb || selection->verb == verb) &&
               (!selection->has_key || glob_match(buf_slice(&selection->key), key, budget));
}

static const struct option_row {
        const char *name;
        enum query_option option;
        const char *expected; /* if its value is invalid */
} query_options[] = {
        { "client", QUERY_CLIENT, NULL },
        { "key", QUERY_KEY, "a valid pattern was expected after \"key\"" },
        { "verb", QUERY_VERB, VERBS_EXPECTED " after \"verb\"" },
        { "after", QUERY_AFTER, "a number was expected after \"after\"" },
        { "count", QUERY_COUNT, "a positive number was expected after \"count\"" },
        { "timeout", QUERY_TIMEOUT, "a duration from 1ms to 10m was expected after \"timeout\"" },
};

static const struct option_row *find_query_option(const struct query_form *form, struct slice name) {
        for (size_t i = 0; i < ARRAY_LENGTH(query_options); i++)
                if ((form->options & query_options[i].option) &&
                    slice_equal_string(name, query_options[i].name))
                        return &query_options[i];
        return NULL;
}

static int set_selection_text(bool *has_text, struct buf *text, struct slice value) {
        *has_text = true;
        buf_append_slice(text, value);
        return buf_failed(text) ? -ENOMEM : 0;
}

static int set_query_option(struct query *query, enum query_option option, struct slice value) {
        struct selection *selection = &query->selection;

        switch (option) {
        case QUERY_CLIENT:
                return set_selection_text(&selection->has_client, &selection->client, value);
        case QUERY_KEY:
                if (value.length == 0 || !slice_is_utf8(value) || glob_check(value) != GLOB_VALID)
                        return -EINVAL;
                return set_selection_text(&selection->has_key, &selection->key, value);
        case QUERY_VERB:
                selection->has_verb = verb_from_text(value, &selection->verb);
                return selection->has_verb ? 0 : -EINVAL;
        case QUERY_AFTER:
                return parse_uint64(value, &query->after) < 0 ? -EINVAL : 0;
        case QUERY_COUNT:
                return parse_uint64(value, &query->count) < 0 || query->count == 0 ? -EINVAL : 0;
        case QUERY_TIMEOUT:
                return parse_duration(value, &query->timeout_ms) < 0 || query->timeout_ms == 0 ||
                                       query->timeout_ms > TIMEOUT_MAX_MS
                               ? -EINVAL
                               : 0;
        }
        return -EINVAL;
}

void query_deinit(struct query *query) {
        selection_deinit(&query->selection);
}

int query_read(struct query *query, const struct query_form *form, const struct slice *words, size_t n_words,
               const char **ret_problem) {
        for (size_t i = 0; i < n_words; i += 2) {
                const struct option_row *row = find_query_option(form, words[i]);
                int r;

                if (!row)
                        return refuse_words(ret_problem, form->expected);
                if (i + 1 == n_words)
                        return refuse_words(ret_problem, "the last word has no value");
                if (query->given & row->option)
                        return refuse_words(ret_problem, "an option is given twice");

                query->given |= row->option;
                r = set_query_option(query, row->option, words[i + 1]);
                if (r < 0) {
                        *ret_problem = row->expected;
                        return r;
                }
        }
        return 0;
}
