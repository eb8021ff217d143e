/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keys and client ids are bytes. In the console they are strings: each byte that is not UTF-8 is the
 * lone surrogate U+DC00 + byte, as in Python's "surrogateescape". So each key has exactly one string.
 */

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
const LONE_SURROGATE = /(\p{Surrogate})/u;

/* Return the text, or null if the bytes are not UTF-8. */
export function decodeUtf8(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

function sequenceLength(lead) {
  if (lead < 0x80) return 1;
  if (lead >> 5 === 6) return 2;
  if (lead >> 4 === 14) return 3;
  return lead >> 3 === 30 ? 4 : 0;
}

export function textFromBytes(bytes) {
  const whole = decodeUtf8(bytes);
  if (whole !== null) return whole;
  let text = "";
  for (let i = 0; i < bytes.length;) {
    const length = sequenceLength(bytes[i]);
    const character = length > 0 ? decodeUtf8(bytes.subarray(i, i + length)) : null;
    text += character ?? String.fromCharCode(0xdc00 + bytes[i]);
    i += character === null ? 1 : length;
  }
  return text;
}

export function bytesFromText(text) {
  if (!LONE_SURROGATE.test(text)) return encoder.encode(text);
  return concatenate(text.split(LONE_SURROGATE).map((part) =>
    LONE_SURROGATE.test(part) ? Uint8Array.of(part.charCodeAt(0) & 0xff) : encoder.encode(part)));
}

export function concatenate(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}

export function bytesFromBase64(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/* Return the field `name` of a JSON object, whose bytes are in `name_base64` if they are not UTF-8. */
export function field(object, name) {
  if (object[name] !== undefined && object[name] !== null) return object[name];
  const base64 = object[`${name}_base64`];
  return base64 === undefined ? undefined : textFromBytes(bytesFromBase64(base64));
}

/* Percent-encode the bytes of a key or pattern for a URL. */
export function percentEncode(text) {
  return Array.from(bytesFromText(text), (byte) => {
    const character = String.fromCharCode(byte);
    return /[\w.~-]/.test(character) ? character : `%${byte.toString(16).padStart(2, "0").toUpperCase()}`;
  }).join("");
}

export function hexFromBytes(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/* Return the bytes, or null if the text is not hexadecimal. White space is skipped. */
export function bytesFromHex(text) {
  const digits = text.replace(/\s/g, "");
  if (digits.length % 2 !== 0 || /[^0-9a-f]/i.test(digits)) return null;
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/* Lines of 16 bytes: offset, hexadecimal digits, printable ASCII. */
export function hexDump(bytes) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 16) {
    const row = bytes.subarray(i, i + 16);
    const digits = Array.from(row, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const ascii = Array.from(row, (byte) =>
      byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".").join("");
    lines.push(`${i.toString(16).padStart(8, "0")}  ${digits.padEnd(47)}  ${ascii}`);
  }
  return lines.join("\n");
}
