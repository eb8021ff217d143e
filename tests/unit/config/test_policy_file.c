/* SPDX-License-Identifier: Apache-2.0 */

/* Parsing of policy files, and the messages for their faults. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/policy_file.h"
#include "policy/policy.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

/* The reported faults, one per line, without the file name. */
struct reported_faults {
        char text[2000];
        size_t name_length;
};

static void append_fault(void *userdata, const char *where, const char *what) {
        struct reported_faults *said = userdata;
        size_t length = strlen(said->text);

        snprintf(said->text + length, sizeof(said->text) - length, "%s: %s\n", where + said->name_length,
                 what);
}

static struct policy *read_text(const char *text, size_t length, struct reported_faults *said) {
        int fd = memfd_create("policy", 0);
        struct policy *policy;
        char name[64];

        cr_assert_eq(write(fd, text, length), (ssize_t)length);
        *said = (struct reported_faults){ .name_length = (size_t)snprintf(name, sizeof(name),
                                                                          "/proc/self/fd/%d", fd) };
        policy = policy_file_read(name, false, append_fault, said);
        close(fd);
        return policy;
}

static bool grants(const struct policy *policy, const char *client, const char *user, enum access access,
                   struct slice key) {
        struct request_origin origin = { slice_from_string(client), slice_from_string(user), true };
        uint64_t budget = POLICY_STEPS_MAX;

        return policy_decide(policy, &origin, access, key, &budget);
}

#define ONE_RULE "access = read\nany = yes\nstring = k\n"

