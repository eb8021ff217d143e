/* SPDX-License-Identifier: Apache-2.0 */

import { asBytes, bytesFromText, concatenate } from "./bytes.js";

/* Return the bytes of an array of words. A word is a text or a Uint8Array. */
export function encodeRequest(words) {
  const parts = [bytesFromText(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = asBytes(word);
    parts.push(bytesFromText(`$${bytes.length}\r\n`), bytes, bytesFromText("\r\n"));
  }
  return concatenate(parts);
}

/* Return { type: "ok" | "error" | "number" | "blob" | "null" } with text, number or bytes. */
export function decodeReply(bytes) {
  const start = bytes.indexOf(10) + 1;
  const line = new TextDecoder().decode(bytes.subarray(0, start));
  const [, type, text] = /^([-+:$_])(.*)\r\n$/.exec(line) ?? [];
  const number = /^-?\d+$/.test(text) ? Number(text) : NaN;

  if (type === "+") return { type: "ok", text };
  if (type === "-") return { type: "error", text: text.replace(/^ERR /, "") };
  if (type === "_" || (type === "$" && number === -1)) return { type: "null" };
  if (type === ":" && !Number.isNaN(number)) return { type: "number", number };
  if (type === "$" && bytes.length === start + number + 2) return { type: "blob", bytes: bytes.subarray(start, -2) };
  throw new Error("the reply is malformed");
}
