/* SPDX-License-Identifier: Apache-2.0 */

#include "fuzz/policy_model.h"

#include <ctype.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "fuzz/naive_glob.h"
#include "policy/policy_build.h"

#define LINE_LENGTH_MAX 199

#define IS(text, literal) slice_equal(text, SLICE_LITERAL(literal))

static struct slice part(struct slice text, size_t from, size_t to) {
        return (struct slice){ text.data + from, to - from };
}

static struct slice trimmed(struct slice text) {
        while (text.length > 0 && isspace(text.data[0]))
                text = part(text, 1, text.length);
        while (text.length > 0 && isspace(text.data[text.length - 1]))
                text.length--;
        return text;
}

static bool contains(struct slice text, struct slice wanted) {
        for (size_t i = 0; i < text.length; i++)
                if (slice_starts_with(part(text, i, text.length), wanted))
                        return true;
        return false;
}

static bool is_section(const struct model_line *line) {
        return !line->value.data;
}

static bool is_pattern(const struct model_line *line) {
        return IS(line->name, "pattern");
}

static bool is_keys(const struct model_line *line) {
        return is_pattern(line) || IS(line->name, "string") || IS(line->name, "binary");
}

static bool is_principal(const struct model_line *line) {
        return IS(line->name, "any") || IS(line->name, "client") || IS(line->name, "user");
}

/* Parse words in braces at the beginning of the text. */
static bool is_in_braces(struct slice text) {
        size_t length = 0, n_letters = 0;
        const char *words = (const char *)text.data + 1;

        if (slice_starts_with(text, SLICE_LITERAL("{principal")))
                return true;
        for (; 1 + length < text.length &&
               strchr("_-. abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", words[length] ?: '{');
             length++)
                n_letters += isalpha(words[length]) != 0;
        return text.data[0] == '{' && n_letters > 0 && 1 + length < text.length && words[length] == '}';
}

/*
 * The variable at the beginning of the text. Returns its length, or 0 if there is none. *ret_name:
 * its value.
 */
static size_t variable_at(struct slice text, const struct request_origin *origin, struct slice *ret_name) {
        const struct {
                const char *text;
                struct slice name;
        } variables[] = { { "{client}", origin->client },
                          { "{principal.clientId}", origin->client },
                          { "{user}", origin->user },
                          { "{principal.username}", origin->user } };

        for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
                if (slice_starts_with(text, slice_from_string(variables[i].text))) {
                        *ret_name = variables[i].name;
                        return strlen(variables[i].text);
                }
        return 0;
}

/*
 * Append the characters of a text. The number of a character consists of its UTF-8 bytes, the first
 * one most significant.
 */
static void append(struct characters *characters, struct slice text, bool is_literal) {
        for (size_t at = 0, end; at < text.length; at = end) {
                uint32_t point = text.data[at];

                for (end = at + 1;
                     text.data[at] >= 0xC0 && end < text.length && end < at + 4 && text.data[end] >> 6 == 2;
                     end++)
                        point = point << 8 | text.data[end];
                ASSERT(characters->n < CHARACTERS_MAX);
                characters->is_literal[characters->n] = is_literal;
                characters->points[characters->n++] = point;
        }
        characters->points[characters->n] = 0;
}

/* Return the end of the pattern's item at `at`, or 0 if the item is invalid. */
static size_t item_end(struct slice text, size_t at) {
        size_t end = at + 1;

        if (text.data[at] != '[') {
                while (end < text.length && text.data[end] >> 6 == 2)
                        end++;
                return end;
        }

        if (end < text.length && text.data[end] == '!')
                end++;
        for (end++; end < text.length && text.data[end] != ']';)
                end++;
        if (end >= text.length || contains(part(text, at, end), SLICE_LITERAL("{client}")) ||
            contains(part(text, at, end), SLICE_LITERAL("{user}")) ||
            contains(part(text, at, end), SLICE_LITERAL("{principal")))
                return 0;
        return end + 1;
}

/*
 * Expand the variables of a line. Returns false if it is invalid. *ret_is_known: whether every
 * variable has a value.
 */