static const struct {
        const char *name;
        const char *text;
        const char *said; /* "": no fault */
} files[] = {
        { "nothing", "", "" },
        { "a rule", "[rule]\n" ONE_RULE, "" },
        { "another order, indented", "[rule]\n  string = k\n\tany = yes\n access = read\n", "" },
        { "comments", "# a\n; b\n[rule] \n" ONE_RULE " # c\n", "" },
        { "Windows' line ends", "[rule]\r\naccess = read\r\nany = yes\r\nstring = k\r\n", "" },
        { "a byte order mark", "\xEF\xBB\xBF[rule]\n" ONE_RULE, "" },
        { "a ';' within a value", "[rule]\n" ONE_RULE "string = a;b\npattern = a [;]b\n", "" },

        { "rules with the same name",
          "[rule]\n" ONE_RULE "[b]\n" ONE_RULE "[rule]\n" ONE_RULE "[rule]\n" ONE_RULE,
          ":9: a unique name was expected; [rule] is also in line 1\n"
          ":13: a unique name was expected; [rule] is also in line 1\n" },
        { "a comment after a value", "[rule]\n" ONE_RULE "pattern = a ;b\nclient = c\t; d\n",
          ":5: a comment must be on a line of its own; in a pattern write [;] for a ';' after a blank\n"
          ":6: a comment must be on a line of its own; in a pattern write [;] for a ';' after a blank\n" },
        { "a comment after the name of a rule", "[rule] ;\n",
          ":1: a comment must be on a line of its own; in a pattern write [;] for a ';' after a blank\n" },
        { "indentation by a vertical tab", "[rule]\n" ONE_RULE "\vpattern = [\n",
          ":5: ']' is missing after '['; write [[] for the character '['\n" },
        { "no section", "access = read\n", ":1: [RULE] was expected before this line\n" },
        { "an empty rule", "\n[rule]\n",
          ":2: the rule grants nothing: access = read, write or readwrite was expected\n"
          ":2: the rule names no client: client = ID, user = NAME or any = yes was expected\n"
          ":2: the rule names no keys: pattern, string or binary was expected\n" },
        { "no access", "[rule]\nany = yes\nstring = k\n",
          ":1: the rule grants nothing: access = read, write or readwrite was expected\n" },
        { "no client, user or any", "[rule]\naccess = read\nstring = k\n",
          ":1: the rule names no client: client = ID, user = NAME or any = yes was expected\n" },
        { "no keys", "[rule]\naccess = read\nany = yes\n",
          ":1: the rule names no keys: pattern, string or binary was expected\n" },
        { "an unknown access", "[rule]\n" ONE_RULE "[b]\naccess = Read\nany = yes\nstring = k\n",
          ":6: read, write or readwrite was expected\n" },
        { "a repeated access", "[rule]\naccess = write\n" ONE_RULE,
          ":3: access is given twice, first in line 2\n" },
        { "an unknown name", "[rule]\n" ONE_RULE "clients = a\n",
          ":5: access, any, client, user, pattern, string or binary was expected, not \"clients\"\n" },
        { "any that is not yes", "[rule]\naccess = read\nany = no\nstring = k\n",
          ":3: any = yes was expected\n" },
        { "a star as client", "[rule]\n" ONE_RULE "client = *\n",
          ":5: a literal name was expected; for all clients write any = yes\n" },
        { "an empty client", "[rule]\n" ONE_RULE "client =\n", ":5: a value was expected\n" },
        { "an empty user", "[rule]\n" ONE_RULE "user =\n", ":5: a value was expected\n" },
        { "an empty pattern", "[rule]\n" ONE_RULE "pattern =\n", ":5: a value was expected\n" },
        { "empty binary", "[rule]\n" ONE_RULE "binary =\n", ":5: a value was expected\n" },
        { "invalid base64", "[rule]\n" ONE_RULE "binary = a\n", ":5: base64 was expected\n" },
        { "an open class", "[rule]\n" ONE_RULE "pattern = a[b\n",
          ":5: ']' is missing after '['; write [[] for the character '['\n" },
        { "misplaced stars", "[rule]\n" ONE_RULE "pattern = a/**b\n",
          ":5: ** must stand alone between slashes, as in a/**/b; write * for any characters\n" },
        { "a placeholder in a class", "[rule]\n" ONE_RULE "pattern = [{user}]\n",
          ":5: {client} and {user} cannot stand inside brackets\n" },
        { "an unknown placeholder", "[rule]\n" ONE_RULE "string = {id}\n",
          ":5: {client} or {user} was expected; for the character '{' write [{] in a pattern, or the key as "
          "binary = BASE64\n" },
        { "an attribute of Azure IoT Operations",
          "[rule]\n" ONE_RULE "pattern = {principal.attributes.a}/*\n",
          ":5: attributes of clients are not known here: write {client} or {user}, or a rule with client = "
          "ID or user = NAME for each client that has the attribute\n" },
        { "too many placeholders", "[rule]\n" ONE_RULE "string = {user}{user}{user}{user}{user}\n",
          ":5: {client} and {user} were expected at most four times\n" },
        { "not UTF-8", "[rule]\n" ONE_RULE "string = \xFF\n", ":5: UTF-8 was expected\n" },
        { "a section that is not closed", "[rule\n" ONE_RULE,
          ":1: [section], name = value or a comment was expected\n"
          ":2: [RULE] was expected before this line\n:3: [RULE] was expected before this line\n"
          ":4: [RULE] was expected before this line\n" },
        { "a section without a name", "[]\n", ":1: [section], name = value or a comment was expected\n" },
        { "text after a section", "[rule] any = yes\n",
          ":1: [section], name = value or a comment was expected\n" },
        { "two lines without =", "[rule]\nx\n" ONE_RULE "y\n",
          ":2: [section], name = value or a comment was expected\n"
          ":6: [section], name = value or a comment was expected\n" },
};

Test(policy_file, reports_all_faults_with_lines) {
        for (size_t i = 0; i < N_ROWS(files); i++) {
                struct reported_faults said;
                struct policy *policy = read_text(files[i].text, strlen(files[i].text), &said);

                cr_expect_str_eq(said.text, files[i].said, ROW(files, i));
                cr_expect_eq(!policy, *files[i].said != '\0', ROW(files, i));
                policy_free(policy);
        }
}

