/* SPDX-License-Identifier: Apache-2.0 */

/* The view of test control: clock, faults, reset, and the journal of requests. */

import { control } from "./api.js";
import { bytesFromBase64, bytesFromText, decodeUtf8, field, hexDump } from "./bytes.js";
import {
  button, checkbox, el, emptyState, errorBox, faint, form, labelled, table, textInput, viewHead,
} from "./dom.js";
import { count, time, versionElement } from "./format.js";
import { encodeRequest } from "./resp.js";
import { splitWords } from "./shell.js";
import { shown, shownOnRequest } from "./text.js";

const ROWS_MAX = 200;
const EXAMPLES = [
  "clock advance 1h", "clock resume", "expire 'KEY'", "fault error 'disk full' verb SET key 'log/*' count 1",
  "fault delay 2s client 'ID'", "fault clear", "outage store 5s", "reset",
];

/* Send a line of words. Returns the text of its reply; throws what the store refused. */
async function send(line) {
  const reply = await control(splitWords(line));
  if (reply.type === "error") throw new Error(reply.text);
  return reply.bytes ? decodeUtf8(reply.bytes) ?? "" : String(reply.text ?? reply.number ?? "");
}

function commandCard(onDone) {
  const input = textInput({ placeholder: "Choose a command below, or type one", required: true });
  const output = el("div");
  const example = (line) => button(line, () => {
    input.value = line;
    input.focus();
  }, "small mono");

  async function run() {
    try {
      const text = await send(input.value);
      output.replaceChildren(el("pre", { role: "status" }, shownOnRequest(text || "(nothing)", 4000, true)));
      onDone();
    } catch (error) {
      output.replaceChildren(errorBox(error));
    }
  }

  return el("section.card",
    form(run, labelled("Command", input), button("Run", null, "primary")),
    el("div.actions", EXAMPLES.map(example)),
    output);
}

/* The bytes of a field in a line of the journal; null if it has none. */
function bytesOf(line, name) {
  const base64 = line[`${name}_base64`];
  if (base64) return bytesFromBase64(base64);
  return (line[name] ?? null) === null ? null : bytesFromText(line[name]);
}

function payloadElement(bytes, isHex) {
  if (!bytes) return faint("none");
  const text = isHex ? null : decodeUtf8(bytes);
  return el("div.mono.payload", shownOnRequest(text ?? hexDump(bytes), 800, text === null));
}

const columns = (isHex) => [
  ["Number", (line) => count(line.number)],
  ["Time", (line) => el("span.number", time(line.time))],
  ["Client", (line) => shown(field(line, "client") ?? "")],
  ["What", (line) => el("span", `${line.verb ?? ""} `, shown(field(line, "key") ?? ""),
    line.fault ? ` fault: ${line.fault}` : null)],
  ["Request", (line) => payloadElement(line.request ? encodeRequest(line.request) : bytesOf(line, "payload"), isHex)],
  ["Reply and version", (line) =>
    el("div", payloadElement(bytesOf(line, "reply"), isHex), versionElement(line.version))],
];

/* Returns { element, refresh() }. */
function journal() {
  const hex = checkbox("Bytes", { onchange: () => refresh() });
  const output = el("div");

  async function refresh() {
    try {
      const lines = (await send("requests")).split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
      output.replaceChildren(lines.length === 0
        ? emptyState("The journal is empty", "Requests of clients appear here, with their replies.")
        : table("Journal", columns(hex.control.checked), lines.slice(-ROWS_MAX).reverse()).element,
      lines.length > ROWS_MAX ? el("p.hint", `The last ${ROWS_MAX} of ${count(lines.length)} requests`) : "");
    } catch (error) {
      output.replaceChildren(errorBox(error));
    }
  }

  return {
    element: el("section.fields", el("div.toolbar-row", el("h2", "Journal"), hex, button("Refresh", refresh)), output),
    refresh,
  };
}

export function showControl(container) {
  const { element, refresh } = journal();
  container.append(viewHead("Control"), commandCard(refresh), element);
  refresh();
}
