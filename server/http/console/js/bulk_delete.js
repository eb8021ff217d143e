/* SPDX-License-Identifier: Apache-2.0 */

/* Deleting by pattern: list what goes, then delete each key if it is still what was listed. */

import { request, VERSION_CHANGED } from "./api.js";
import { checkbox, copyButton, el, errorBox, labelled, openDialog, tableElement } from "./dom.js";
import { byteSize, count, countdown, keyCount, versionElement } from "./format.js";
import { KeySearch } from "./key_search.js";
import { commandLine } from "./shell.js";
import { shown } from "./text.js";

const LIMIT_MAX = 10000;
const LISTED_MAX = 1000;

function listElement(entries) {
  const rest = entries.length - LISTED_MAX;
  const table = tableElement("Keys to delete", ["Key", "Size", "Expires in", "Version"],
    entries.slice(0, LISTED_MAX).map((entry) => [
      el("span", {}, shown(entry.key, 120), entry.fence ? el("span", { class: "badge" }, "fenced") : null),
      byteSize(entry.bytes), countdown(entry.deadline), versionElement(entry.version)]));
  table.classList.add("tall");
  if (rest > 0) table.append(el("p", { class: "hint" }, `… and ${count(rest)} more`));
  return table;
}

/* Delete the keys one after the other. Returns the counts, and the first error text. */
async function deleteAll(entries, progress, isStopped) {
  const result = { deleted: 0, changed: 0, refused: 0, error: null };
  for (const entry of entries) {
    if (isStopped()) break;
    const reply = await request(["DEL", entry.key], { fence: entry.fence, ifVersion: entry.version });
    if (reply.type === "number" && reply.number === 1) {
      result.deleted++;
    } else if (reply.type === "number" || reply.text === VERSION_CHANGED) {
      result.changed++;
    } else {
      result.refused++;
      result.error ??= reply.text;
    }
    progress(result);
  }
  return result;
}

function resultText({ deleted, changed, refused, error }) {
  const parts = [`${count(deleted)} deleted`];
  if (changed > 0) parts.push(`${count(changed)} left alone: changed or gone since they were listed`);
  if (refused > 0) parts.push(`${count(refused)} refused: ${error}`);
  return `${parts.join("; ")}.`;
}

export function deleteByPattern(initialPattern, onDone) {
  let isOpen = true;
  openDialog("Delete by pattern", (body, close) => {
    const pattern = el("input", { value: initialPattern, spellcheck: "false", autocomplete: "off" });
    const limit = el("input", { type: "number", min: 1, max: LIMIT_MAX, value: 100, class: "short" });
    const output = el("div");

    async function list(event) {
      event.preventDefault();
      const max = Math.min(LIMIT_MAX, Math.max(1, Number(limit.value) || 1));
      const search = new KeySearch(pattern.value || "*");
      output.replaceChildren(el("p", { class: "faint" }, "Listing…"));
      try {
        await search.read(max, () => { if (!isOpen) search.stop(); });
        const all = [...search.entries.values()];
        ask(all.slice(0, max), search.pattern, all.length > max || !search.isDone);
      } catch (error) {
        output.replaceChildren(errorBox(error));
      }
    }

    function ask(entries, listed, hasMore) {
      const fenced = entries.filter((entry) => entry.fence).length;
      const alsoFenced = el("input", { type: "checkbox", onchange: () => label() });
      const button = el("button", { class: "danger", onclick: () => run(chosen()) });
      const chosen = () => entries.filter((entry) => alsoFenced.checked || !entry.fence);
      const label = () => {
        button.textContent = `Delete ${keyCount(chosen().length)}`;
        button.disabled = chosen().length === 0;
      };

      label();
      if (entries.length === 0) {
        output.replaceChildren(el("p", {}, "No key matches: nothing to delete."));
        return;
      }
      output.replaceChildren(
        el("p", {}, hasMore
          ? `The first ${count(entries.length)} keys that match; more do. Raise the limit, or repeat it.`
          : `${count(entries.length)} keys match.`, " A key that changes meanwhile is left alone."),
        listElement(entries),
        fenced === 0 ? "" : checkbox(`Also the ${count(fenced)} keys with a fencing token, by sending it: ` +
          "holders of locks do not expect this", alsoFenced),
        el("div", { class: "actions" }, button, el("button", { onclick: close }, "Cancel"),
          copyButton(commandLine("del", [], ["--pattern", listed, "--yes"]))));
    }

    async function run(entries) {
      const status = el("p", { role: "status" });
      output.replaceChildren(status, el("div", { class: "actions" },
        el("button", { onclick: close }, "Stop and close")));
      try {
        const result = await deleteAll(entries, (so) => {
          status.textContent = `${count(so.deleted + so.changed + so.refused)} of ${count(entries.length)}…`;
        }, () => !isOpen);
        output.replaceChildren(el("p", { role: "status" }, resultText(result)),
          el("div", { class: "actions" }, el("button", { class: "primary", onclick: close }, "Close")));
      } catch (error) {
        output.replaceChildren(errorBox(error));
      }
    }

    body.append(
      el("form", { class: "toolbar-row", onsubmit: list },
        labelled("Pattern", pattern), labelled("At most", limit), el("button", { class: "primary" }, "List the keys")),
      el("p", { class: "hint" }, "* is any text, ? is one character, [ab] is one of these. Nothing is deleted before you confirm."),
      output);
  }, () => {
    isOpen = false;
    onDone();
  });
}
