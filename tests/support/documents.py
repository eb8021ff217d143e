# SPDX-License-Identifier: Apache-2.0
"""Finds the fenced blocks of the documents, and compares outputs with them.

An HTML comment on the line before a block says how a test treats it. Readers of the rendered page do not see it:

    <!-- test: skip, REASON -->    not executed: changes the machine, or needs another machine
    <!-- test: by FILE -->         executed by this script, or by the test of this name
    <!-- test: background -->      runs beside the blocks that follow
    <!-- test: background until TEXT -->  the same; the next block starts when it has printed TEXT
    <!-- test: wait for FILE -->   starts when the file exists
    <!-- test: numbers vary -->    any number matches any number in the output
    <!-- test: numbers vary, repeat -->  the same; executed again until the output matches: it depends on the machine's speed
    <!-- test: now is N -->        the clock's wall time in the example, in milliseconds
    <!-- test: document dialect -->  the store speaks the document dialect
    <!-- test: maximum packet size N -->  the broker accepts no packet above N bytes
"""

import re
import subprocess
from dataclasses import dataclass

from support.process import REPOSITORY

FENCE = re.compile(r"^( *)```(\w*)$")
NOTE = re.compile(r"<!-- test: (.*) -->")
HLC = re.compile(r"\b\d{13,15}:\d+:\w+")


@dataclass
class Block:
    document: str
    line: int
    language: str
    text: str
    note: str  # empty without an annotation

    def __str__(self):
        return f"{self.document}:{self.line}"

    def argument(self, kind):
        """Return the text after `kind` in the annotation, or None if the annotation is of another kind."""
        return self.note[len(kind):].lstrip(", ") if self.note.startswith(kind) else None


def documents():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=REPOSITORY,
                            capture_output=True, text=True, check=True).stdout.split()
    return sorted(listed)


def blocks_of(document):
    blocks, note = [], ""
    lines = iter(enumerate((REPOSITORY / document).read_text().splitlines(), 1))
    for number, line in lines:
        fence = FENCE.match(line)
        if fence:
            indent, language = fence.groups()
            text = []
            for _, inner in lines:
                if inner == f"{indent}```":
                    break
                text.append(inner[len(indent):])
            blocks.append(Block(document, number, language, "\n".join(text) + "\n", note))
        found = NOTE.search(line)
        note = found[1] if found else ""
    return blocks


def headings_of(document):
    text = re.sub(r"(?ms)^```.*?^```", "", (REPOSITORY / document).read_text())
    return re.findall(r"(?m)^#+ (.+)$", text)


def anchor(heading):
    """Return the anchor of a heading as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "")).strip().lower().replace(" ", "-")


class Versions:
    """Pairs each version in a document with the version that the store has assigned."""

    def __init__(self):
        self.actual = {}

    def is_same(self, documented, actual):
        """Return whether the texts are equal apart from versions, which must correspond one to one."""
        if HLC.sub("HLC", documented) != HLC.sub("HLC", actual):
            return False
        for old, new in zip(HLC.findall(documented), HLC.findall(actual)):
            same_form = [len(old.split(":")[0]), old.split(":")[2]] == [len(new.split(":")[0]), new.split(":")[2]]
            if not same_form or self.actual.setdefault(old, new) != new:
                return False
        return True

    def substitute(self, text):
        return HLC.sub(lambda found: self.actual.get(found[0], found[0]), text)
