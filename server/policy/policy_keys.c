/* SPDX-License-Identifier: Apache-2.0 */

/* Parse the text of a line of keys into parts: patterns, literals and placeholders. */

#include "base/array.h"
#include "base/glob.h"
#include "policy/internal.h"

static const struct placeholder {
        struct slice text;
        enum policy_part_kind part;
} placeholders[] = {
        { SLICE_LITERAL("{client}"), PART_CLIENT },
        { SLICE_LITERAL("{principal.clientId}"), PART_CLIENT },
        { SLICE_LITERAL("{user}"), PART_USER },
        { SLICE_LITERAL("{principal.username}"), PART_USER },
};

static const struct placeholder *placeholder_at(struct slice text) {
        for (size_t i = 0; i < ARRAY_LENGTH(placeholders); i++)
                if (slice_starts_with(text, placeholders[i].text))
                        return &placeholders[i];
        return NULL;
}

static bool is_letter(uint8_t byte) {
        return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/*
 * Return whether text begins with words in braces, such as {clientid}: probably a placeholder that
 * this store does not have. JSON and numbers in braces are no words.
 */
static bool looks_like_placeholder(struct slice text) {
        bool has_letter = false;
        size_t at = 1;

        if (text.data[0] != '{')
                return false;
        for (; at < text.length && (is_letter(text.data[at]) || memchr("_-. ", text.data[at], 4)); at++)
                has_letter |= is_letter(text.data[at]);
        return (has_letter && at < text.length && text.data[at] == '}') ||
               slice_starts_with(text, SLICE_LITERAL("{principal"));
}

/* The text begins with no placeholder. */
static enum policy_outcome check_braces(struct slice text) {
        if (slice_starts_with(text, SLICE_LITERAL("{principal.attributes")))
                return POLICY_ATTRIBUTE_PLACEHOLDER;
        return looks_like_placeholder(text) ? POLICY_UNKNOWN_PLACEHOLDER : POLICY_DONE;
}

static bool has_placeholder(struct slice text) {
        for (; text.length > 0; text = slice_skip(text, 1))
                if (placeholder_at(text) || slice_starts_with(text, SLICE_LITERAL("{principal")))
                        return true;
        return false;
}

static void add_text(struct policy_keys *keys, struct slice text, bool is_pattern) {
        if (text.length > 0)
                keys->parts[keys->n_parts++] =
                        (struct policy_part){ is_pattern ? PART_PATTERN : PART_LITERAL, text };
}

/* Find the length in bytes of the item at the beginning of text: a class or a byte. */
static enum policy_outcome measure_item(struct slice text, bool is_pattern, size_t *ret_length) {
        *ret_length = 1;
        if (!is_pattern || text.data[0] != '[')
                return check_braces(text);

        *ret_length = glob_class_length(text);
        if (*ret_length == 0)
                return POLICY_OPEN_CLASS;
        return has_placeholder((struct slice){ text.data, *ret_length }) ? POLICY_PLACEHOLDER_IN_CLASS
                                                                         : POLICY_DONE;
}

static enum policy_outcome find_parts(struct policy_keys *keys, bool is_pattern) {
        struct slice rest = keys->text, before = { rest.data, 0 };
        size_t n_placeholders = 0, length;
        enum policy_outcome outcome;

        while (rest.length > 0) {
                const struct placeholder *placeholder = placeholder_at(rest);

                if (placeholder) {
                        if (n_placeholders++ == POLICY_PLACEHOLDERS_MAX)
                                return POLICY_TOO_MANY_PLACEHOLDERS;
                        add_text(keys, before, is_pattern);
                        keys->parts[keys->n_parts++] =
                                (struct policy_part){ .kind = placeholder->part, .text = { NULL, 0 } };
                        length = placeholder->text.length;
                        before = (struct slice){ rest.data + length, 0 };
                } else {
                        outcome = measure_item(rest, is_pattern, &length);
                        if (outcome != POLICY_DONE)
                                return outcome;
                        before.length += length;
                }
                rest = slice_skip(rest, length);
        }
        add_text(keys, before, is_pattern);
        return POLICY_DONE;
}

/* The part's text up to the first wildcard. */
static struct slice literal_prefix(const struct policy_part *part) {
        struct slice prefix = part->text;

        if (part->kind == PART_PATTERN)
                for (size_t i = 0; i < prefix.length; i++)
                        if (memchr("*?[", prefix.data[i], 3))
                                prefix.length = i;
        return prefix;
}

/*
 * The part's text after the last wildcard or class, and after a slash that follows a star: two stars
 * may match without their slash.
 */
static struct slice literal_suffix(const struct policy_part *part) {
        struct slice text = part->text, suffix = text;

        for (size_t i = 0; i < text.length && part->kind == PART_PATTERN; i++)
                if (memchr("*?]", text.data[i], 3) ||
                    (i > 0 && text.data[i] == '/' && text.data[i - 1] == '*'))
                        suffix = slice_skip(text, i + 1);
        return suffix;
}

/* Check the wildcards of a pattern. Its classes are closed. */
static enum policy_outcome check_stars(const struct policy_keys *keys) {
        struct glob_part parts[POLICY_PARTS_MAX];

        for (size_t i = 0; i < keys->n_parts; i++)
                parts[i] = (struct glob_part){ keys->parts[i].text, keys->parts[i].kind != PART_PATTERN };
        return glob_check_parts(parts, keys->n_parts) == GLOB_VALID ? POLICY_DONE : POLICY_MISPLACED_STARS;
}

enum policy_outcome policy_keys_parse(struct policy_keys *keys, enum policy_keys_kind kind) {
        enum policy_outcome outcome;

        if (keys->text.length == 0)
                return POLICY_EMPTY;

        if (kind == POLICY_BINARY) {
                keys->parts[keys->n_parts++] = (struct policy_part){ PART_LITERAL, keys->text };
        } else {
                if (!slice_is_utf8(keys->text))
                        return POLICY_NOT_UTF8;
                outcome = find_parts(keys, kind == POLICY_PATTERN);
                if (outcome == POLICY_DONE)
                        outcome = check_stars(keys);
                if (outcome != POLICY_DONE)
                        return outcome;
        }

        keys->prefix = literal_prefix(&keys->parts[0]);
        keys->suffix = literal_suffix(&keys->parts[keys->n_parts - 1]);
        keys->is_one_key = keys->n_parts == 1 && keys->prefix.length == keys->text.length;
        return POLICY_DONE;
}
