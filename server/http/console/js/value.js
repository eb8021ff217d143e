/* SPDX-License-Identifier: Apache-2.0 */

import { readKey } from "./api.js";
import { decodeUtf8, hexDump } from "./bytes.js";
import { showWatchersOf } from "./clients.js";
import { button, download, el, emptyState, errorBox, faint, region, table } from "./dom.js";
import { deleteKey, editKey } from "./edit.js";
import { byteSize, count, countdown, versionElement } from "./format.js";
import { shown, shownOnRequest } from "./text.js";
import { cellText, formatsOf, indentJson, parseNdjson } from "./value_formats.js";

/* Larger values are loaded only when asked, and longer texts are cut. */
const LARGE = 65536;

function linesElement(text) {
  const { columns, rows } = parseNdjson(text);
  const cell = (text) => (text === null ? "" : shown(text, 200));
  const column = (name) => [shown(name), (row) => cell(cellText(row, name))];
  return table("Lines of the value", columns.map(column))(rows);
}

function formatted(format, bytes, text) {
  if (bytes.length === 0) return faint("The value is empty.");
  if (format === "Table") return linesElement(text);
  const lines = { Hex: () => hexDump(bytes), JSON: () => indentJson(text), Text: () => text }[format]();
  return el("pre", shownOnRequest(lines, LARGE, true));
}

function valueElement(bytes) {
  const text = decodeUtf8(bytes);
  const formats = formatsOf(text);
  const content = region("value", "Value");
  const buttons = formats.map((format) => button(format, () => choose(format), "tab"));

  function choose(format) {
    buttons.forEach((one, i) => one.setAttribute("aria-pressed", formats[i] === format));
    content.replaceChildren(formatted(format, bytes, text));
  }

  choose(formats[0]);
  return el("div", el("div", buttons), content);
}

function details(state) {
  const { size } = state;
  const item = (name, value) => el("div", el("dt", name), el("dd", value));
  return el("dl.details",
    item("Size", `${byteSize(size)}${state.bytes && size >= 1024 ? ` (${count(size)} bytes)` : ""}`),
    item("Expires in", state.deadline ? countdown(state.deadline) : "never"),
    item("Version", versionElement(state.version)),
    item("Fencing token", state.fence ? versionElement(state.fence) : "none"));
}

export function showValue(container, entry, { isOperator, onChanged, onClose }) {
  const { key } = entry;
  const body = el("div.detail-body");
  const reload = (label) => button(label, () => load());

  async function load(maxBytes = LARGE) {
    body.replaceChildren(faint("Loading…"));
    try {
      const state = await readKey(key, maxBytes);
      if (state.bytes) showLoaded(state);
      else if (state.bytes === null) body.replaceChildren(emptyState("This key does not exist", reload("Reload")));
      else showLarge(state);
    } catch (error) {
      body.replaceChildren(errorBox(error), reload("Try again"));
    }
  }

  function showLarge(state) {
    body.replaceChildren(details(state),
      emptyState("A large value", "It is loaded only when asked. ", button("Load it", () => load(Infinity))));
  }

  function showLoaded(current) {
    const onDone = () => {
      load();
      onChanged();
    };
    body.replaceChildren(
      details(current),
      el("div.actions",
        button("Edit", () => editKey({ key, current, onDone }), "primary"),
        button("Delete", () => deleteKey({ key, current, onDone })),
        reload("Reload"),
        button("Download", () => download(current.bytes, key)),
        isOperator ? button("Watchers", () => showWatchersOf(key)) : null),
      valueElement(current.bytes));
  }

  container.replaceChildren(
    el("header.view-head", button("‹ Keys", onClose, "plain back"), el("h2", shownOnRequest(key, 160))), body);
  if (entry.bytes > LARGE) showLarge({ ...entry, size: entry.bytes });
  else load();
}
