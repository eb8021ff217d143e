/* SPDX-License-Identifier: Apache-2.0 */

/* Patterns of PROTOCOL.md "Listing keys". */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/glob.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *name;
        struct slice pattern, text;
        bool matches;
} globs[] = {
        { "the text itself", S("key"), S("key"), true },
        { "another text", S("key"), S("kez"), false },
        { "the start of the text", S("ke"), S("key"), false },
        { "more than the text", S("keys"), S("key"), false },
        { "case counts", S("Key"), S("key"), false },
        { "nothing, nothing", S(""), S(""), true },
        { "nothing, something", S(""), S("a"), false },
        { "something, nothing", S("a"), S(""), false },
        { "a NUL is a character", S("a\0b"), S("a\0b"), true },
        { "past a NUL", S("a\0b"), S("a\0c"), false },

        { "a star, anything", S("*"), S("anything"), true },
        { "a star, nothing", S("*"), S(""), true },
        { "two stars at the start, a level", S("**/b"), S("a/b"), true },
        { "two stars at the start, levels", S("**/b"), S("a/a/b"), true },
        { "two stars at the start match no level", S("**/b"), S("b"), true },
        { "two stars at the start match whole levels", S("**/b"), S("ab"), false },
        { "two stars between match no level", S("a/**/b"), S("a/b"), true },
        { "two stars between match an empty level", S("a/**/b"), S("a//b"), true },
        { "two stars between need both slashes", S("a/**/b"), S("ab"), false },
        { "two stars go on to a later level", S("a/**/b/c"), S("a/b/b/c"), true },
        { "two stars after a star", S("*/**/b*"), S("x/a/bc"), true },
        { "two stars before a star", S("**/*b"), S("x/abb"), true },
        { "two stars at the end", S("a/**"), S("a/b/c"), true },
        { "two stars at the end match nothing", S("a/**"), S("a/"), true },
        { "two stars at the end need the slash", S("a/**"), S("a"), false },
        { "two stars and a slash at the end", S("a/**/"), S("a/b"), true },
        { "two stars alone, anything", S("**"), S("a/b"), true },
        { "two stars alone, nothing", S("**"), S(""), true },
        { "a star at the end", S("key*"), S("key-1"), true },
        { "a star at the end matches the empty text", S("key*"), S("key"), true },
        { "a star at the end, another start", S("key*"), S("kex-1"), false },
        { "a star at the start", S("*-1"), S("key-1"), true },
        { "a star at the start, another end", S("*-1"), S("key-12"), false },
        { "a star between", S("a*z"), S("abcz"), true },
        { "a star between matches the empty text", S("a*z"), S("az"), true },
        { "a star goes back for a later match", S("a*bc"), S("abbbc"), true },
        { "a star goes on past a false match", S("*ab"), S("aaab"), true },
        { "a star and another", S("*a*b"), S("xaxb"), true },
        { "stars, backtracking only to the second", S("a*b*c"), S("abxbxc"), true },
        { "stars, out of order", S("*a*b"), S("ba"), false },
        { "a star matches slashes and dots", S("a*z"), S("a/./z"), true },

        { "a question mark, one character", S("?"), S("a"), true },
        { "a question mark, no character", S("?"), S(""), false },
        { "a question mark, two characters", S("?"), S("ab"), false },
        { "a question mark, a character of two bytes", S("?"), S("\xC3\xA4"), true },
        { "a question mark, a character of three bytes", S("?"), S("\xE2\x82\xAC"), true },
        { "a question mark, a character of four bytes", S("?"), S("\xF0\x9F\x98\x80"), true },
        { "two question marks for one character of two bytes", S("??"), S("\xC3\xA4"), false },
        { "a question mark in the middle", S("a?c"),
          S("a\xC3\xA4"
            "c"),
          true },
        { "a question mark after a star, several bytes", S("*?"), S("\xE2\x82\xAC"), true },
        { "a star does not split a character", S("*\xA4"), S("\xC3\xA4"), false },

        { "a class, its first", S("[abc]"), S("a"), true },
        { "a class, its last", S("[abc]"), S("c"), true },
        { "a class, another character", S("[abc]"), S("d"), false },
        { "a class matches one character", S("[abc]"), S("ab"), false },
        { "a class does not match the empty text", S("[abc]"), S(""), false },
        { "a class in the middle", S("k[12]x"), S("k2x"), true },
        { "a range, its ends", S("[a-c]"), S("a"), true },
        { "a range, its other end", S("[a-c]"), S("c"), true },
        { "a range, before", S("[b-d]"), S("a"), false },
        { "a range, after", S("[b-d]"), S("e"), false },
        { "a range of one", S("[b-b]"), S("b"), true },
        { "a range backwards", S("[c-a]"), S("b"), false },
        { "two ranges", S("[a-c0-9]"), S("5"), true },
        { "a range and more", S("[a-cx]"), S("x"), true },
        { "a range of code points", S("[\xC3\xA0-\xE2\x82\xAC]"), S("\xCF\x80"), true },
        { "past a range of code points", S("[\xC3\xA0-\xC3\xBF]"), S("\xC4\x80"), false },
        { "members of several bytes", S("[\xC3\xA4\xC3\xB6]"), S("\xC3\xB6"), true },
        { "a byte of a member is not a member", S("[\xC3\xA4\xC3\xB6]"), S("\xC3\xA6"), false },
        { "a minus at the start", S("[-a]"), S("-"), true },
        { "a minus at the end", S("[a-]"), S("-"), true },
        { "a minus at the end is no range", S("[a-]"), S("b"), false },

        { "a negated class, another character", S("[!abc]"), S("d"), true },
        { "a negated class, a member", S("[!abc]"), S("b"), false },
        { "a negated range", S("[!a-c]"), S("b"), false },
        { "a negated class does not match the empty text", S("[!a]"), S(""), false },
        { "a negated class, several bytes", S("[!a]"), S("\xE2\x82\xAC"), true },
        { "an exclamation mark that is not first", S("[a!]"), S("!"), true },
        { "an exclamation mark alone", S("!"), S("!"), true },
        { "a caret is a member", S("[^a]"), S("a"), true },
        { "a caret is a member itself", S("[^a]"), S("^"), true },
        { "a caret does not negate", S("[^a]"), S("b"), false },

        { "a literal star", S("[*]"), S("*"), true },
        { "a literal star matches no other character", S("[*]"), S("a"), false },
        { "a literal star in a name", S("a[*]b"), S("a*b"), true },
        { "a literal question mark", S("[?]"), S("?"), true },
        { "a literal question mark matches no other character", S("[?]"), S("a"), false },
        { "a literal bracket", S("[[]"), S("["), true },
        { "a closing bracket as first member", S("[]a]"), S("]"), true },
        { "a member after a closing bracket", S("[]a]"), S("a"), true },
        { "a negated closing bracket", S("[!]a]"), S("]"), false },
        { "a negated closing bracket, another character", S("[!]a]"), S("b"), true },
        { "a class after a star", S("*[0-9]"), S("key-7"), true },
        { "a backslash is literal", S("\\*"), S("\\any"), true },
        { "a backslash escapes nothing", S("\\*"), S("*"), false },

        { "a closing bracket alone", S("]"), S("]"), true },
};

