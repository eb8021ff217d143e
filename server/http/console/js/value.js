/* SPDX-License-Identifier: Apache-2.0 */

/* The selected key: its details, and its value in several formats. */

import { readKey } from "./api.js";
import { decodeUtf8, hexDump } from "./bytes.js";
import { showWatchersOf } from "./clients.js";
import { button, download, el, emptyState, errorBox, faint, table } from "./dom.js";
import { deleteKey, editKey } from "./edit.js";
import { byteSize, count, countdown, versionElement } from "./format.js";
import { shown, shownOnRequest } from "./text.js";
import { formatsOf, indentJson, parseNdjson } from "./value_formats.js";

/* Larger values are loaded only when asked. */
const LARGE = 65536;
const SHOWN_CHARACTERS = 65536;
const TABLE_ROWS = 500;

function linesElement(text) {
  const { columns, rows } = parseNdjson(text);
  const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const column = (name) => [shown(name), (row) => (name in row ? shown(asText(row[name]), 200) : "")];
  return el("div", table("Lines of the value", columns.map(column), rows.slice(0, TABLE_ROWS)).element,
    rows.length > TABLE_ROWS ? el("p.hint", `${TABLE_ROWS} of ${count(rows.length)} lines: download it for all.`)
      : null);
}

function formatted(format, bytes, text) {
  if (bytes.length === 0) return faint("The value is empty.");
  if (format === "Table") return linesElement(text);
  const lines = { Hex: () => hexDump(bytes), JSON: () => indentJson(text), Text: () => text }[format]();
  return el("pre", shownOnRequest(lines, SHOWN_CHARACTERS, true));
}

/* The value with a button for each format. */
function valueElement(bytes) {
  const text = decodeUtf8(bytes);
  const formats = formatsOf(text);
  const content = el("div.value", { tabIndex: 0, role: "region", "aria-label": "Value" });
  const buttons = formats.map((format) => button(format, () => choose(format), "tab"));

  function choose(format) {
    buttons.forEach((one, i) => one.setAttribute("aria-pressed", formats[i] === format));
    content.replaceChildren(formatted(format, bytes, text));
  }

  choose(formats[0]);
  return el("div", el("div.tabs", buttons), content);
}

function details(state, size) {
  const item = (name, value) => el("div", el("dt", name), el("dd", value));
  return el("dl.details",
    item("Size", `${byteSize(size)}${size >= 1024 ? ` (${count(size)} bytes)` : ""}`),
    item("Expires in", state.deadline ? countdown(state.deadline) : "never"),
    item("Version", versionElement(state.version)),
    item("Fencing token", state.fence ? versionElement(state.fence) : "none"));
}

/* Show a key in the container. onChanged() after a change, onClose() for "back to the list". */
export function showValue(container, entry, { isOperator, onChanged, onClose }) {
  const { key } = entry;
  const body = el("div.detail-body");
  const reload = (label) => button(label, () => load(LARGE));

  async function load(maxBytes) {
    body.replaceChildren(faint("Loading…"));
    try {
      const state = await readKey(key, maxBytes);
      if (state.bytes) showLoaded(state);
      else if (state.bytes === null) showMissing();
      else showLarge(state, state.size);
    } catch (error) {
      body.replaceChildren(errorBox(error), reload("Try again"));
    }
  }

  function showMissing() {
    body.replaceChildren(emptyState("This key does not exist", "It was deleted or has expired, or it was never set. ",
      reload("Reload")));
  }

  function showLarge(state, size) {
    body.replaceChildren(details(state, size), emptyState("A large value",
      `The value has ${byteSize(size)}. Values above 64 KiB are loaded only when asked. `,
      button("Load it", () => load(Infinity))));
  }

  function showLoaded(current) {
    const onDone = () => {
      load(LARGE);
      onChanged();
    };
    body.replaceChildren(
      details(current, current.size),
      el("div.actions",
        button("Edit", () => editKey({ key, current, onDone }), "primary"),
        button("Delete", () => deleteKey({ key, current, onDone })),
        reload("Reload"),
        button("Download", () => download(current.bytes, key)),
        isOperator ? button("Watchers", () => showWatchersOf(key)) : null),
      valueElement(current.bytes));
  }

  container.replaceChildren(
    el("header.detail-head", button("‹ Keys", onClose, "plain back"), el("h2", shownOnRequest(key, 160))), body);
  if (entry.bytes > LARGE) showLarge(entry, entry.bytes);
  else load(LARGE);
}
