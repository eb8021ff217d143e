/* SPDX-License-Identifier: Apache-2.0 */

/* RESP3, as far as the state store protocol uses it. */

import { bytesFromText, concatenate, decodeUtf8 } from "./bytes.js";

const CR = 13;
const LF = 10;

/* Return the bytes of an array of words. A word is a text or a Uint8Array. */
export function encodeRequest(words) {
  const parts = [bytesFromText(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = typeof word === "string" ? bytesFromText(word) : word;
    parts.push(bytesFromText(`$${bytes.length}\r\n`), bytes, bytesFromText("\r\n"));
  }
  return concatenate(parts);
}

function readLine(bytes) {
  const end = bytes.indexOf(CR);
  if (end < 1 || bytes[end + 1] !== LF) throw new Error("the reply is not RESP3");
  return { text: decodeUtf8(bytes.subarray(1, end)) ?? "", next: end + 2 };
}

function readNumber(text) {
  if (!/^-?\d+$/.test(text)) throw new Error("the reply has a malformed number");
  return Number(text);
}

function readBlob(bytes, line) {
  const length = readNumber(line.text);
  if (length === -1) return { type: "null" };
  const end = line.next + length;
  if (length < 0 || bytes[end] !== CR || bytes[end + 1] !== LF)
    throw new Error("the reply is incomplete");
  return { type: "blob", bytes: bytes.subarray(line.next, end) };
}

/* Return { type: "ok" | "error" | "number" | "blob" | "null" } with text, number or bytes. */
export function decodeReply(bytes) {
  const line = readLine(bytes);
  switch (String.fromCharCode(bytes[0])) {
    case "+": return { type: "ok", text: line.text };
    case "-": return { type: "error", text: line.text.replace(/^ERR /, "") };
    case ":": return { type: "number", number: readNumber(line.text) };
    case "$": return readBlob(bytes, line);
    case "_": return { type: "null" };
    default: throw new Error("the reply is of an unknown type");
  }
}