Test(glob, matches_whole_keys) {
        for (size_t i = 0; i < N_ROWS(globs); i++) {
                uint64_t budget = 1000000;

                cr_expect_eq(glob_match(globs[i].pattern, globs[i].text, &budget), globs[i].matches,
                             ROW(globs, i));
        }
}

static const struct {
        const char *name;
        struct slice pattern;
        enum glob_fault fault;
} patterns[] = {
        { "nothing", S(""), GLOB_VALID },
        { "a star in a class", S("[***]"), GLOB_VALID },
        { "two stars alone", S("**"), GLOB_VALID },
        { "two stars between slashes", S("a/**/b"), GLOB_VALID },
        { "two stars twice", S("**/**"), GLOB_VALID },
        { "three stars", S("***"), GLOB_MISPLACED_STARS },
        { "three stars between slashes", S("/***/"), GLOB_MISPLACED_STARS },
        { "two stars after a name", S("a**"), GLOB_MISPLACED_STARS },
        { "two stars before a name", S("**a"), GLOB_MISPLACED_STARS },
        { "two stars before a name in a level", S("a/**b"), GLOB_MISPLACED_STARS },
        { "two stars after a class", S("a[b]**"), GLOB_MISPLACED_STARS },
        { "two stars after a class with a slash", S("[/]**"), GLOB_MISPLACED_STARS },
        { "two stars before a class", S("**[/]"), GLOB_MISPLACED_STARS },
        { "two stars and a question mark", S("?**"), GLOB_MISPLACED_STARS },
        { "an unclosed class", S("[abc"), GLOB_OPEN_CLASS },
        { "an unclosed class at the end", S("x["), GLOB_OPEN_CLASS },
        { "an unclosed class whose first member is a bracket", S("[]"), GLOB_OPEN_CLASS },
        { "an unclosed negation", S("[!"), GLOB_OPEN_CLASS },
        { "an unclosed negation whose first member is a bracket", S("[!]"), GLOB_OPEN_CLASS },
        { "an unclosed range", S("[a-"), GLOB_OPEN_CLASS },
};

