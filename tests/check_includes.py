#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the dependencies of the rooms under common/ and server/.

usage: check_includes.py [--rooms] ROOT

A room is a folder. Read every #include of ROOT and check that

- each #include "..." names a file by its path below common/ or server/, in the same room or in one that ROOMS lists;
- each #include <...> names a header of libc, or of a library that ROOMS lists for the room;
- a room uses the names of a library only if ROOMS lists the library for it, although a header of another room may include
  the library's header;
- ROOMS lists no room and no library that is not included;
- no #include names a macro;
- a room has at most one internal header (internal.h, *_internal.h), which no other room includes;
- rooms form at most 10 layers;
- there is no cycle of rooms, of modules or of headers. A module is X.c with X.h; an internal header belongs to none.

Print each violation and exit with 1 if there is any. --rooms prints the rooms by layer, too.
"""

import pathlib
import re
import sys

# The headers of libraries, and the names that each declares.
LIBRARIES = {
    "curl/curl.h": r"curl_|CURL",
    "jansson.h": r"json_t\b",
    "microhttpd.h": r"MHD_",
    "mosquitto.h": r"mosquitto_|MOSQ_",
    "mosquitto_broker.h": r"mosquitto_broker_",
    "mosquitto_plugin.h": r"mosquitto_plugin_|mosquitto_callback_",
    "mqtt_protocol.h": r"MQTT_(?:PROP|RC)_",
    "openssl/ssl.h": r"SSL_|X509_",
    "protobuf-c/protobuf-c.h": r"protobuf_c_|ProtobufC",
    "sodium.h": r"sodium_|crypto_",
    "sqlite3.h": r"sqlite3_|SQLITE_",
    "systemd/sd-daemon.h": r"sd_",
    "uthash.h": r"HASH_[A-Z]+\(",
    "utlist.h": r"(?:LL|DL|CDL)_[A-Z]+",
    "uv.h": r"uv_",
    "xxhash.h": r"XXH",
}

LIBC = {
    "assert.h", "ctype.h", "dirent.h", "dlfcn.h", "endian.h", "errno.h", "fcntl.h", "grp.h", "inttypes.h", "limits.h", "link.h",
    "malloc.h", "math.h", "netdb.h", "poll.h", "pthread.h", "pwd.h", "search.h", "signal.h", "stdarg.h", "stdatomic.h",
    "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "strings.h", "time.h", "unistd.h",
    "arpa/inet.h", "netinet/in.h", "netinet/tcp.h", "sys/eventfd.h", "sys/file.h", "sys/ioctl.h", "sys/mman.h", "sys/prctl.h",
    "sys/random.h", "sys/resource.h", "sys/signalfd.h", "sys/socket.h", "sys/stat.h", "sys/statvfs.h", "sys/time.h",
    "sys/timerfd.h", "sys/types.h", "sys/uio.h", "sys/un.h", "sys/wait.h", "termios.h",
}

# room: the rooms, and the libraries, whose headers it includes beside its own. A room includes only rooms above its row.
ROOMS = {
    "base": ("", ""),
    "hash": ("base", "sodium.h"),
    "fair_queue": ("base hash", "uthash.h utlist.h"),
    "protocol": ("base", "sodium.h"),
    "election": ("base", ""),
    "policy": ("base", ""),
    "engine": ("base hash protocol policy", "sodium.h uthash.h utlist.h"),
    "codec": ("base protocol engine", ""),
    "state": ("base hash protocol engine", "uthash.h"),
    "etcd": ("base protocol", "curl/curl.h protobuf-c/protobuf-c.h"),
    "storage": ("base protocol engine state", ""),
    "storage/etcd": ("base protocol engine election etcd state storage", "protobuf-c/protobuf-c.h xxhash.h"),
    "storage/sqlite": ("base state storage", "sqlite3.h xxhash.h"),
    "exports": ("base protocol", "jansson.h"),
    "observation": ("base hash protocol engine codec", "uthash.h utlist.h"),
    "pipeline": ("base fair_queue protocol engine codec state storage exports observation", "utlist.h"),
    "config": ("base protocol election policy engine codec storage/etcd", "sodium.h"),
    "control": ("base protocol engine exports pipeline", ""),
    "http": ("base pipeline", "microhttpd.h uv.h"),
    "http/console": ("base protocol codec observation pipeline config http", "utlist.h uv.h"),
    "mqtt": ("base protocol", "mosquitto.h mqtt_protocol.h openssl/ssl.h uv.h"),
    "plugin": ("base hash fair_queue protocol",
               "mosquitto.h mosquitto_broker.h mosquitto_plugin.h mqtt_protocol.h sodium.h uthash.h utlist.h"),
    "app": ("base protocol election engine codec storage/sqlite storage/etcd pipeline config control http http/console mqtt",
            "systemd/sd-daemon.h uv.h"),
    "ctl": ("base protocol election engine etcd storage/sqlite storage/etcd exports config mqtt",
            "curl/curl.h jansson.h mosquitto.h mqtt_protocol.h uv.h"),
    "man": ("config ctl engine", ""),
    "": ("base config app", ""),  # server/main.c
}
ROOMS = {room: (set(rooms.split()), set(libraries.split())) for room, (rooms, libraries) in ROOMS.items()}
for i, room in enumerate(ROOMS):
    assert ROOMS[room][0] <= set(list(ROOMS)[:i]), f"{room}: a room of its row is not above it"
MAX_LAYERS = 10

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>|(\S.*))')
COMMENT_OR_STRING = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.DOTALL)


def room_of(file):
    return file.rpartition("/")[0]


def is_internal(file):
    return file.endswith(("/internal.h", "_internal.h"))


def module_of(file):
    return None if is_internal(file) else file.rpartition(".")[0]


def wrong_include(file, files, ours, theirs, computed):
    """Return the violation of this include, or None."""
    room = room_of(file)
    if room not in ROOMS:
        return f"no rule for the room {room}"

    rooms, libraries = ROOMS[room]
    if computed:
        return "includes by a macro"
    if theirs:
        return None if theirs in LIBC or theirs in libraries else f"{room} may not include <{theirs}>"
    if ours in LIBRARIES:
        return f"a library's header is included as \"{ours}\""
    if ours not in files and room_of(ours):
        return f"there is no \"{ours}\" below common/ or server/"
    if ours not in files:  # generated by the room's meson.build
        return None
    if room_of(ours) != room and is_internal(ours):
        return f"\"{ours}\" is internal to its room"
    if room_of(ours) != room and room_of(ours) not in rooms:
        return f"{room} may not include \"{ours}\""
    return None


def wrong_names(room, code):
    """Return the violations in code of this room: names of libraries that ROOMS does not list for the room."""
    code = COMMENT_OR_STRING.sub("", code)
    found = {header: re.search(rf"\b(?:{names})\w*", code) for header, names in LIBRARIES.items()}
    return [f"{room} may not use {match[0]} of <{header}>" for header, match in found.items()
            if match and header not in ROOMS[room][1]]


def unused_permissions(included):
    """Return a violation for each entry of ROOMS that is not used. included: room to the rooms and headers it includes."""
    return [f"{room or 'main.c'} does not include {other}, so ROOMS must not list it" for room in ROOMS
            for other in sorted((ROOMS[room][0] | ROOMS[room][1]) - included.get(room, set()))]


def cycles_in(graph):
    """Return all cycles as lists. graph: node to the nodes that it depends on."""
    done, path, cycles = set(), [], []

    def visit(node):
        path.append(node)
        for other in sorted(graph.get(node, ())):
            if other in path:
                cycles.append(path[path.index(other):] + [other])
            elif other not in done:
                visit(other)
        path.pop()
        done.add(node)

    for node in sorted(graph):
        if node not in done:
            visit(node)
    return cycles


def layers_of(graph):
    """Return the layer of each node, from 1. The graph has no cycle."""
    layers = {}

    def layer(node):
        if node not in layers:
            layers[node] = 1 + max((layer(other) for other in graph[node]), default=0)
        return layers[node]

    for node in graph:
        layer(node)
    return layers


def graph_of(includes, group):
    """Return the dependencies between groups of files. group(file): the file's group, or None to leave the file out."""
    graph = {}
    for file, names in includes.items():
        if group(file) is not None:
            others = {group(name) for name in names} - {None, group(file)}
            graph.setdefault(group(file), set()).update(others)
    for others in list(graph.values()):
        for other in others:
            graph.setdefault(other, set())
    return graph


