/* SPDX-License-Identifier: Apache-2.0 */

/* The view of test control: clock, faults, reset, and the journal of requests. */

import { control } from "./api.js";
import { bytesFromBase64, bytesFromText, decodeUtf8, field, hexDump } from "./bytes.js";
import { copyButton, el, emptyState, errorBox, labelled, notify } from "./dom.js";
import { count, time, versionElement } from "./format.js";
import { encodeRequest } from "./resp.js";
import { commandLine, splitWords } from "./shell.js";
import { shown, shownOnRequest } from "./text.js";

const JOURNAL_ROWS = 200;

/* Send a command. Returns the text of its reply; throws what the store refused. */
async function send(words) {
  const reply = await control(words);
  if (reply.type === "error") throw new Error(reply.text);
  if (reply.type === "blob") return decodeUtf8(reply.bytes) ?? "";
  return String(reply.text ?? reply.number ?? "");
}

const readLines = (text) => text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));

/* A card with a title, and a place for the error of its last action. */
function card(title, hint, ...children) {
  return el("section", { class: "card" }, el("h2", {}, title), el("p", { class: "hint" }, hint), ...children,
    el("div", { class: "card-result" }));
}

/* Send words on behalf of a card; done() is called afterwards. */
async function act(event, words, doneText, done = () => {}) {
  const result = event.target.closest(".card").querySelector(".card-result");
  result.replaceChildren();
  try {
    const text = await send(words);
    notify(doneText);
    await done(text);
  } catch (error) {
    result.replaceChildren(errorBox(error));
  }
}

function commandForm(input, label, button, words, doneText, done) {
  return el("form", {
    class: "toolbar-row",
    onsubmit: (event) => {
      event.preventDefault();
      const rest = words();
      if (rest) act(event, rest, doneText, done);
      else notify("A quote is not closed.");
    },
  }, labelled(label, input), el("button", {}, button));
}

function clockCard() {
  const input = el("input", { value: "1h", class: "short" });
  const button = (word, text) => el("button", { onclick: (event) => act(event, ["clock", word], text) }, word);
  const key = el("input", { placeholder: "lock", spellcheck: "false" });
  return card("Clock", "Move the time of the store: keys expire, the time of this computer stays.",
    commandForm(input, "Advance by", "Advance", () => ["clock", "advance", input.value], "The clock was advanced."),
    el("div", { class: "actions" }, button("freeze", "The clock stands still."), button("resume", "The clock runs again.")),
    commandForm(key, "Expire a key now", "Expire", () => ["expire", key.value], "The key has expired."));
}

function faultsCard() {
  const rules = el("div");
  const input = el("input", { placeholder: "error 'the disk is full' verb SET key 'log/*' count 1", spellcheck: "false" });
  async function list() {
    const lines = readLines(await send(["fault", "list"]));
    rules.replaceChildren(...(lines.length > 0
      ? lines.map((rule) => el("p", { class: "mono" }, shown(JSON.stringify(rule), 300)))
      : [el("p", { class: "faint" }, "No rule: all requests are answered as usual.")]));
  }
  list().catch((error) => rules.replaceChildren(errorBox(error)));
  return card("Faults", "ACTION [ARGUMENT] [client ID] [verb VERB] [key PATTERN] [count N]. Actions: error TEXT, " +
    "quota, delay DURATION, no-answer, answer-twice, kick, drop-notification, notify-twice.",
  commandForm(input, "New rule", "Add", () => {
    const words = splitWords(input.value);
    return words && ["fault", ...words];
  }, "The rule was added.", list), rules,
  el("div", { class: "actions" },
    el("button", { onclick: (event) => act(event, ["fault", "clear"], "All rules are removed.", list) }, "Remove all rules"),
    copyButton(() => commandLine("test", ["fault", ...(splitWords(input.value) ?? [])]))));
}

