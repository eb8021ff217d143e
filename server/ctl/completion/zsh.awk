# SPDX-License-Identifier: Apache-2.0
#
# Prints the zsh completion of statestorectl. Reads commands.tsv: server/man/print_tables.c lists its columns.

BEGIN { FS = "\t" }

# Return the action of _arguments that completes a value with this placeholder.
function values(placeholder) {
        if (placeholder ~ /FILE/)
                return "_files"
        if (placeholder ~ /DIR/)
                return "_directories"
        if (placeholder ~ /\|/) {
                gsub(/\|/, " ", placeholder)
                return "(" placeholder ")"
        }
        return placeholder == "HOST" ? "_hosts" : " "
}

# Escape text for a single-quoted argument of _arguments.
function quoted(text) {
        gsub(/\\|\[|\]|:/, "\\\\&", text)
        gsub(/'/, "'\\''", text)
        return text
}

$1 == "command" { names[++n_commands] = $2; synopsis[$2] = $3; summary[$2] = $4 }

$1 == "words" {
        action = $4 == "FILE" ? "_files" : "'(" $4 ")'"
        proposed[$2] = proposed[$2] "                        '" $3 "') values=" action " ;;\n"
}

$1 == "option" {
        spec = $4 == "" ? "" : ($4 ~ /^\[=/ ? "::" : ":") quoted($4) ":" values($4)
        equals = $4 == "" ? "" : ($4 ~ /^\[=/ ? "=-" : "=")
        lines = "                '--" $2 equals "[" quoted($7) "]" spec "'\n"
        if ($3 != "")
                lines = lines "                '-" $3 "[" quoted($7) "]" spec "'\n"
        n = split($8, command_names, ",")
        for (i = 1; i <= n; i++)
                options[command_names[i]] = options[command_names[i]] lines
        if (n == 0)
                options[""] = options[""] lines
}

END {
        print "#compdef statestorectl"
        print "# zsh completion for statestorectl; generated from its tables"
        print ""
        print "_statestorectl() {"
        print "        local curcontext=$curcontext state state_descr line"
        print "        typeset -A opt_args"
        print "        local -a commands common own"
        print "        local values"
        print ""
        print "        commands=("
        for (i = 1; i <= n_commands; i++)
                print "                '" names[i] ":" quoted(summary[names[i]]) "'"
        print "        )"
        print "        common=("
        printf "%s", options[""]
        print "        )"
        print ""
        print "        _arguments -C \"${common[@]}\" ': :->command' '*:: :->argument' && return"
        print "        case $state in"
        print "        command) _describe -t commands command commands ;;"
        print "        argument)"
        print "                case $words[1] in"
        for (i = 1; i <= n_commands; i++) {
                name = names[i]
                print "                " name ")"
                if (name in proposed)
                        print "                case ${words[2,CURRENT-1][1]} in\n" proposed[name] "                esac"
                print "                own=("
                printf "%s", options[name]
                if (synopsis[name] ~ /COMMAND/)
                        print "                '1:KEY: ' '*::COMMAND:_normal'"
                else if (name in proposed)
                        print "                \"*:" synopsis[name] ":$values\""
                else if (synopsis[name] != "")
                        print "                '*:" quoted(synopsis[name]) ":" values(synopsis[name]) "'"
                print "                ) ;;"
        }
        print "                esac"
        print "                _arguments \"${common[@]}\" \"${own[@]}\""
        print "                ;;"
        print "        esac"
        print "}"
        print ""
        print "_statestorectl \"$@\""
}
