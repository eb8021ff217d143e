/* SPDX-License-Identifier: Apache-2.0 */

/* The selected key: its details, and its value in several formats. */

import { readKey } from "./api.js";
import { decodeUtf8, hexDump } from "./bytes.js";
import { copyButton, download, el, emptyState, errorBox, tableElement } from "./dom.js";
import { deleteKey, editKey } from "./edit.js";
import { byteSize, count, countdown, versionElement } from "./format.js";
import { commandLine } from "./shell.js";
import { shown, shownOnRequest } from "./text.js";
import { formatsOf, indentJson, parseNdjson } from "./value_formats.js";
import { showWatchersOf } from "./clients.js";

/* Larger values are loaded only when asked. */
const LARGE = 65536;
const SHOWN_CHARACTERS = 65536;
const SHOWN_HEX_BYTES = 16384;
const TABLE_ROWS = 500;

const LABELS = { text: "Text", json: "JSON", table: "Table", hex: "Hex" };

function linesElement(text) {
  const { columns, rows } = parseNdjson(text);
  const cell = (value) =>
    (value === undefined ? "" : shown(typeof value === "string" ? value : JSON.stringify(value), 200));
  const table = tableElement("Lines of the value", columns.map((name) => shown(name, 60)),
    rows.slice(0, TABLE_ROWS).map((row) => columns.map((name) => cell(row[name]))));
  if (rows.length > TABLE_ROWS) {
    table.append(el("p", { class: "hint" },
      `${TABLE_ROWS} of ${count(rows.length)} lines are shown: download the value for all.`));
  }
  return table;
}

function hexElement(bytes) {
  const box = el("pre", {}, hexDump(bytes.subarray(0, SHOWN_HEX_BYTES)));
  if (bytes.length <= SHOWN_HEX_BYTES) return box;
  const all = () => { box.textContent = hexDump(bytes); };
  return el("div", {}, box, el("button", {
    class: "small", onclick: (event) => { all(); event.target.remove(); },
  }, `Show all ${byteSize(bytes.length)}`));
}

function formatted(format, bytes, text) {
  if (bytes.length === 0) return el("p", { class: "faint" }, "The value is empty.");
  if (format === "hex") return hexElement(bytes);
  if (format === "table") return linesElement(text);
  return el("pre", {}, shownOnRequest(format === "json" ? indentJson(text) : text, SHOWN_CHARACTERS, true));
}

/* Tabs of the formats. */
function valueElement(bytes) {
  const text = decodeUtf8(bytes);
  const formats = formatsOf(text);
  const content = el("div", { class: "value", role: "tabpanel", tabindex: 0, "aria-label": "Value" });
  const tabs = formats.map((format) => el("button", {
    role: "tab", class: "tab", onclick: () => choose(format), onkeydown: (event) => move(event, format),
  }, LABELS[format]));

  function choose(format) {
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", formats[i] === format);
      tab.tabIndex = formats[i] === format ? 0 : -1;
    });
    content.replaceChildren(formatted(format, bytes, text));
  }

  function move(event, format) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const next = (formats.indexOf(format) + step + formats.length) % formats.length;
    choose(formats[next]);
    tabs[next].focus();
  }

  choose(formats[0]);
  return el("div", { class: "value-box" },
    el("div", { class: "tabs", role: "tablist", "aria-label": "Format" }, ...tabs), content);
}

function details(state, size) {
  const item = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
  return el("dl", { class: "details" },
    item("Size", size === undefined ? "–" : `${byteSize(size)}${size >= 1024 ? ` (${count(size)} bytes)` : ""}`),
    item("Expires in", state.deadline === undefined ? "never" : countdown(state.deadline)),
    item("Version", versionElement(state.version)),
    item("Fencing token", state.fence ? versionElement(state.fence) : "none"));
}

class ValuePane {
  constructor(container, entry, context) {
    Object.assign(this, { container, entry, context });
    this.body = el("div");
    container.replaceChildren(
      el("header", { class: "detail-head" },
        el("button", { class: "plain back", onclick: context.onClose }, "‹ Keys"),
        el("h2", {}, shownOnRequest(entry.key, 160))),
      this.body);
    if (entry.bytes > LARGE) this.showLarge(entry, entry.bytes);
    else this.load(LARGE);
  }

  /* The user may have selected another key in the meantime. */
  get isShown() {
    return this.body.isConnected;
  }

  async load(maxBytes) {
    this.body.replaceChildren(el("p", { class: "faint" }, "Loading…"));
    try {
      const state = await readKey(this.entry.key, maxBytes);
      if (!this.isShown) return;
      if (!state.reply) this.showLarge(state, state.size);
      else if (state.reply.type === "blob") this.showLoaded(state);
      else if (state.reply.type === "null") this.showMissing();
      else throw new Error(state.reply.text);
    } catch (error) {
      if (this.isShown) this.body.replaceChildren(errorBox(error), this.reloadButton("Try again"));
    }
  }

  reloadButton(label = "Reload") {
    return el("button", { onclick: () => this.load(LARGE) }, label);
  }

  showMissing() {
    this.body.replaceChildren(
      emptyState("This key does not exist", "It was deleted or has expired, or it was never set."),
      el("div", { class: "actions" }, this.reloadButton()));
  }

  showLarge(state, size) {
    this.body.replaceChildren(details(state, size),
      emptyState("A large value", `The value has ${byteSize(size)}. Values above 64 KiB are loaded only when asked. `,
        el("button", { onclick: () => this.load(Infinity) }, "Load it")));
  }

  showLoaded(state) {
    const { key } = this.entry;
    const current = { ...state, bytes: state.reply.bytes };
    const onDone = () => {
      this.load(LARGE);
      this.context.onChanged();
    };
    this.body.replaceChildren(
      details(state, current.bytes.length),
      el("div", { class: "actions" },
        el("button", { class: "primary", onclick: () => editKey({ key, current, onDone }) }, "Edit"),
        el("button", { onclick: () => deleteKey({ key, current, onDone }) }, "Delete"),
        this.reloadButton(),
        el("button", { onclick: () => download(current.bytes, key) }, "Download"),
        this.context.session.operator
          ? el("button", { onclick: () => showWatchersOf(key) }, "Watchers") : null,
        copyButton(commandLine("get", [key]))),
      valueElement(current.bytes));
  }
}

/* context: session, onChanged() after a change, onClose() for "back to the list". */
export function showValue(container, entry, context) {
  return new ValuePane(container, entry, context);
}
