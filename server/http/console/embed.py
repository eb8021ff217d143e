#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the files of the console as a C source: the table of http/console/files.h.

usage: embed.py DIRECTORY OUTPUT DEPFILE
"""

import hashlib
import pathlib
import sys

CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def main():
    directory, output, depfile = map(pathlib.Path, sys.argv[1:])
    files = sorted(path for path in directory.rglob("*") if path.suffix in CONTENT_TYPES)
    arrays, rows = [], []

    for number, file in enumerate(files):
        content = file.read_bytes()
        path = "/" + file.relative_to(directory).as_posix()
        tag = hashlib.sha256(content).hexdigest()[:16]
        arrays.append(f"static const uint8_t file_{number}[] = {{ {','.join(map(str, content))} }};\n")
        rows.append(f'        {{ "{"/" if path == "/index.html" else path}", "{CONTENT_TYPES[file.suffix]}", '
                    f'"\\"{tag}\\"", {{ file_{number}, sizeof(file_{number}) }} }},\n')

    output.write_text('#include "http/console/files.h"\n\n' + "".join(arrays)
                      + "\nconst struct console_file console_files[] = {\n" + "".join(rows) + "};\n"
                      + f"const size_t n_console_files = {len(rows)};\n")
    # A directory changes when a file is added or removed.
    folders = {directory, *(file.parent for file in files)}
    depfile.write_text(f"{output}: {' '.join(map(str, [*sorted(folders), *files]))}\n")


main()
