# SPDX-License-Identifier: Apache-2.0
"""Shell completions of statestorectl."""

import re
import subprocess

import pytest

from support.double import running_double
from support.process import BUILD, CTL, PATIENCE

BASH = BUILD / "server" / "ctl" / "completion" / "statestorectl"
ZSH = BUILD / "server" / "ctl" / "completion" / "_statestorectl"

GRAMMAR = {"usage", "or", "was", "expected"}  # words of an error that are no words of a command

# Call the function of "complete -F" as bash does. compopt works only in an interactive shell.
ASK_BASH = """\
source "$1"
shift
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_statestorectl statestorectl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def run(*argv, **more):
    return subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=PATIENCE, **more)


def bash_proposes(*words, cwd=None):
    result = run("bash", "-c", ASK_BASH, "bash", BASH, "statestorectl", *words, cwd=cwd)
    assert (result.returncode, result.stderr) == (0, "")
    return set(result.stdout.split())


def help_of(*words):
    return run(CTL, *words, "--help").stdout


COMMANDS = re.findall(r"^  ([a-z-]+)", re.search(r"^Commands;.*?\n\n", help_of(), re.MULTILINE | re.DOTALL)[0],
                      re.MULTILINE)


def options_of(command):
    """Return the options of this command, with the common options."""
    listed = help_of(command).partition("\nOptions:")[2] + help_of().partition("\nOptions of every command:")[2]
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", listed, re.MULTILINE))


def test_bash_proposes_the_commands():
    assert bash_proposes("") == set(COMMANDS)
    assert bash_proposes("ex") == {"export"}
    assert bash_proposes("--timeout", "5s", "ge") == {"get"}
    assert bash_proposes("--timeout", "=", "5s", "ge") == {"get"}


@pytest.mark.parametrize("command", COMMANDS)
def test_bash_proposes_a_commands_options_and_no_others(command):
    assert {word for word in bash_proposes(command, "-") if word.startswith("--")} == options_of(command)


def test_bash_proposes_files_where_a_file_is_expected(tmp_path):
    (tmp_path / "keys.jsonl").touch()

    assert bash_proposes("import", "ke", cwd=tmp_path) == {"keys.jsonl"}
    assert bash_proposes("get", "--password-file", "ke", cwd=tmp_path) == {"keys.jsonl"}
    assert bash_proposes("get", "ke", cwd=tmp_path) == set()
    assert bash_proposes("set", "--px", "", cwd=tmp_path) == set()
    assert bash_proposes("set", "--tls", "") == {"on", "off"}


def test_bash_proposes_commands_for_lock():
    assert {"cat", "cksum"} <= bash_proposes("lock", "key", "--", "c")


def test_bash_proposes_the_words_of_test(tmp_path):
    (tmp_path / "seed.json").touch()

    assert bash_proposes("test", "f") == {"fault"}
    assert bash_proposes("test", "clock", "") == {"advance", "freeze", "resume"}
    assert {"delay", "clear", "client", "count"} <= bash_proposes("--timeout", "5s", "test", "fault", "delay", "1s", "")
    assert bash_proposes("test", "wait-for", "t") == {"timeout"}
    assert bash_proposes("test", "seed", "see", cwd=tmp_path) == {"seed.json"}


# Calls the completion function with stubs for the functions of zsh's completion system, and prints the last argument that
# _arguments got: the action for the words of the command.
ASK_ZSH = """\
_arguments() { [[ "$*" == *"->command"* ]] && { state=argument; words=("${words[@]:1}"); ((CURRENT--)); return 1; }; print -r -- "$@[-1]"; }
words=(statestorectl "${@:2}") CURRENT=$#
_statestorectl_file=$1; shift
source $_statestorectl_file
"""


def zsh_action(*words):
    result = run("zsh", "-fc", ASK_ZSH, "zsh", ZSH, *words)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.rpartition(":")[2].strip()


def test_zsh_proposes_the_words_of_test():
    assert set(zsh_action("test", "").strip("()").split()) == bash_proposes("test", "")
    for word in "clock", "outage", "fault", "requests", "wait-for":
        assert set(zsh_action("test", word, "").strip("()").split()) == bash_proposes("test", word, "")
    assert zsh_action("test", "seed", "") == "_files"


def test_the_words_of_test_are_those_that_a_store_accepts(tmp_path):
    with running_double(tmp_path, "--control") as double:
        def refused(*words):
            return set(re.findall(r"[a-z-]+", run(CTL, "--port", str(double.port), "test", *words).stderr.partition("ERR ")[2]))

        assert bash_proposes("test", "") == refused("unknown") - GRAMMAR
        assert refused("fault", "unknown") - GRAMMAR <= bash_proposes("test", "fault", "")
        assert bash_proposes("test", "outage", "") == {"broker", "store"} <= refused("outage")
        for words in ["fault", "quota"], ["requests"], ["wait-for"]:
            assert refused(*words, "unknown", "x") - GRAMMAR <= bash_proposes("test", *words, "")


def test_zsh_has_every_command_with_its_options():
    text = ZSH.read_text()
    assert run("zsh", "-n", ZSH).stderr == ""

    common, _, own = text.partition("common=(")[2].partition("\n        )\n")
    for command in COMMANDS:
        assert f"                '{command}:" in text
        of_command = re.search(rf"^ +{command}\)\n.*?own=\(\n(.*?)^ +\) ;;$", own, re.MULTILINE | re.DOTALL)[1]
        assert {*re.findall(r"'(--[a-z-]+)", common), *re.findall(r"'(--[a-z-]+)", of_command)} == options_of(command)