static bool expand(const struct model_line *line, const struct request_origin *origin,
                   struct characters *ret_expanded, bool *ret_is_known) {
        struct slice text = line->value;
        size_t n_placeholders = 0;

        ret_expanded->n = 0;
        *ret_is_known = true;
        for (size_t at = 0, end; at < text.length; at = end) {
                struct slice rest = part(text, at, text.length);
                size_t length;
                struct slice name;

                length = variable_at(rest, origin, &name);
                if (length > 0) {
                        end = at + length;
                        *ret_is_known &= name.length > 0 && slice_is_utf8(name);
                        append(ret_expanded, name, true);
                        n_placeholders++;
                        continue;
                }
                end = is_pattern(line) ? item_end(text, at) : at + 1;
                if (end == 0 || is_in_braces(rest))
                        return false;
                while (end < text.length && text.data[end] >> 6 == 2)
                        end++;
                append(ret_expanded, part(text, at, end), !is_pattern(line));
        }
        return text.length > 0 && n_placeholders <= POLICY_PLACEHOLDERS_MAX &&
               naive_glob_is_valid(ret_expanded);
}

static bool is_valid(const struct model_line *line) {
        const struct request_origin origin = { SLICE_LITERAL("c"), SLICE_LITERAL("u"), true };
        struct characters expanded;
        bool is_known;

        if (is_section(line))
                return line->name.length > 0 && !contains(line->name, SLICE_LITERAL("]"));
        if (IS(line->name, "access"))
                return IS(line->value, "read") || IS(line->value, "write") || IS(line->value, "readwrite");
        if (IS(line->name, "any"))
                return IS(line->value, "yes");
        if (is_principal(line))
                return line->value.length > 0 && !IS(line->value, "*");
        if (IS(line->name, "binary")) {
                CLEANUP(buf_deinit) struct buf bytes = { 0 };

                return base64_append_decoded(&bytes, line->value) == 0 && bytes.length > 0;
        }
        return is_keys(line) && expand(line, &origin, &expanded, &is_known);
}

/* Split a line. Returns false for a comment or an empty line. */
static bool read_line(struct model_line *line, struct slice text) {
        struct slice trim = trimmed(text);
        size_t end = 0;

        line->is_valid = text.length <= LINE_LENGTH_MAX && !memchr(text.data, '\0', text.length);
        if (line->is_valid && (trim.length == 0 || trim.data[0] == '#' || trim.data[0] == ';'))
                return false;

        line->is_valid &= slice_is_utf8(trim);
        for (size_t i = 1; i < text.length; i++)
                line->is_valid &= !isspace(text.data[i - 1]) || text.data[i] != ';';
        if (trim.length > 1 && trim.data[0] == '[' && trim.data[trim.length - 1] == ']') {
                line->name = part(trim, 1, trim.length - 1);
                line->value = (struct slice){ NULL, 0 };
        } else {
                while (end < trim.length && trim.data[end] != '=' && trim.data[end] != ':')
                        end++;
                line->is_valid &= end < trim.length && trim.data[0] != '[';
                line->name = trimmed(part(trim, 0, end));
                line->value = trimmed(part(trim, end < trim.length ? end + 1 : end, trim.length));
        }
        line->is_valid = line->is_valid && is_valid(line);
        return true;
}

bool policy_model_read(struct policy_model *model, struct slice text) {
        model->n_lines = 0;
        for (unsigned int number = 1; text.data; number++) {
                struct model_line *line = &model->lines[model->n_lines];
                struct slice rest, whole = slice_split(text, '\n', &rest);
                bool has_mark = number == 1 && slice_starts_with(whole, SLICE_LITERAL("\xEF\xBB\xBF"));

                if (model->n_lines == MODEL_LINES_MAX)
                        return false;
                line->number = number;
                if (whole.length > LINE_LENGTH_MAX)
                        has_mark = false; /* invalid in any case */
                model->n_lines += read_line(line, part(whole, has_mark ? 3 : 0, whole.length));
                text = rest;
        }
        return true;
}

