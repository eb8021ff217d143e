/* SPDX-License-Identifier: Apache-2.0 */

/* Tests of the modules of the console that need no browser. Run by test_console_files.py. */

import assert from "node:assert/strict";
import { test } from "node:test";

import * as bytes from "./bytes.js";
import { linePath, niceMaximum } from "./chart.js";
import { diffLines, foldEqualLines } from "./diff.js";
import { byteSize, duration, keyCount, microseconds, parseVersion, remaining } from "./format.js";
import { escapePattern, patternOf } from "./key_search.js";
import { decodeReply, encodeRequest } from "./resp.js";
import { commandLine, quote, splitWords } from "./shell.js";
import { eventParser } from "./sse.js";
import { escapedParts, escapedString } from "./text.js";
import { KeyTree } from "./tree.js";
import { formatsOf, indentJson, parseNdjson } from "./value_formats.js";

const utf8 = (text) => new TextEncoder().encode(text);

test("a request is an array of blobs, counted in bytes", () => {
  assert.deepEqual(encodeRequest(["SET", "ä", Uint8Array.of(0, 255)]),
    bytes.concatenate([utf8("*3\r\n$3\r\nSET\r\n$2\r\nä\r\n$2\r\n"), Uint8Array.of(0, 255), utf8("\r\n")]));
});

test("replies of each type are decoded", () => {
  assert.deepEqual(decodeReply(utf8("+OK\r\n")), { type: "ok", text: "OK" });
  assert.deepEqual(decodeReply(utf8("-ERR not authorized\r\n")), { type: "error", text: "not authorized" });
  assert.deepEqual(decodeReply(utf8(":-1\r\n")), { type: "number", number: -1 });
  assert.deepEqual(decodeReply(utf8("$-1\r\n")), { type: "null" });
  assert.deepEqual(decodeReply(utf8("$4\r\na\r\nb\r\n")), { type: "blob", bytes: utf8("a\r\nb") });
  assert.deepEqual(decodeReply(utf8("$0\r\n\r\n")), { type: "blob", bytes: utf8("") });
});

test("malformed replies are refused", () => {
  for (const reply of ["", "+OK", "$5\r\nabc\r\n", "$x\r\n", ":1e3\r\n", "?\r\n", "\r\n"])
    assert.throws(() => decodeReply(utf8(reply)), reply);
});

test("each key of bytes has one string, and back", () => {
  for (const key of [utf8("a/ä€😀"), Uint8Array.of(0xff, 0x61, 0xc3), Uint8Array.of(0xed, 0xa0, 0x80),
    utf8("\ufeffx"), new Uint8Array(0)])
    assert.deepEqual(bytes.bytesFromText(bytes.textFromBytes(key)), key);
  assert.equal(bytes.field({ key_base64: "/2E=" }, "key"), "\udcffa");
  assert.equal(bytes.field({ key: "" }, "key"), "");
  assert.equal(bytes.field({ key: null }, "key"), undefined);
  assert.equal(bytes.percentEncode("a b/\udcff"), "a%20b%2F%FF");
});

test("hexadecimal digits are read strictly", () => {
  assert.deepEqual(bytes.bytesFromHex("00 fF\n"), Uint8Array.of(0, 255));
  assert.equal(bytes.bytesFromHex("0"), null);
  assert.equal(bytes.bytesFromHex("zz"), null);
  assert.match(bytes.hexDump(utf8("a\0")), /^00000000 {2}61 00 +a\.$/);
});

test("characters that hide or reorder text are escaped", () => {
  assert.equal(escapedString("a\u202eb\0\n\u200b\x1b\x9b\udcff\ud800"),
    "a\\u{202e}b\\0\\n\\u{200b}\\x1b\\x9b\\xff\\u{d800}");
  assert.equal(escapedString("<b>ä قيمة 😀</b>"), "<b>ä قيمة 😀</b>");
  assert.deepEqual(escapedParts("a\n\tb", true), [{ text: "a\n\tb", isEscape: false }]);
});

test("command lines are quoted, and bytes that could act are hexadecimal", () => {
  assert.equal(commandLine("get", ["a/b"]), "statestorectl get a/b");
  assert.equal(commandLine("set", ["it's", "$(x) `y`"], ["--px", "5ms"]),
    "statestorectl set --px 5ms 'it'\\''s' '$(x) `y`'");
  assert.equal(commandLine("del", ["-k"]), "statestorectl del -- -k");
  assert.equal(commandLine("set", ["k", "-"]), "statestorectl set --hex 6b 2d");
  assert.equal(commandLine("set", ["k", "\x1b[0m"]), "statestorectl set --hex 6b 1b5b306d");
  assert.equal(commandLine("set", ["k", "x".repeat(20000)]), "statestorectl set k - < FILE");
  assert.equal(quote("a\x1b"), "\"$(printf '\\141\\033')\"");
  assert.equal(quote(""), "''");
});

