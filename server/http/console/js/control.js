/* SPDX-License-Identifier: Apache-2.0 */

/* The view of test control: clock, faults, reset, and the journal of requests. */

import { control } from "./api.js";
import { bytesFromBase64, bytesFromText, decodeUtf8, field, hexDump } from "./bytes.js";
import { checkbox, copyButton, el, emptyState, errorBox, labelled, tableElement, viewHead } from "./dom.js";
import { count, time, versionElement } from "./format.js";
import { encodeRequest } from "./resp.js";
import { commandLine, splitWords } from "./shell.js";
import { shown, shownOnRequest } from "./text.js";

const ROWS_MAX = 200;
const EXAMPLES = [
  "clock advance 1h", "clock freeze", "clock resume", "expire 'KEY'",
  "fault error 'the disk is full' verb SET key 'log/*' count 1", "fault delay 2s client 'ID'", "fault no-answer",
  "fault clear", "watchers", "outage store 5s", "reset",
];

/* Send a line of words. Returns the text of its reply; throws what the store refused. */
async function send(line) {
  const words = splitWords(line);
  if (!words) throw new Error("A quote is not closed.");
  const reply = await control(words);
  if (reply.type === "error") throw new Error(reply.text);
  return reply.type === "blob" ? decodeUtf8(reply.bytes) ?? "" : String(reply.text ?? reply.number ?? "");
}

const testCommand = (line) => commandLine("test", splitWords(line) ?? []);

function commandCard(onDone) {
  const input = el("input", { placeholder: "Choose a command below, or type one", spellcheck: "false" });
  const output = el("div");
  async function run(event) {
    event.preventDefault();
    try {
      const text = await send(input.value);
      output.replaceChildren(el("pre", { role: "status" }, shownOnRequest(text === "" ? "(nothing)" : text, 4000, true)));
      onDone();
    } catch (error) {
      output.replaceChildren(errorBox(error));
    }
  }
  return el("section", { class: "card" },
    el("form", { class: "toolbar-row wrap", onsubmit: run }, labelled("Command", input),
      el("button", { class: "primary" }, "Run"), copyButton(() => testCommand(input.value))),
    el("div", { class: "actions" }, ...EXAMPLES.map((example) => el("button", {
      class: "small mono",
      onclick: () => {
        input.value = example;
        input.focus();
      },
    }, example))),
    el("p", { class: "hint" }, "clock moves the time of the store, so that keys expire. fault makes it answer wrongly: " +
      "error TEXT, quota, delay DURATION, no-answer, answer-twice, kick, drop-notification, notify-twice; for some requests " +
      "with client ID, verb VERB, key PATTERN, count N. reset empties the store."),
    output);
}

/* The bytes of a field in a line of the journal; null if it has none. */
function bytesOf(line, name) {
  if (name === "request" && line.request) return encodeRequest(line.request);
  const source = name === "request" ? "payload" : name;
  if (line[`${source}_base64`]) return bytesFromBase64(line[`${source}_base64`]);
  return line[source] === undefined || line[source] === null ? null : bytesFromText(line[source]);
}

function payloadElement(bytes, isHex) {
  if (!bytes) return el("span", { class: "faint" }, "none");
  const text = isHex ? null : decodeUtf8(bytes);
  return el("div", { class: "mono payload" }, shownOnRequest(text ?? hexDump(bytes), 800, text === null));
}

function journalCells(line, isHex) {
  return [
    count(line.number), el("span", { class: "number" }, time(line.time)), shown(field(line, "client") ?? "", 60),
    el("span", {}, `${line.event ?? line.verb ?? ""} `, shown(field(line, "key") ?? "", 80),
      line.fault ? el("span", { class: "badge" }, `fault: ${line.fault}`) : null),
    payloadElement(bytesOf(line, line.event ? "value" : "request"), isHex),
    el("div", {}, line.event ? null : payloadElement(bytesOf(line, "reply"), isHex), versionElement(line.version)),
  ];
}

class Journal {
  lines = [];

  constructor() {
    const refresh = (event) => {
      event.preventDefault();
      this.refresh();
    };
    this.what = el("select", { onchange: refresh },
      el("option", { value: "requests" }, "Requests"), el("option", { value: "notifications" }, "Notifications"));
    this.selection = el("input", { placeholder: "client ID verb SET key 'a/*' after 100", spellcheck: "false" });
    this.hex = el("input", { type: "checkbox", onchange: () => this.draw() });
    this.output = el("div");
    this.element = el("section", {}, el("h2", {}, "Journal"),
      el("form", { class: "toolbar-row wrap", onsubmit: refresh }, labelled("List", this.what),
        labelled("Selection", this.selection), checkbox("Bytes", this.hex), el("button", { class: "primary" }, "Refresh"),
        copyButton(() => testCommand(this.command))),
      this.output);
    this.refresh();
  }

  get command() {
    return `${this.what.value} ${this.selection.value}`;
  }

  async refresh() {
    try {
      const text = await send(this.command);
      this.lines = text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
      this.draw();
    } catch (error) {
      this.output.replaceChildren(errorBox(error));
    }
  }

  draw() {
    const { lines } = this;
    if (lines.length === 0) {
      this.output.replaceChildren(emptyState("The journal is empty",
        "Requests of clients appear here, with their replies. Send one, then press Refresh."));
      return;
    }
    const part = lines.length > ROWS_MAX ? `The last ${ROWS_MAX} of ` : "";
    this.output.replaceChildren(el("p", { class: "hint" }, `${part}${count(lines.length)} entries`),
      tableElement("Journal", ["Number", "Time", "Client", "What", "Request or value", "Reply and version"],
        lines.slice(-ROWS_MAX).reverse().map((line) => journalCells(line, this.hex.checked))));
  }
}

export function showControl(container) {
  const journal = new Journal();
  container.append(viewHead("Control"), commandCard(() => journal.refresh()), journal.element);
}