Test(policy_file, rules_are_applied) {
        static const char text[] = "[one]\naccess = readwrite\nclient = a\nclient = b\nuser = u\n"
                                   "pattern = p/*\nstring = {client}\nbinary = AP8=\n"
                                   "[two]\nany = yes\naccess = read\nstring = p;q\n";
        struct policy *policy;
        struct reported_faults said;

        policy = read_text(text, strlen(text), &said);
        cr_assert_not_null(policy);
        cr_expect_eq(policy_n_rules(policy), 2);
        cr_expect(grants(policy, "a", "", ACCESS_WRITE, S("p/x")));
        cr_expect(grants(policy, "b", "", ACCESS_READ, S("b")));
        cr_expect(grants(policy, "c", "u", ACCESS_READ, S("c")));
        cr_expect(grants(policy, "c", "u", ACCESS_READ, S("\x00\xFF")));
        cr_expect(grants(policy, "c", "", ACCESS_READ, S("p;q")));
        cr_expect_not(grants(policy, "c", "", ACCESS_WRITE, S("p;q")));
        cr_expect_not(grants(policy, "c", "", ACCESS_READ, S("p/x")));
        cr_expect_not(grants(policy, "u", "a", ACCESS_READ, S("p/x")));
        policy_free(policy);
}

Test(policy_file, missing_file_is_a_fault) {
        struct reported_faults said = { .name_length = 0 };

        cr_expect_null(policy_file_read("/no/such/file", false, append_fault, &said));
        cr_expect_str_eq(said.text, "/no/such/file: No such file or directory\n");
}

/* Also in a last line without a newline. */
Test(policy_file, nul_byte_is_a_fault) {
        static const char text[] = "[rule]\n" ONE_RULE "string = a\0b\n";

        for (size_t length = sizeof(text) - 2; length < sizeof(text); length++) {
                struct reported_faults said;

                cr_expect_null(read_text(text, length, &said));
                cr_expect_str_eq(said.text, ":5: the line contains a NUL byte\n");
        }
}

Test(policy_file, line_length_is_limited) {
        char text[300] = "[rule]\n" ONE_RULE "string = ";
        size_t length = strlen(text), line = length - strlen("string = ");

        memset(text + length, 'x', 200);
        for (size_t end = line + 199; end <= line + 200; end++)
                for (size_t is_ended = 0; is_ended < 2; is_ended++) {
                        struct policy *policy;
                        struct reported_faults said;

                        text[end] = is_ended ? '\n' : 'x';
                        policy = read_text(text, end + is_ended, &said);
                        text[end] = 'x';
                        cr_expect_str_eq(
                                said.text,
                                end == line + 199
                                        ? ""
                                        : ":5: the line is too long: fewer than 200 bytes were expected\n");
                        policy_free(policy);
                }
}

/* SOURCE_ROOT: the directory of the project. */
Test(policy_file, example_file_is_valid) {
        struct reported_faults said = { .name_length = 0 };
        struct policy *policy;
        char name[256];

        snprintf(name, sizeof(name), "%.200s/conf/policy.conf", getenv("SOURCE_ROOT"));
        policy = policy_file_read(name, false, append_fault, &said);
        cr_assert_not_null(policy, "%s", said.text);
        cr_expect(grants(policy, "c", "u", ACCESS_WRITE, S("users/u/x")));
        cr_expect_not(grants(policy, "c", "u", ACCESS_WRITE, S("users/c/x")));
        cr_expect_not(grants(policy, "c", "", ACCESS_WRITE, S("users//x")));
        cr_expect(grants(policy, "c", "gateway", ACCESS_WRITE, S("sensors/1")));
        cr_expect_not(grants(policy, "c", "gateway", ACCESS_READ, S("sensors/1")));
        policy_free(policy);
}
