/* SPDX-License-Identifier: Apache-2.0 */

/* Deleting by pattern: list what goes, then delete each key if it is still what was listed. */

import { request, VERSION_CHANGED } from "./api.js";
import { button, el, errorBox, faint, form, labelled, openDialog, table, textInput } from "./dom.js";
import { byteSize, count, countdown, plural, versionElement } from "./format.js";
import { KeySearch, PATTERN_HELP } from "./key_search.js";
import { shown } from "./text.js";

const LIMIT_MAX = 10000;

const COLUMNS = [
  ["Key", (entry) => shown(entry.key)],
  ["Size", (entry) => byteSize(entry.bytes)],
  ["Expires in", (entry) => countdown(entry.deadline)],
  ["Version", (entry) => versionElement(entry.version)],
];

function resultText({ deleted, changed, refused, error }) {
  const parts = [`${count(deleted)} deleted`];
  if (changed > 0) parts.push(`${count(changed)} left alone: changed or gone meanwhile`);
  if (refused > 0) parts.push(`${count(refused)} refused: ${error}`);
  return `${parts.join("; ")}.`;
}

export function deleteByPattern(initialPattern, onDone) {
  let isOpen = true;
  const { body, close } = openDialog("Delete by pattern", () => {
    isOpen = false;
    onDone();
  });
  const pattern = textInput({ value: initialPattern });
  const limit = el("input.short", { type: "number", min: 1, max: LIMIT_MAX, value: 100, required: true });
  const output = el("div.fields");
  const fail = (error) => output.replaceChildren(errorBox(error));

  async function list() {
    const max = Number(limit.value);
    const search = new KeySearch(pattern.value);
    output.replaceChildren(faint("Listing…"));
    await search.read(max, () => { if (!isOpen) search.stop(); });
    const entries = [...search.entries.values()].slice(0, max);
    if (entries.length === 0) output.replaceChildren("No key matches: nothing to delete.");
    else ask(entries, search.entries.size > max || !search.isDone);
  }

  function ask(entries, hasMore) {
    const chosen = entries.filter((entry) => !entry.fence);
    const nFenced = entries.length - chosen.length;

    output.replaceChildren(
      el("p", `${hasMore ? "The first " : ""}${plural(entries.length, "key")} found. `,
        nFenced > 0 ? `${count(nFenced)} with a fencing token stay. ` : null, "A key that changes meanwhile stays."),
      table("Keys to delete", COLUMNS)(chosen),
      el("div.actions", button(`Delete ${plural(chosen.length, "key")}`, () => run(chosen).catch(fail), "danger"),
        button("Cancel", close)));
  }

  async function run(entries) {
    const result = { deleted: 0, changed: 0, refused: 0, error: null };
    const status = el("p", { role: "status" });
    const stop = button("Stop and close", close);
    output.replaceChildren(status, el("div.actions", stop));
    for (const [i, { key, version }] of entries.entries()) {
      if (!isOpen) return;
      const reply = await request(["DEL", key], { ifVersion: version });
      if (reply.number === 1) {
        result.deleted++;
      } else if (reply.type === "number" || reply.text === VERSION_CHANGED) {
        result.changed++;
      } else {
        result.refused++;
        result.error ??= reply.text;
      }
      status.textContent = `${count(i + 1)} of ${count(entries.length)}…`;
    }
    status.textContent = resultText(result);
    stop.textContent = "Close";
  }

  body.append(
    form(() => list().catch(fail), labelled("Pattern", pattern), labelled("At most", limit),
      button("List the keys", null, "primary")),
    el("p.hint", PATTERN_HELP), output);
  pattern.focus();
}
