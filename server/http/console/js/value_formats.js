/* SPDX-License-Identifier: Apache-2.0 */

const INDENT_LEVELS_MAX = 40;
const COLUMNS_MAX = 40;
const JSON_TOKEN = /"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]|\s+/g;

/* Indent valid JSON. Only white space changes: long numbers and repeated names stay as they are. */
export function indentJson(text) {
  let level = 0;
  const newLine = () => `\n${"  ".repeat(Math.min(level, INDENT_LEVELS_MAX))}`;
  return text.replace(JSON_TOKEN, (token) => {
    if (token === ":") return ": ";
    if (token === ",") return `,${newLine()}`;
    if (token === "]" || token === "}") {
      level--;
      return newLine() + token;
    }
    if (token === "[" || token === "{") {
      level++;
      return token + newLine();
    }
    return token[0] === '"' ? token : token.replace(/\s/g, "");
  });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/* Return { columns, rows } of lines of JSON objects, or null if the text is something else. */
export function parseNdjson(text) {
  const rows = text.split("\n").filter((line) => line.trim() !== "").map(parse);
  if (rows.length < 2 || !rows.every((row) => row?.constructor === Object)) return null;
  return { columns: [...new Set(rows.flatMap(Object.keys))].slice(0, COLUMNS_MAX), rows };
}

/* Text of a column, or null. Rows inherit names such as toString. */
export function cellText(row, name) {
  if (!Object.hasOwn(row, name)) return null;
  return typeof row[name] === "string" ? row[name] : JSON.stringify(row[name]);
}

/* Return the names of the formats that can show a value, the best first. text: null if not UTF-8. */
export function formatsOf(text) {
  if (text === null) return ["Hex"];
  if (/^\s*[[{]/.test(text)) {
    if (parse(text) !== undefined) return ["JSON", "Text", "Hex"];
    if (parseNdjson(text)) return ["Table", "Text", "Hex"];
  }
  return /[\0-\x08\x0e-\x1f]/.test(text) ? ["Hex", "Text"] : ["Text", "Hex"];
}