def check(root):
    """Return the violations in ROOT, and the layers of the rooms."""
    files = {}
    for top in ("common", "server"):
        for path in (root / top).rglob("*.[ch]"):
            files[path.relative_to(root / top).as_posix()] = path
    violations = [] if files else [f"{root}: no sources"]
    includes, included = {}, {}

    for file, path in sorted(files.items()):
        includes[file] = set()
        code = path.read_text()
        if room_of(file) in ROOMS:
            violations += [f"{path.relative_to(root)}: {wrong}" for wrong in wrong_names(room_of(file), code)]
        for number, line in enumerate(code.splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            if match[1] in files:
                includes[file].add(match[1])
            included.setdefault(room_of(file), set()).add(match[2] or room_of(match[1] or ""))
            wrong = wrong_include(file, files, *match.groups())
            if wrong:
                violations.append(f"{path.relative_to(root)}:{number}: {wrong}")

    violations += unused_permissions(included)
    graphs = {"rooms": graph_of(includes, room_of), "modules": graph_of(includes, module_of),
              "headers": {file: names for file, names in includes.items() if file.endswith(".h")}}
    for name, graph in graphs.items():
        violations += [f"{name} include each other: " + " -> ".join(cycle) for cycle in cycles_in(graph)]
    for room in {room_of(file) for file in files}:
        internal = sorted(file for file in files if room_of(file) == room and is_internal(file))
        if len(internal) > 1:
            violations.append(f"more than one internal header: {', '.join(internal)}")

    layers = {} if cycles_in(graphs["rooms"]) else layers_of(graphs["rooms"])
    if max(layers.values(), default=0) > MAX_LAYERS:
        violations.append(f"{max(layers.values())} layers of rooms, {MAX_LAYERS} are allowed")
    return violations, layers


def main():
    violations, layers = check(pathlib.Path(sys.argv[-1]))
    if "--rooms" in sys.argv:
        for room, layer in sorted(layers.items(), key=lambda item: (item[1], item[0])):
            print(f"{layer:2} {room or 'main.c'}")
    for violation in violations:
        print(violation)
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
