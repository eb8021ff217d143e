/* SPDX-License-Identifier: Apache-2.0 */

import { control } from "./api.js";
import { asBytes, decodeUtf8, hexDump, parseJson } from "./bytes.js";
import {
  button, el, emptyState, faint, form, labelled, showPromised, table, textInput, viewHead,
} from "./dom.js";
import { count, time, versionElement } from "./format.js";
import { encodeRequest } from "./resp.js";
import { splitWords } from "./shell.js";
import { shown, shownOnRequest } from "./text.js";

const EXAMPLES = [
  "clock advance 1h", "clock resume", "expire 'KEY'", "fault error 'disk full' verb SET key 'log/*' count 1",
  "fault delay 2s client 'ID'", "fault clear", "outage store 5s", "reset",
];

/* Returns the text of the reply to a line of words. */
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
    const text = await send(input.value);
    onDone();
    return el("pre", { role: "status" }, shownOnRequest(text || "(nothing)", 4000, true));
  }

  return el("section.card",
    form(() => showPromised(output, run()), labelled("Command", input), button("Run", null, "primary")),
    el("div.actions", EXAMPLES.map(example)),
    output);
}

function payloadElement(payload) {
  if (!payload) return faint("none");
  const bytes = asBytes(payload);
  const text = decodeUtf8(bytes);
  return el("div.mono.payload", shownOnRequest(text ?? hexDump(bytes), 800, text === null));
}

const COLUMNS = [
  ["Number", (line) => count(line.number)],
  ["Time", (line) => time(line.time)],
  ["Client", (line) => shown(line.client ?? "")],
  ["What", (line) => el("span", `${line.verb ?? ""} `, shown(line.key ?? ""),
    line.fault ? ` fault: ${line.fault}` : null)],
  ["Request", (line) => payloadElement(line.request ? encodeRequest(line.request) : line.payload)],
  ["Reply and version", (line) => el("div", payloadElement(line.reply), versionElement(line.version))],
];

/* Returns { element, refresh() }. */
function journal() {
  const output = el("div");

  async function read() {
    const lines = (await send("requests")).split("\n").filter((line) => line !== "").map(parseJson);
    return table("Journal", COLUMNS)(lines.reverse(),
      emptyState("The journal is empty", "Requests appear here."));
  }

  const refresh = () => showPromised(output, read());

  return {
    element: el("section.fields", el("div.toolbar-row", el("h2", "Journal"), button("Refresh", refresh)), output),
    refresh,
  };
}

export function showControl(container) {
  const { element, refresh } = journal();
  container.append(viewHead("Control"), commandCard(refresh), element);
  refresh();
}
