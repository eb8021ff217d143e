/* SPDX-License-Identifier: Apache-2.0 */

/* Tests of the modules of the console that need no browser. Run by test_console_files.py. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { eventParser } from "./api.js";
import * as bytes from "./bytes.js";
import { linePath } from "./chart.js";
import { diffLines } from "./diff.js";
import { byteSize, duration, microseconds, parseVersion, plural } from "./format.js";
import { patternOf } from "./key_search.js";
import { decodeReply, encodeRequest } from "./resp.js";
import { keyCommand, splitWords } from "./shell.js";
import { escaped } from "./text.js";
import { treeRows } from "./tree.js";
import { cellText, formatsOf, indentJson, parseNdjson } from "./value_formats.js";

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
    assert.deepEqual(bytes.bytesFromText(bytes.textFromBytes(String.fromCharCode(...key))), key);
  assert.deepEqual(bytes.parseJson('[{"key_base64":"/2E=","n":1},{"key":""}]'),
    [{ n: 1, key: "\udcffa" }, { key: "" }]);
  assert.equal(bytes.percentEncode("a b/\udcff"), "a%20b%2F%ff");
});

test("a dump has the offset, the digits and the characters", () => {
  assert.match(bytes.hexDump(utf8("a\0")), /^00000000 {2}61 00 +a\.$/);
});

test("characters that hide or reorder text are escaped", () => {
  assert.equal(escaped("a\u202eb\0\n\u200b\x1b\x9b\udcff\ud800"),
    "a\\u{202e}b\\0\\n\\u{200b}\\x1b\\x9b\\xff\\u{d800}");
  assert.equal(escaped("<b>ä قيمة 😀</b>"), "<b>ä قيمة 😀</b>");
});

test("command lines are quoted, and bytes that could act are hexadecimal", () => {
  assert.equal(keyCommand("get", ["a/b"]), "statestorectl get a/b");
  assert.equal(keyCommand("set", ["it's", "$(x) `y`"], ["--px", "5ms"]),
    "statestorectl set --px 5ms 'it'\\''s' '$(x) `y`'");
  assert.equal(keyCommand("del", ["-k"]), "statestorectl del -- -k");
  assert.equal(keyCommand("set", ["k", "-"]), "statestorectl set --hex 6b 2d");
  assert.equal(keyCommand("set", ["k", "\x1b[0m"]), "statestorectl set --hex 6b 1b5b306d");
  assert.equal(keyCommand("set", ["k", "x".repeat(20000)]), "statestorectl set k - < FILE");
  assert.equal(keyCommand("set", ["a *", ""]), "statestorectl set 'a *' ''");
});

test("lines are split into words as by a shell", () => {
  assert.deepEqual(splitWords(" fault error 'a b' key \"x*\"y ''"), ["fault", "error", "a b", "key", "x*y", ""]);
});

test("a difference has the removed and the added lines", () => {
  const text = (lines) => lines.map(({ kind, line }) => kind + line).join("|");
  assert.equal(text(diffLines(["a", "b", "c"], ["a", "x", "y", "c"])), " a|-b|+x|+y| c");
  assert.equal(text(diffLines([], ["a"])), "+a");
  assert.equal(text(diffLines(["a", "a"], ["a"])), " a|-a");
  const many = Array.from({ length: 20 }, (_, i) => String(i));
  assert.equal(text(diffLines(many, [...many, "new"])), "…17| 17| 18| 19|+new");
});

test("events are read in any parts", () => {
  const stream = ": hello\n\nid: 7\ndata: {\"n\": 7}\n\nevent: gap\ndata: a\n\nid: 8\n\n";
  for (const size of [1, 3, 1000]) {
    const events = [];
    const parse = eventParser((event) => events.push(event));
    for (let i = 0; i < stream.length; i += size) parse(stream.slice(i, i + size));
    assert.deepEqual(events, [
      { id: "7", data: '{"n": 7}' }, { event: "gap", data: "a" }]);
  }
});

test("a tree opens folder by folder", () => {
  const entries = ["b/2", "b/1", "b", "a", "/", "b/1/x"].map((key) => ({ key }));
  const rows = (open, separator = "/") => treeRows(entries, separator, new Set(open));
  const names = (...open) => rows(...open).map((row) => "  ".repeat(row.level - 1) + row.name);
  assert.deepEqual(names([]), ["/", "b/", "a", "b"]);
  assert.deepEqual(names(["b/"]), ["/", "b/", "  1/", "  1", "  2", "a", "b"]);
  assert.deepEqual(names([], ""), ["/", "a", "b", "b/1", "b/1/x", "b/2"]);
  assert.equal(rows([])[1].nKeys, 3);
});

test("a key of separators does not make a deep tree", () => {
  const open = new Set(Array.from({ length: 100 }, (_, i) => "/".repeat(i + 1)));
  assert.ok(treeRows([{ key: "/".repeat(65536) }], "/", open).length < 30);
});

test("a search without wildcards finds the text anywhere", () => {
  assert.equal(patternOf(""), "*");
  assert.equal(patternOf("lock"), "*lock*");
  assert.equal(patternOf("a/?"), "a/?");
});

test("JSON is indented without changing a value", () => {
  assert.equal(indentJson('{"a":[1.50,12345678901234567890,"x,{\\"y"],"b":{},"a":[ ]}'),
    '{\n  "a": [\n    1.50,\n    12345678901234567890,\n    "x,{\\"y"\n  ],\n  "b": {},\n  "a": []\n}');
  assert.ok(indentJson("[".repeat(3000) + "]".repeat(3000)).length < 600000);
});

test("the format of a value is recognized", () => {
  assert.deepEqual(formatsOf(null), ["Hex"]);
  assert.deepEqual(formatsOf("hello"), ["Text", "Hex"]);
  assert.deepEqual(formatsOf("a\0"), ["Hex", "Text"]);
  assert.deepEqual(formatsOf('{"a":1}'), ["JSON", "Text", "Hex"]);
  assert.deepEqual(formatsOf('{"a":1}\n{"b":2}\n'), ["Table", "Text", "Hex"]);
  assert.deepEqual(formatsOf("{a}"), ["Text", "Hex"]);
  assert.deepEqual(parseNdjson('{"a":"1"}\n\n{"b":"2"}').columns, ["a", "b"]);
  assert.equal(parseNdjson("[1]\n[2]"), null);
});

test("a row of a table has only the columns of its line", () => {
  const { columns, rows } = parseNdjson('{"toString":1,"__proto__":"p"}\n{"a":""}');
  const cells = rows.map((row) => columns.map((name) => cellText(row, name)));
  assert.deepEqual(cells, [["1", "p", null], [null, null, ""]]);
});

test("numbers and times are short", () => {
  assert.equal(byteSize(1023), "1023 B");
  assert.equal(byteSize(1536), "1.5 KiB");
  assert.equal(duration(200000), "3 min 20 s");
  assert.equal(duration(60000), "1 min");
  assert.equal(duration(3 * 3600000), "3 h");
  assert.equal(microseconds(1500), "1.5 ms");
  assert.equal(duration(0), "0 s");
  assert.equal(plural(1, "key"), "1 key");
  assert.equal(plural(1234, "key"), "1,234 keys");
  assert.deepEqual(parseVersion("001795219608228:00003:a:b"), { ms: 1795219608228, counter: 3 });
  assert.equal(parseVersion("1:2:x"), null);
});

test("a chart has gaps where there was nothing", () => {
  assert.equal(linePath([0, 1, null, 1], 1).match(/M/g).length, 2);
  assert.equal(linePath([null, null], 1), "");
});
