# SPDX-License-Identifier: Apache-2.0
#
# Prints the bash completion of statestorectl. Reads commands.tsv: server/man/print_tables.c lists its columns.

BEGIN { FS = "\t" }

# Return the words of a placeholder such as on|off, separated by blanks.
function alternatives(placeholder) {
        gsub(/\|/, " ", placeholder)
        return placeholder
}

$1 == "command" { commands = commands " " $2; synopsis[$2] = $3 }

$1 == "words" { proposed[$2] = proposed[$2] "                        '" $3 "') words='" $4 "' ;;\n" }

$1 == "option" {
        words = " --" $2 ($3 == "" ? "" : " -" $3)
        n = split($8, command_names, ",")
        for (i = 1; i <= n; i++)
                options[command_names[i]] = options[command_names[i]] words
        if (n == 0)
                options[""] = options[""] words
        if ($4 != "" && $4 !~ /^\[=/) {
                flag = "--" $2 ($3 == "" ? "" : "|-" $3)
                with_value = with_value (with_value == "" ? "" : "|") flag
                if ($4 ~ /\|/)
                        choices = choices "        " flag ") COMPREPLY=($(compgen -W '" alternatives($4) "' -- \"$current\")); return ;;\n"
                if ($4 ~ /^(FILE|DIR)$/)
                        with_file = with_file (with_file == "" ? "" : "|") flag
        }
}

END {
        print "# bash completion for statestorectl; generated from its tables"
        print ""
        print "_statestorectl() {"
        print "        local current=$2 previous=$3 command= argument= i options words="
        print ""
        print "        COMPREPLY=()"
        print "        for ((i = 1; i < COMP_CWORD; i++)); do"
        print "                case ${COMP_WORDS[i]} in"
        print "                " with_value ") [[ ${COMP_WORDS[++i]} == = ]] && ((i++)) ;;"
        print "                -*) ;;"
        print "                *) [[ -z $command ]] || { argument=${COMP_WORDS[i]}; break; }; command=${COMP_WORDS[i]} ;;"
        print "                esac"
        print "        done"
        print ""
        print "        case $previous in"
        print "        " with_file ") compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\")); return ;;"
        printf "%s", choices
        print "        " with_value ") return ;;"
        print "        esac"
        print ""
        print "        options='" options[""] "'"
        print "        case $command in"
        for (name in options)
                if (name != "")
                        print "        " name ") options+='" options[name] "' ;;"
        print "        esac"
        print ""
        print "        if [[ $current == -* ]]; then"
        print "                COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))"
        print "        elif [[ -z $command ]]; then"
        print "                COMPREPLY=($(compgen -W '" substr(commands, 2) "' -- \"$current\"))"
        print "        else"
        print "                case $command in"
        for (name in synopsis)
                if (synopsis[name] ~ /FILE|DIR/)
                        print "                " name ") compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\")) ;;"
                else if (synopsis[name] ~ /COMMAND/)
                        print "                " name ") compopt -o filenames; COMPREPLY=($(compgen -c -f -- \"$current\")) ;;"
                else if (name in proposed)
                        print "                " name ")\n                        case $argument in\n" proposed[name] \
                              "                        esac\n" \
                              "                        if [[ $words == FILE ]]; then\n" \
                              "                                compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"))\n" \
                              "                        else\n" \
                              "                                COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n" \
                              "                        fi ;;"
        print "                esac"
        print "        fi"
        print "}"
        print ""
        print "complete -F _statestorectl statestorectl"
}