Test(glob, refuses_invalid_patterns) {
        for (size_t i = 0; i < N_ROWS(patterns); i++) {
                enum glob_fault fault = glob_check(patterns[i].pattern);

                cr_expect_eq(fault, patterns[i].fault, ROW(patterns, i));
                cr_expect_eq(glob_fault_text(fault) == NULL, fault == GLOB_VALID, ROW(patterns, i));
        }
}

static const char *verdict_on(struct slice pattern, struct slice text) {
        uint64_t budget = 1000000;

        if (glob_check(pattern) != GLOB_VALID)
                return "invalid";
        return glob_match(pattern, text, &budget) ? "match" : "no";
}

/*
 * The verdicts of the Rust crate `glob`, made by tests/fuzz/glob_crate.sh, which also says how to
 * compare others.
 */
Test(glob, agrees_with_the_crate) {
        const char *path = getenv("GLOB_CASES");
        size_t n = 0, capacity = 0;
        char *line = NULL, own[512];
        ssize_t length;
        FILE *file;

        snprintf(own, sizeof(own), "%s/tests/unit/base/glob_cases.txt", getenv("SOURCE_ROOT") ?: ".");
        file = fopen(path ? path : own, "r");
        cr_assert(file, "%s", path ? path : own);
        while ((length = getline(&line, &capacity, file)) > 0) {
                struct slice rest, verdict, pattern, text;

                pattern = slice_split((struct slice){ (uint8_t *)line, (size_t)length - 1 }, '\t', &rest);
                text = slice_split(rest, '\t', &verdict);
                cr_expect(slice_equal_string(verdict, verdict_on(pattern, text)), "%s", line);
                n++;
        }
        cr_expect_geq(n, 4000);
        fclose(file);
        free(line);
}