function resetCard(onReset) {
  const outage = el("input", { value: "5s", class: "short" });
  let isArmed = false;
  const reset = el("button", {
    class: "danger",
    onclick: (event) => {
      if (!isArmed) {
        isArmed = true;
        reset.textContent = "Press again: all keys go";
        return;
      }
      isArmed = false;
      reset.textContent = "Reset the store";
      act(event, ["reset"], "The store is as after its start.", onReset);
    },
    onblur: () => {
      isArmed = false;
      reset.textContent = "Reset the store";
    },
  }, "Reset the store");
  return card("Reset and outage", "Reset empties the store, its journal and its rules. An outage disconnects it for a time.",
    el("div", { class: "actions" }, reset, copyButton("statestorectl test reset")),
    commandForm(outage, "Outage for", "Disconnect the store", () => ["outage", "store", outage.value], "The outage begins."));
}

/* The bytes of a request or reply in a line of the journal. */
function bytesOf(line, name) {
  if (name === "request" && line.request) return encodeRequest(line.request);
  const source = name === "request" ? "payload" : name;
  if (line[`${source}_base64`]) return bytesFromBase64(line[`${source}_base64`]);
  return line[source] === undefined || line[source] === null ? null : bytesFromText(line[source]);
}

function payloadElement(bytes, isHex) {
  if (!bytes) return el("span", { class: "faint" }, "none");
  const text = isHex ? null : decodeUtf8(bytes);
  return el("div", { class: "mono payload" }, shownOnRequest(text ?? hexDump(bytes), 400, text === null));
}

function journalRow(line, isHex) {
  return el("tr", {},
    el("td", { class: "number" }, count(line.number)), el("td", { class: "number" }, time(line.time)),
    el("td", {}, shown(field(line, "client") ?? "", 60)),
    el("td", {}, line.event ?? line.verb ?? "", " ", shown(field(line, "key") ?? "", 80),
      line.fault ? el("span", { class: "badge" }, `fault: ${line.fault}`) : null),
    el("td", {}, payloadElement(bytesOf(line, line.event ? "value" : "request"), isHex)),
    el("td", {}, line.event ? "" : payloadElement(bytesOf(line, "reply"), isHex), versionElement(line.version)));
}

function journalSection() {
  const what = el("select", { onchange: () => refresh() },
    el("option", { value: "requests" }, "Requests"), el("option", { value: "notifications" }, "Notifications"));
  const selection = el("input", { placeholder: "client ID verb SET key 'a/*' after 100", spellcheck: "false" });
  const hex = el("input", { type: "checkbox", onchange: () => draw() });
  const output = el("div");
  let lines = [];

  function draw() {
    if (lines.length === 0) {
      output.replaceChildren(emptyState("The journal is empty", "Requests of clients appear here, with their replies. Press Refresh."));
      return;
    }
    const names = ["Number", "Time", "Client", "What", what.value === "requests" ? "Request" : "Value", "Reply and version"];
    output.replaceChildren(
      el("p", { class: "hint" }, lines.length > JOURNAL_ROWS ? `The last ${JOURNAL_ROWS} of ${count(lines.length)}` : `${count(lines.length)} entries`),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Journal" },
        el("table", {}, el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name)))),
          el("tbody", {}, ...lines.slice(-JOURNAL_ROWS).reverse().map((line) => journalRow(line, hex.checked))))));
  }

  async function refresh(event) {
    event?.preventDefault();
    try {
      lines = readLines(await send([what.value, ...(splitWords(selection.value) ?? [])]));
      draw();
    } catch (error) {
      output.replaceChildren(errorBox(error));
    }
  }

  refresh();
  return {
    refresh,
    element: el("section", {}, el("h2", {}, "Journal"),
      el("form", { class: "toolbar-row wrap", onsubmit: refresh }, labelled("List", what), labelled("Selection", selection),
        el("label", { class: "check" }, hex, "Bytes"), el("button", { class: "primary" }, "Refresh"),
        copyButton(() => commandLine("test", [what.value, ...(splitWords(selection.value) ?? [])]))),
      output),
  };
}

export function showControl(container) {
  const journal = journalSection();
  container.append(el("div", { class: "view-head" }, el("h1", {}, "Control")),
    el("div", { class: "cards" }, clockCard(), faultsCard(), resetCard(() => journal.refresh())), journal.element);
  return { close() {} };
}
