# SPDX-License-Identifier: Apache-2.0
"""SCAN's patterns are globs over the whole key (PROTOCOL.md "Listing keys")."""

import pytest

from support.scan import scan

# A pattern, tails of keys that match it, tails that do not.
PATTERNS = [
    ("*", ["", "a", "a/b", "*"], []),
    ("a", ["a"], ["", "A", "aa", "ba", "ab"]),
    ("a*", ["a", "ab", "a*"], ["", "ba"]),
    ("*a", ["a", "ba", "aa"], ["", "ab"]),
    ("*a*", ["a", "bab", "aa"], ["", "b"]),
    ("a*c*e", ["ace", "abcde", "accee"], ["ae", "acd", "abcdef"]),
    ("**", ["", "a", "a/b"], []),
    ("a/**", ["a/", "a/b", "a/b/c"], ["a", "ab"]),
    ("a/**/c", ["a/c", "a//c", "a/b/c", "a/b/b/c"], ["ac", "a/bc", "a/c/d"]),
    ("**/c", ["c", "b/c"], ["bc"]),
    ("?", ["a", "?", "é", "日", "𝄞"], ["", "ab", "éé"]),
    ("??", ["ab", "é日"], ["a", "é", "abc"]),
    ("?*", ["a", "ab"], [""]),
    ("[abc]", ["a", "b", "c"], ["", "d", "ab", "[abc]"]),
    ("[a-c]", ["a", "b", "c"], ["d", "-", "A"]),
    ("[a-cx-z]", ["a", "c", "x", "z"], ["d", "w", "-"]),
    ("[!a]", ["b", "!", "é"], ["a", "", "bb"]),
    ("[!a-c]", ["d", "-"], ["a", "b", "c", ""]),
    ("[*]", ["*"], ["", "a", "**", "[*]"]),
    ("[?]", ["?"], ["a"]),
    ("a[*]b", ["a*b"], ["axb", "ab"]),
    ("[é]", ["é"], ["e", "è"]),
    ("[à-ü]", ["é", "ö"], ["e", "z"]),
    ("x[0-9][0-9]*", ["x12", "x123", "x99z"], ["x1", "x1a", "12"]),
    ("a.c", ["a.c"], ["abc"]),
    ("a\\c", ["a\\c"], ["ac"]),
    ("(a|b)+", ["(a|b)+"], ["a", "ab"]),
    ("[^a]", ["^", "a"], ["b"]),
    ("{a,b}", ["{a,b}"], ["a", "b"]),
    ("*a" * 12 + "*b", ["a" * 12 + "b"], ["a" * 200]),
]


@pytest.mark.parametrize("pattern, matching, others", PATTERNS, ids=[pattern for pattern, _, _ in PATTERNS])
def test_a_pattern_lists_exactly_the_matching_keys(client, key, pattern, matching, others):
    client.request_all(("SET", f"{key}/{tail}", "value") for tail in matching + others)

    assert sorted(scan(client, f"{key}/{pattern}")) == sorted(f"{key}/{tail}".encode() for tail in matching)


def test_a_star_before_the_prefix_matches_whole_keys_only(client, key):
    client.request_all(("SET", name, "value") for name in (key, f"{key}x", f"x{key}"))

    assert sorted(scan(client, f"*{key}")) == sorted([key.encode(), f"x{key}".encode()])


@pytest.mark.parametrize("pattern", ["***", "a**", "**a", "a/**b", "a[b]**", "[", "a[]", "[!]", "[a-"])
def test_an_invalid_pattern_is_a_syntax_error(client, pattern):
    assert client.request("SCAN", pattern).payload == b"-ERR syntax error\r\n"


@pytest.mark.parametrize("pattern", [b"\xff", b"*\xc3", b"\xff["])
def test_a_pattern_that_is_not_utf8_lists_nothing(client, key, pattern):
    client.request("SET", key, "value")
    assert client.request("SCAN", pattern).payload == b"*1\r\n*0\r\n"


def test_keys_that_are_not_utf8_are_not_listed(client, key):
    client.request("SET", key.encode() + b"\xff", "value")
    assert scan(client, f"{key}*") == []
