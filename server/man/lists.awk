# SPDX-License-Identifier: Apache-2.0
#
# Fills the lists of a manual page: reads a table that print_tables wrote, then a page for scdoc. A line
# @name@ of the page stands for a list.
#
# usage: awk -v version=VERSION -f lists.awk TABLE PAGE

BEGIN { FS = "\t" }

# Read the table.
FILENAME == ARGV[1] && $1 == "command" { commands[++n_commands] = $2; synopsis[$2] = $3; summary[$2] = $4; next }
FILENAME == ARGV[1] && $1 == "help"    { help[$2] = help[$2] $3 "\n"; next }
FILENAME == ARGV[1]                    { rows[++n_rows] = $0; next }

# Copy the page.
/^@settings@$/     { each_setting(); next }
/^@commands@$/     { for (i = 1; i <= n_commands; i++) command(commands[i]); next }
/^@options@$/      { options_of(""); next }
/^@[a-z-]*@$/      { print "lists.awk: no such list: " $0 >"/dev/stderr"; exit 1 }
                   { gsub(/@version@/, version); print }

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
                if (fields[9] != "")
                        setting(fields)
        }
}

# fields: of an option, see print_tables.c.
function setting(fields) {
        if (fields[9] != section)
                print "## [" literal(fields[9]) "]\n"
        section = fields[9]

        print bold(fields[10]) " = " underlined(fields[4] == "" ? "on|off" : fields[4])
        print "\t" literal(sentence(fields[7])) "."
        printf "\tExpected: %s. %s. %s. ", literal(trimmed(fields[11])),
               fields[6] == "" ? "No default" : "Default: " bold(fields[6]),
               fields[12] == "live" ? "SIGHUP changes it" : "A change needs a restart"
        print "Flag " bold("--" fields[2]) ", variable " bold(fields[5]) "."
        print ""
}

function trimmed(text) {
        sub(/,$/, "", text)
        return text
}

# Print the options of a command; "": the options of all commands, or of a program without commands.
function options_of(name,   i, fields) {
        for (i = 1; i <= n_rows; i++) {
                split(rows[i], fields, FS)
                if (name == "" ? fields[8] == "" : index("," fields[8] ",", "," name ","))
                        option(fields)
        }
}

function option(fields,   line) {
        line = (fields[3] == "" ? "" : bold("-" fields[3]) ", ") bold("--" fields[2])
        print line (fields[4] == "" ? "" : " " underlined(fields[4]))
        line = "\t" literal(sentence(fields[7])) "."
        if (fields[6] != "")
                line = line " Default: " bold(fields[6]) "."
        if (fields[5] != "")
                line = line " Variable " bold(fields[5]) "."
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