Test(glob, returns_false_when_the_budget_is_used_up) {
        struct slice pattern = S("*a*a*a*b"), text = S("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
        uint64_t needed = 1000000, budget;

        cr_assert(glob_match(pattern, text, &needed));
        needed = 1000000 - needed;

        budget = needed;
        cr_expect(glob_match(pattern, text, &budget));
        for (uint64_t less = 0; less < needed; less++) {
                budget = less;
                cr_expect_not(glob_match(pattern, text, &budget), "%lu of %lu steps", less, needed);
                cr_expect_eq(budget, 0, "%lu of %lu steps", less, needed);
        }
}

Test(glob, several_matches_share_a_budget) {
        uint64_t budget = 100;

        cr_assert(glob_match(S("abc"), S("abc"), &budget));
        cr_expect_lt(budget, 100);
        cr_expect_gt(budget, 0);
        while (budget > 0)
                glob_match(S("abc"), S("abc"), &budget);
        cr_expect_not(glob_match(S("abc"), S("abc"), &budget));
}

Test(glob, charges_the_budget_for_each_member_of_a_class) {
        uint64_t few = 1000, many = 1000;

        glob_match(S("[a]"), S("a"), &few);
        glob_match(S("[abcdefghijklmnopqrstuvwxyz]"), S("a"), &many);
        cr_expect_geq(few - many, 20);
}

/* The pattern continues in memory that cannot be read. */
Test(glob, reads_no_more_of_a_class_than_the_budget_allows) {
        size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
        char *pattern =
                mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint64_t budget = page_bytes - 10;

        cr_assert_neq(pattern, MAP_FAILED);
        memset(pattern, 'a', page_bytes);
        pattern[0] = '[';
        cr_assert_eq(mprotect(pattern + page_bytes, page_bytes, PROT_NONE), 0);
        cr_expect_not(glob_match((struct slice){ (uint8_t *)pattern, 2 * page_bytes }, S("b"), &budget));
        cr_expect_eq(budget, 0);
        munmap(pattern, 2 * page_bytes);
}

static uint64_t steps_of(const char *unit, size_t n_units, struct slice text) {
        struct buf pattern = { 0 };
        uint64_t budget = UINT64_MAX;

        for (size_t i = 0; i < n_units; i++)
                buf_append_string(&pattern, unit);
        buf_append_string(&pattern, "b");
        cr_expect_not(glob_match(buf_slice(&pattern), text, &budget));
        buf_deinit(&pattern);
        return UINT64_MAX - budget;
}

static const struct {
        const char *name;
        const char *unit; /* the pattern repeats this, then ends with 'b' */
} evil[] = {
        { "stars", "*a" },
        { "stars and question marks", "*?" },
        { "a star, then letters", "a" },
        { "classes", "*[a-z]" },
        { "two stars", "a/**/" },
        { "classes of many members", "*[aaaaaaaaaaaaaaaaaaaa]" },
};

Test(glob, takes_at_most_pattern_length_times_text_length_steps) {
        static uint8_t letters[200], levels[200];

        for (size_t i = 0; i < sizeof(letters); i++) {
                letters[i] = 'a';
                levels[i] = i % 2 ? '/' : 'a';
        }
        for (size_t i = 0; i < N_ROWS(evil); i++) {
                size_t limit = 2 * (50 * strlen(evil[i].unit) + 2) * (sizeof(letters) + 1);

                cr_expect_leq(steps_of(evil[i].unit, 50, (struct slice){ letters, sizeof(letters) }), limit,
                              ROW(evil, i));
                cr_expect_leq(steps_of(evil[i].unit, 50, (struct slice){ levels, sizeof(levels) }), limit,
                              ROW(evil, i));
        }
}

#define PATTERN(text)                                                                                       \
        { S(text), false }
#define LITERAL(text)                                                                                       \
        { S(text), true }

static const struct {
        const char *name;
        struct glob_part parts[4];
        size_t n_parts;
        struct slice text;
        bool matches;
} in_parts[] = {
        { "a literal", { LITERAL("a*") }, 1, S("a*"), true },
        { "a star in a literal is literal", { LITERAL("a*") }, 1, S("abc"), false },
        { "a question mark in a literal is literal", { LITERAL("?") }, 1, S("a"), false },
        { "a class in a literal is no class", { LITERAL("[ab]") }, 1, S("a"), false },
        { "a class in a literal is literal text", { LITERAL("[ab]") }, 1, S("[ab]"), true },
        { "parts in sequence", { PATTERN("a?"), LITERAL("*"), PATTERN("c*") }, 3, S("ab*cd"), true },
        { "parts in sequence, another text",
          { PATTERN("a?"), LITERAL("*"), PATTERN("c*") },
          3,
          S("abxcd"),
          false },
        { "a star goes back over parts",
          { PATTERN("*"), LITERAL("ab"), PATTERN("c") },
          3,
          S("abxabc"),
          true },
        { "a star before a literal that does not match",
          { PATTERN("*"), LITERAL("ab") },
          2,
          S("abx"),
          false },
        { "a star at the end of a part", { PATTERN("a*"), LITERAL("") }, 2, S("abc"), true },
        { "a star at the end of the last part", { LITERAL("a"), PATTERN("*") }, 2, S("a"), true },
        { "empty parts", { LITERAL(""), PATTERN("a"), LITERAL(""), PATTERN("b") }, 4, S("ab"), true },
        { "empty parts, nothing", { LITERAL(""), PATTERN("") }, 2, S(""), true },
        { "two stars after a literal", { LITERAL("*"), PATTERN("/**/b") }, 2, S("*/x/b"), true },
        { "two stars before a literal", { PATTERN("a/**/"), LITERAL("*") }, 2, S("a/x/*"), true },
        { "two stars go back over parts",
          { PATTERN("**/"), LITERAL("b"), PATTERN("c") },
          3,
          S("b/x/bc"),
          true },
        { "more text than parts", { PATTERN("a"), LITERAL("b") }, 2, S("abc"), false },
        { "more parts than text", { PATTERN("a"), LITERAL("b") }, 2, S("a"), false },
};

Test(glob, matches_a_sequence_of_patterns_and_literals) {
        for (size_t i = 0; i < N_ROWS(in_parts); i++) {
                uint64_t budget = 1000;

                cr_expect_eq(
                        glob_match_parts(in_parts[i].parts, in_parts[i].n_parts, in_parts[i].text, &budget),
                        in_parts[i].matches, ROW(in_parts, i));
        }
}

static const struct {
        const char *name;
        struct glob_part parts[3];
        size_t n_parts;
        enum glob_fault fault;
} checked_parts[] = {
        { "stars in a literal", { LITERAL("a**[") }, 1, GLOB_VALID },
        { "two stars after a literal and a slash", { LITERAL("a"), PATTERN("/**") }, 2, GLOB_VALID },
        { "two stars after a literal", { LITERAL("a"), PATTERN("**") }, 2, GLOB_MISPLACED_STARS },
        { "two stars after a literal slash", { LITERAL("a/"), PATTERN("**") }, 2, GLOB_MISPLACED_STARS },
        { "two stars before a literal", { PATTERN("**"), LITERAL("a") }, 2, GLOB_MISPLACED_STARS },
        { "a star before a literal star", { PATTERN("*"), LITERAL("*") }, 2, GLOB_VALID },
        { "a class does not continue in the next part",
          { PATTERN("["), LITERAL("a]") },
          2,
          GLOB_OPEN_CLASS },
};

Test(glob, checks_a_sequence_of_patterns_and_literals) {
        for (size_t i = 0; i < N_ROWS(checked_parts); i++)
                cr_expect_eq(glob_check_parts(checked_parts[i].parts, checked_parts[i].n_parts),
                             checked_parts[i].fault, ROW(checked_parts, i));
}

static const struct {
        const char *name;
        struct slice pattern;
        size_t length;
} classes[] = {
        { "closed", S("[ab]c"), 4 },     { "a bracket as first member", S("[]]"), 3 },
        { "negated", S("[!]a]"), 5 },    { "unclosed", S("[ab"), 0 },
        { "nothing in it", S("[]"), 0 }, { "alone", S("["), 0 },
};

Test(glob, finds_the_end_of_a_class) {
        for (size_t i = 0; i < N_ROWS(classes); i++)
                cr_expect_eq(glob_class_length(classes[i].pattern), classes[i].length, ROW(classes, i));
}
