# SPDX-License-Identifier: Apache-2.0
#
# Fills the lists of a manual page: reads a table that print_tables wrote, then a page for scdoc. A line
# @name@ of the page stands for a list; in a line, @read@ and @write@ stand for the verbs of this access.
#
# usage: awk -v version=VERSION -f lists.awk TABLE PAGE

BEGIN {
        FS = "\t"
        # The fields of an option: see print_tables.c.
        FLAG = 2; LETTER = 3; ARGUMENT = 4; VARIABLE = 5; DEFAULT = 6; HELP = 7; COMMANDS = 8; SECTION = 9; NAME = 10
        EXPECTED = 11; RELOAD = 12
}

# Read the table.
FILENAME == ARGV[1] && $1 == "command" { commands[++n_commands] = $2; synopsis[$2] = $3; summary[$2] = $4; next }
FILENAME == ARGV[1] && $1 == "help"    { help[$2] = help[$2] $3 "\n"; next }
FILENAME == ARGV[1] && $1 == "verb"    { verbs[$3] = verbs[$3] (verbs[$3] == "" ? "" : ", ") $2; next }
FILENAME == ARGV[1] && $1 == "words"   { next } # for the shell completions
FILENAME == ARGV[1]                    { rows[++n_rows] = $0; next }

# Copy the page.
/^@settings@$/     { each_setting(); next }
/^@commands@$/     { for (i = 1; i <= n_commands; i++) command(commands[i]); next }
/^@options@$/      { options_of(""); next }
/^@[a-z-]*@$/      { print "lists.awk: no such list: " $0 >"/dev/stderr"; exit 1 }
                   { gsub(/@version@/, version); gsub(/@read@/, verbs["read"]); gsub(/@write@/, verbs["write"]); print }

# Escape text for scdoc.
function literal(text) {
        gsub(/[\\*_~#`]/, "\\\\&", text)
        sub(/^[-[|]/, "\\\\&", text) # neither a list nor a table
        return text
}

function bold(text) { return "*" literal(text) "*" }
function underlined(text) { return text == "" ? "" : "_" literal(text) "_" }

# Capitalize the first letter, unless the text begins with a value and a colon.
function sentence(text) { return text ~ /^[^ ]*:/ ? text : toupper(substr(text, 1, 1)) substr(text, 2) }

function each_setting(   i, fields) {
        section = ""
        for (i = 1; i <= n_rows; i++) {
                split(rows[i], fields, FS)
                if (fields[SECTION] != "")
                        setting(fields)
        }
}

function setting(fields) {
        if (fields[SECTION] != section)
                print "## [" literal(fields[SECTION]) "]\n"
        section = fields[SECTION]

        print bold(fields[NAME]) " = " underlined(fields[ARGUMENT] == "" ? "on|off" : fields[ARGUMENT])
        print "\t" literal(sentence(fields[HELP])) "."
        printf "\tExpected: %s. %s. %s. ", literal(without_comma(fields[EXPECTED])),
               fields[DEFAULT] == "" ? "No default" : "Default: " bold(fields[DEFAULT]),
               fields[RELOAD] == "live" ? "SIGHUP changes it" : "A change needs a restart"
        print "Flag " bold("--" fields[FLAG]) ", variable " bold(fields[VARIABLE]) "."
        print ""
}

# Remove the comma at the end of an expected value: in messages the sentence continues after it.
function without_comma(text) {
        sub(/,$/, "", text)
        return text
}

# Print the options of a command; "": the options of all commands, or of a program without commands.
function options_of(name,   i, fields) {
        for (i = 1; i <= n_rows; i++) {
                split(rows[i], fields, FS)
                if (name == "" ? fields[COMMANDS] == "" : index("," fields[COMMANDS] ",", "," name ","))
                        option(fields)
        }
}

function option(fields,   line, optional) {
        optional = fields[ARGUMENT] ~ /^\[=/ ? fields[ARGUMENT] : ""
        line = (fields[LETTER] == "" ? "" : bold("-" fields[LETTER]) ", ") bold("--" fields[FLAG] optional)
        print line (optional != "" || fields[ARGUMENT] == "" ? "" : " " underlined(fields[ARGUMENT]))
        line = "\t" literal(sentence(fields[HELP])) "."
        if (fields[DEFAULT] != "")
                line = line " Default: " bold(fields[DEFAULT]) "."
        if (fields[VARIABLE] != "")
                line = line " Variable " bold(fields[VARIABLE]) "."
        print line
        print ""
}

# Print a command with its help. Indented lines of the help become literal blocks.
function command(name,   lines, n, i, in_example, is_example) {
        print "## " literal(name) "\n"
        print bold("statestorectl " name) (synopsis[name] == "" ? "" : " " underlined(synopsis[name])) "\n"
        print literal(sentence(summary[name])) ".\n"
        n = split(help[name], lines, "\n") - 1
        in_example = 0
        for (i = 1; i <= n; i++) {
                is_example = lines[i] ~ /^ / || (in_example && lines[i] == "" && lines[i + 1] ~ /^ /)
                if (is_example != in_example)
                        print is_example ? "```" : "```\n"
                in_example = is_example
                print is_example ? substr(lines[i], 3) : literal(lines[i])
        }
        print in_example ? "```\n" : ""
        options_of(name)
}