test("lines are split into words as by a shell", () => {
  assert.deepEqual(splitWords(" fault error 'a b' key \"x*\"y ''"), ["fault", "error", "a b", "key", "x*y", ""]);
  assert.equal(splitWords("fault 'open"), null);
});

test("a difference has the removed and the added lines", () => {
  const text = (lines) => lines.map(({ kind, line }) => kind + line).join("|");
  assert.equal(text(diffLines(["a", "b", "c"], ["a", "x", "c", "d"])), " a|-b|+x| c|+d");
  assert.equal(text(diffLines([], ["a"])), "+a");
  assert.equal(text(diffLines(["a", "a"], ["a"])), " a|-a");
  const many = Array.from({ length: 20 }, (_, i) => String(i));
  assert.equal(text(foldEqualLines(diffLines(many, [...many, "new"]))), "…17| 17| 18| 19|+new");
});

test("a large difference is bounded", () => {
  const lines = (n, word) => Array.from({ length: n }, (_, i) => word + i);
  assert.equal(diffLines(lines(20000, "a"), lines(20000, "b")).length, 40000);
});

test("events are read in any parts", () => {
  const stream = ": hello\n\nid: 7\r\ndata: {\"n\":7}\r\n\r\nevent: gap\ndata: a\ndata: b\n\nid: 8\n\n";
  for (const size of [1, 3, 1000]) {
    const events = [];
    const parse = eventParser((event) => events.push(event));
    for (let i = 0; i < stream.length; i += size) parse(stream.slice(i, i + size));
    assert.deepEqual(events, [
      { event: "message", id: "7", data: '{"n":7}' }, { event: "gap", data: "a\nb" }]);
  }
});

test("a tree opens folder by folder", () => {
  const tree = new KeyTree("/");
  for (const key of ["b/2", "b/1", "b", "a", "/", "b/1/x"]) tree.add({ key });
  const names = (open) => tree.rows(new Set(open)).map((row) => "  ".repeat(row.level - 1) + row.name);
  assert.deepEqual(names([]), ["/", "b/", "a", "b"]);
  assert.deepEqual(names(["b/"]), ["/", "b/", "  1/", "  1", "  2", "a", "b"]);
  assert.equal(tree.rows(new Set())[1].nKeys, 3);
});

test("a key of separators does not make a deep tree", () => {
  const tree = new KeyTree("/");
  tree.add({ key: "/".repeat(65536) });
  const open = new Set(Array.from({ length: 100 }, (_, i) => "/".repeat(i + 1)));
  assert.ok(tree.rows(open).length < 30);
});

test("a search without wildcards finds the text anywhere", () => {
  assert.equal(patternOf(""), "*");
  assert.equal(patternOf("lock"), "*lock*");
  assert.equal(patternOf("a/?"), "a/?");
  assert.equal(escapePattern("a*[b]?"), "a[*][[]b][?]");
});

test("JSON is indented without changing a value", () => {
  assert.equal(indentJson('{"a":[1.50,12345678901234567890,"x,{\\"y"],"b":{},"a":[ ]}'),
    '{\n  "a": [\n    1.50,\n    12345678901234567890,\n    "x,{\\"y"\n  ],\n  "b": {},\n  "a": []\n}');
  assert.ok(indentJson("[".repeat(3000) + "]".repeat(3000)).length < 600000);
});

test("the format of a value is recognized", () => {
  assert.deepEqual(formatsOf(null), ["hex"]);
  assert.deepEqual(formatsOf("hello"), ["text", "hex"]);
  assert.deepEqual(formatsOf("a\0"), ["hex", "text"]);
  assert.deepEqual(formatsOf('{"a":1}'), ["json", "text", "hex"]);
  assert.deepEqual(formatsOf('{"a":1}\n{"b":2}\n'), ["table", "text", "hex"]);
  assert.deepEqual(formatsOf("{a}"), ["text", "hex"]);
  assert.deepEqual(parseNdjson('{"a":"1"}\n\n{"b":"2"}').columns, ["a", "b"]);
  assert.equal(parseNdjson("[1]\n[2]"), null);
});

test("numbers and times are short", () => {
  assert.equal(byteSize(1023), "1023 B");
  assert.equal(byteSize(1536), "1.5 KiB");
  assert.equal(duration(200000), "3 min 20 s");
  assert.equal(duration(60000), "1 min");
  assert.equal(duration(3 * 3600000), "3 h");
  assert.equal(microseconds(1500), "1.5 ms");
  assert.equal(keyCount(1), "1 key");
  assert.equal(keyCount(1, "+"), "1+ keys");
  assert.equal(remaining(10, 10), "expired");
  assert.deepEqual(parseVersion("001795219608228:00003:a:b"), { ms: 1795219608228, counter: 3, node: "a:b" });
  assert.equal(parseVersion("1:2:x"), null);
});

test("a chart has gaps where there was nothing", () => {
  assert.equal(niceMaximum(0), 1);
  assert.equal(niceMaximum(130), 200);
  assert.equal(linePath([0, 1, null, 1], 1).match(/M/g).length, 2);
  assert.equal(linePath([null, null], 1), "");
});
