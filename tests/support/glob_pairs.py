#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints lines with a glob pattern and a key, separated by a tab: usage: glob_pairs.py SEED COUNT

Most patterns are short and made of what has a meaning in a pattern. A key is what its pattern may match, changed in
at most a few places, so that about half of the keys match.
"""

import random
import sys

CHARACTERS = ["a", "b", "c", "/", "/", ".", "-", "]", "!", "^", "\\", "{", "}", "é", "日", "𝄞", "*", "?", "["]
ITEMS = (
    ["*"] * 6 + ["?"] * 3 + ["/"] * 5 + ["**"] * 2 + ["***", "/**/", "/**/", "/**", "**/", "**/", "**/**"]
    + ["a"] * 4 + ["b"] * 3 + CHARACTERS
    + ["[ab]", "[!a]", "[a-c]", "[!a-c]", "[^a]", "[*]", "[?]", "[[]", "[]]", "[]a]", "[!]a]", "[a-]", "[-a]", "[!-a]"]
    + ["[c-a]", "[à-日]", "[!é]", "[/]", "[!/]", "[a/b]", "[]-a]", "[--a]", "[+--]", "[!!]", "[a-c-e]", "[**]", "[", "[!", "[]", "[!]", "[a-"]
)
WHOLE = ["", "*", "**", "***", "/", "**/", "/**", "**/*", "*/**", "**/**", "**/**/", "**/a/**", "a/**/**/b", "?", "[", "]", "[]", "[!]"]


def pattern(random):
    if random.random() < 0.02:
        return random.choice(WHOLE)
    return "".join(random.choice(ITEMS) for _ in range(random.randint(0, random.choice([2, 4, 6, 10]))))


def text(random, length):
    return "".join(random.choice(CHARACTERS) for _ in range(random.randint(0, length)))


def instance(random, pattern):
    """A text that the pattern may match."""
    result, at = "", 0
    while at < len(pattern):
        end = at + 1
        if pattern.startswith("**", at):
            end += 1
            result += random.choice(["", "/", "a/", "a/b/", "a", text(random, 4) + "/"])
            end += pattern.startswith("/", end) and random.random() < 0.9
        elif pattern[at] == "*":
            result += text(random, 4)
        elif pattern[at] == "?":
            result += random.choice(CHARACTERS)
        elif pattern[at] == "[" and pattern.find("]", at + 2) > 0:
            end = pattern.find("]", at + 2) + 1
            result += random.choice(pattern[at + 1:end - 1] + "".join(CHARACTERS))
        else:
            result += pattern[at]
        at = end
    return result


def change(random, key):
    at = random.randint(0, len(key))
    return random.choice([key[:at] + key[at + 1:], key[:at] + random.choice(CHARACTERS) + key[at:], key[:at], key[at:]])


def main():
    choices = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        made = pattern(choices)
        key = instance(choices, made)
        while choices.random() < 0.35:
            key = change(choices, key)
        print(f"{made}\t{key}")


main()
