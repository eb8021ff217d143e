#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every #include under common/ and server/ and holds who may include whom.

usage: check_includes.py ROOT

Prints each include that is against the rules, and exits with 1 if there is any. libc is whatever the compiler
finds that none of the libraries below brings.
"""

import pathlib
import re
import sys

EVENT_LOOP = {"uv.h"}
MQTT = {"mosquitto.h", "mqtt_protocol.h"}
PLUGIN = {"mosquitto_plugin.h", "mosquitto_broker.h"}
TABLES = {"uthash.h", "utlist.h", "utarray.h", "utstring.h"}
HASHES = {"xxhash.h"}
CRYPTO = {"sodium.h"}
STORAGE = {"sqlite3.h"}
HTTP = {"microhttpd.h"}
JSON = {"jansson.h"}
WEB = {"curl/curl.h"}
SERVICE = {"systemd/sd-daemon.h"}
LIBRARIES = WEB | HTTP | JSON | SERVICE | EVENT_LOOP | MQTT | PLUGIN | TABLES | HASHES | CRYPTO | STORAGE

# What is in neither set is no header that anybody here may use.
LIBC = {
    "assert.h", "ctype.h", "dirent.h", "dlfcn.h", "endian.h", "errno.h", "fcntl.h", "grp.h", "inttypes.h", "limits.h", "link.h",
    "malloc.h", "math.h", "netdb.h", "poll.h", "pthread.h", "pwd.h", "search.h", "signal.h", "stdarg.h", "stdbool.h", "stddef.h",
    "stdint.h", "stdio.h", "stdlib.h", "string.h", "strings.h", "time.h", "unistd.h",
    "arpa/inet.h", "netinet/in.h", "netinet/tcp.h", "sys/file.h", "sys/ioctl.h", "sys/mman.h", "sys/prctl.h", "sys/random.h", "sys/resource.h",
    "sys/socket.h", "sys/stat.h", "sys/statvfs.h", "sys/time.h", "sys/types.h", "sys/uio.h", "sys/un.h",
    "sys/wait.h", "termios.h",
}

# folder: the folders of ours, and the libraries, whose headers its files may include. "" is server/ itself.
RULES = {
    "common": ({"common"}, CRYPTO),
    "server/core": ({"common", "core"}, TABLES | CRYPTO),
    "server/proto": ({"common", "core", "proto"}, set()),
    "server/control": ({"common", "core", "proto", "control"}, set()),
    "server/config": ({"common", "config"}, set()),
    "server/records": ({"common", "records"}, JSON),
    "server/storage": ({"common", "core", "storage"}, STORAGE | HASHES),
    "server/io": ({"common", "io"}, EVENT_LOOP | MQTT | HTTP | SERVICE),
    "server/plugin": ({"common", "plugin"}, MQTT | PLUGIN | TABLES | CRYPTO),
    "server/ctl": ({"common", "config", "ctl", "records"}, MQTT | WEB | EVENT_LOOP),
    "server": ({"common", "config", "control", "core", "proto", "records", "storage", ""}, TABLES),
}

# The shell around it all: the only files that see both what is pure and the event loop.
SHELL = ({"common", "config", "control", "core", "proto", "records", "storage", "io", ""}, EVENT_LOOP | MQTT)
SHELL_FILES = {"main.c", "http_pages.c", "http_pages.h", "server.c", "server_commit.c", "server_daemon.c", "server_dev.c",
               "server_link.c", "server_parent.c", "server_service.c", "server_state.h", "server_withheld.c"}
SECRETS = ({"core", ""}, CRYPTO)
EXCEPTIONS = {"server/secrets.c": SECRETS, **{f"server/{name}": SHELL for name in SHELL_FILES}}

# What a folder takes of another for a reason.
ALLOWED_ANYWHERE_IN = {
    "server/records": {"proto/properties.h"},  # names on the wire
    # names on the wire; libmosquitto's properties; for a data directory the store's own storage
    "server/ctl": {"proto/properties.h", "io/credentials.h", "io/mqtt.h", "io/mqtt_client.h", "config.h", "core/engine.h", "restore.h",
                   "secrets.h", "storage/maintenance.h",
                   "storage/storage.h"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>|(\S.*))')


def wrong_include(path, line):
    """What is wrong with this line of this file (relative to the root), or None."""
    match = INCLUDE.match(line)
    if not match:
        return None

    ours, theirs, computed = match.groups()
    folder = path.parent.as_posix()
    if computed:
        return "says in a macro what it includes"
    if folder not in RULES:
        return f"no rule for {folder}"

    folders, libraries = EXCEPTIONS.get(path.as_posix(), RULES[folder])
    if theirs:
        if theirs in libraries or theirs in LIBC:
            return None
        return f"{folder} may not include <{theirs}>"

    if ours in ALLOWED_ANYWHERE_IN.get(folder, ()):
        return None
    if pathlib.PurePath(ours).name in LIBRARIES:
        return f"a library's header is included as \"{ours}\""
    if "/".join(pathlib.PurePath(ours).parts[:-1]) not in folders:
        return f"{folder} may not include \"{ours}\""
    return None


def main():
    root = pathlib.Path(sys.argv[1])
    files = sorted(file for top in ("common", "server") for file in (root / top).rglob("*.[ch]"))
    n_wrong = 0

    for file in files:
        path = file.relative_to(root)
        for number, line in enumerate(file.read_text().splitlines(), 1):
            wrong = wrong_include(path, line)
            if wrong:
                print(f"{path}:{number}: {wrong}")
                n_wrong += 1

    if not files:
        print(f"{root}: no sources")
    sys.exit(n_wrong > 0 or not files)


if __name__ == "__main__":
    main()
