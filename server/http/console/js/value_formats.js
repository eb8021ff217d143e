/* SPDX-License-Identifier: Apache-2.0 */

/* What a value is, and how it can be shown. */

const INDENT_LEVELS_MAX = 40;
const COLUMNS_MAX = 40;
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/* Indent valid JSON. Only white space changes: long numbers and repeated names stay as they are. */
export function indentJson(text) {
  const tokens = text.match(TOKEN) ?? [];
  let level = 0;
  let result = "";
  const newLine = () => `\n${"  ".repeat(Math.min(level, INDENT_LEVELS_MAX))}`;

  tokens.forEach((token, i) => {
    const opens = token === "{" || token === "[";
    const closes = token === "}" || token === "]";
    const isEmpty = closes && (tokens[i - 1] === "{" || tokens[i - 1] === "[");
    if (closes) level--;
    if (closes && !isEmpty) result += newLine();
    result += token === ":" ? ": " : token;
    if (opens) level++;
    const nextCloses = tokens[i + 1] === "}" || tokens[i + 1] === "]";
    if (token === "," || (opens && !nextCloses)) result += newLine();
  });
  return result;
}

/* Keep the digits of numbers that a double cannot hold, where the browser gives them. */
const exactNumbers = (name, value, context) =>
  typeof value === "number" && context?.source ? context.source : value;

/* Return { columns, rows } of lines of JSON objects, or null if the text is something else. */
export function parseNdjson(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const columns = new Set();
  let rows;
  try {
    rows = lines.map((line) => JSON.parse(line, exactNumbers));
  } catch {
    return null;
  }
  if (rows.length < 2 || !rows.every((row) => row !== null && typeof row === "object" && !Array.isArray(row)))
    return null;
  for (const row of rows)
    for (const name of Object.keys(row)) if (columns.size < COLUMNS_MAX) columns.add(name);
  return { columns: [...columns], rows };
}

/* Return the names of the formats that can show a value, the best first. text: null if not UTF-8. */
export function formatsOf(text) {
  if (text === null) return ["hex"];
  if (/^\s*[[{]/.test(text)) {
    if (isJson(text)) return ["json", "text", "hex"];
    if (parseNdjson(text)) return ["table", "text", "hex"];
  }
  return /[\0-\x08\x0e-\x1f]/.test(text) ? ["hex", "text"] : ["text", "hex"];
}
