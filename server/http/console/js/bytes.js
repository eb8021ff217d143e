/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keys and client ids are bytes, and here strings: each byte that is not UTF-8 is the lone surrogate U+DC00 + byte,
 * as in Python's "surrogateescape". So each key has exactly one string.
 */

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
const LONE_SURROGATE = /(\p{Surrogate})/u;
/* In a string of bytes. Some of these sequences are not UTF-8 nevertheless; then none of their bytes is. */
const SEQUENCES = /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]/g;

/* Return the text, or null if the bytes are not UTF-8. */
export function decodeUtf8(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

/* bytes: a string with a character for each byte, as of atob(). */
export function textFromBytes(bytes) {
  return bytes.replace(SEQUENCES, (sequence) => {
    const codes = Array.from(sequence, (character) => character.charCodeAt(0));
    return decodeUtf8(Uint8Array.from(codes)) ?? String.fromCharCode(...codes.map((code) => 0xdc00 + code));
  });
}

const splitSurrogates = (text) => text.split(LONE_SURROGATE);

export function bytesFromText(text) {
  return concatenate(splitSurrogates(text).map((part, i) =>
    (i % 2 === 0 ? encoder.encode(part) : Uint8Array.of(part.charCodeAt(0) & 0xff))));
}

export const asBytes = (value) => (typeof value === "string" ? bytesFromText(value) : value);

export function concatenate(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}

/* As JSON.parse(). Bytes that are not UTF-8 are in NAME_base64: they become the text NAME. */
export const parseJson = (json) => JSON.parse(json, function readField(name, value) {
  if (!name.endsWith("_base64")) return value;
  this[name.slice(0, -"_base64".length)] = textFromBytes(atob(value));
  return undefined;
});

const hex = (byte) => byte.toString(16).padStart(2, "0");

/* Percent-encode the bytes of a text for an address. */
export function percentEncode(text) {
  return splitSurrogates(text).map((part, i) =>
    (i % 2 === 0 ? encodeURIComponent(part) : `%${hex(part.charCodeAt(0) & 0xff)}`)).join("");
}

export const hexFromBytes = (bytes) => Array.from(bytes, hex).join("");

/* Lines of 16 bytes: offset, hexadecimal digits, printable ASCII. */
export function hexDump(bytes) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 16) {
    const row = bytes.subarray(i, i + 16);
    const ascii = String.fromCharCode(...row).replace(/[^ -~]/g, ".");
    lines.push(`${i.toString(16).padStart(8, "0")}  ${Array.from(row, hex).join(" ").padEnd(47)}  ${ascii}`);
  }
  return lines.join("\n");
}