/* Return the end of the rule that begins at this line. */
static size_t rule_end(const struct policy_model *model, size_t begin) {
        size_t end = begin + 1;

        while (end < model->n_lines && !is_section(&model->lines[end]))
                end++;
        return end;
}

static size_t count(const struct policy_model *model, size_t begin,
                    bool (*is_counted)(const struct model_line *line)) {
        size_t n = 0;

        for (size_t i = begin + 1; i < rule_end(model, begin); i++)
                n += is_counted(&model->lines[i]);
        return n;
}

static bool is_access(const struct model_line *line) {
        return IS(line->name, "access");
}

static bool is_rule_valid(const struct policy_model *model, size_t begin) {
        const struct model_line *lines = model->lines;

        for (size_t i = 0; i < begin; i++)
                if (is_section(&lines[i]) && slice_equal(lines[i].name, lines[begin].name))
                        return false;
        return count(model, begin, is_access) == 1 && count(model, begin, is_principal) > 0 &&
               count(model, begin, is_keys) > 0;
}

bool policy_model_is_valid(const struct policy_model *model) {
        for (size_t i = 0; i < model->n_lines; i++)
                if (!model->lines[i].is_valid || (i == 0 && !is_section(&model->lines[i])) ||
                    (is_section(&model->lines[i]) && !is_rule_valid(model, i)))
                        return false;
        return true;
}

static bool line_names_origin(const struct policy_model *model, const struct model_line *line,
                              const struct request_origin *origin) {
        if (!origin->is_verified && !model->allows_unverified)
                return false;
        return IS(line->name, "any") ||
               (IS(line->name, "client") && slice_equal(line->value, origin->client)) ||
               (IS(line->name, "user") && slice_equal(line->value, origin->user));
}

static bool line_has_access(const struct model_line *line, enum access access) {
        return is_access(line) &&
               (IS(line->value, "readwrite") ||
                (access == ACCESS_READ ? IS(line->value, "read") : IS(line->value, "write")));
}

/* Return whether the rule that begins at this line grants the origin this access to any key. */
static bool rule_grants(const struct policy_model *model, size_t begin, const struct request_origin *origin,
                        enum access access) {
        bool names_origin = false, has_access = false;

        for (size_t i = begin + 1; i < rule_end(model, begin); i++) {
                names_origin |= line_names_origin(model, &model->lines[i], origin);
                has_access |= line_has_access(&model->lines[i], access);
        }
        return names_origin && has_access;
}

static bool line_matches_key(const struct model_line *line, const struct request_origin *origin,
                             struct slice key) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 };
        struct characters expanded, characters;
        bool is_known;

        if (IS(line->name, "binary")) {
                base64_append_decoded(&bytes, line->value);
                return slice_equal(buf_slice(&bytes), key);
        }
        expand(line, origin, &expanded, &is_known);
        characters.n = 0;
        append(&characters, key, true);
        return is_known && naive_glob_matches(&expanded, &characters);
}

bool policy_model_grants(const struct policy_model *model, const struct request_origin *origin,
                         enum access access, struct slice key, unsigned int number) {
        for (size_t begin = 0; begin < model->n_lines; begin = rule_end(model, begin)) {
                if (!rule_grants(model, begin, origin, access))
                        continue;
                for (size_t i = begin + 1; i < rule_end(model, begin); i++)
                        if (is_keys(&model->lines[i]) && (number == 0 || model->lines[i].number == number) &&
                            line_matches_key(&model->lines[i], origin, key))
                                return true;
        }
        return false;
}

bool policy_model_grants_any(const struct policy_model *model, const struct request_origin *origin,
                             enum access access) {
        for (size_t begin = 0; begin < model->n_lines; begin = rule_end(model, begin))
                if (rule_grants(model, begin, origin, access))
                        return true;
        return false;
}

struct slice policy_model_rule(const struct policy_model *model, unsigned int number) {
        struct slice name = { NULL, 0 };

        for (size_t i = 0; i < model->n_lines && model->lines[i].number <= number; i++)
                if (is_section(&model->lines[i]))
                        name = model->lines[i].name;
        return name;
}
