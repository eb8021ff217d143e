/* SPDX-License-Identifier: Apache-2.0 */

import { getJson, readEvents } from "./api.js";
import { parseJson } from "./bytes.js";
import {
  button, el, emptyState, errorBox, faint, form, labelled, poll, sleep, statusLine, table, textInput, viewHead,
} from "./dom.js";
import { byteSize, count, plural, time } from "./format.js";
import { patternOf } from "./key_search.js";
import { openKey } from "./keys.js";
import { explained, shown } from "./text.js";

const EVENTS_MAX = 500;
const DRAW_MS = 250;
const RETRY_MS = 2000;
const KINDS = { delete: "deleted", expire: "expired", unmet: "condition not met" };

const kept = { search: "", client: "" };

function clientElement({ client, user }) {
  return el("span", client ? shown(client) : faint("the store"),
    user && user !== client ? [faint(" user "), shown(user)] : null);
}

/* A row is an event; or a gap with a text. */
const COLUMNS = [
  ["Time", (row) => (row.time_ms ? time(row.time_ms) : "")],
  ["What", ({ kind }) => el(`span.kind.${kind}`, KINDS[kind] ?? kind)],
  ["Key", ({ key }) => (key ? button(shown(key), () => openKey(key), "link") : "")],
  ["Client", (row) => (row.text ? "" : clientElement(row))],
  ["Details", ({ kind, text, verb, bytes, error }) => el("span", text ?? verb ?? "", " ",
    error ? el(`span.${kind}`, shown(explained(error), 300)) : bytes === undefined ? "" : byteSize(bytes))],
];

export function showLive(container, session, viewSignal) {
  const list = table("Events", COLUMNS);
  const content = el("div");
  const status = statusLine();
  const pause = button("Pause", () => setPaused(!isPaused));
  const search = textInput({ type: "search", value: kept.search, placeholder: "All keys" });
  const client = textInput({ type: "search", value: kept.client, placeholder: "All clients" });
  let rows = []; /* the newest first */
  let run = new AbortController();
  let isPaused = false;
  let nWaiting = 0;
  let isDirty = true;
  let error = null;

  function setPaused(newPaused) {
    isPaused = newPaused;
    nWaiting = 0;
    isDirty = true;
    pause.textContent = isPaused ? "Continue" : "Pause";
  }

  /* Bounded, also while the view is paused. */
  function add(row) {
    rows = [row, ...rows.slice(0, EVENTS_MAX - 1)];
    nWaiting++;
    isDirty = true;
  }

  const addGap = (text) => add({ kind: "gap", text });

  /* Follow the events, after those in the memory of the store. */
  async function start() {
    let lastId = 0;
    let startedMs;
    run.abort();
    run = new AbortController();
    const signal = AbortSignal.any([viewSignal, run.signal]);
    rows = [];
    setPaused(false);
    while (!signal.aborted) {
      try {
        const health = await getJson("/api/health", {}, signal);
        /* The store numbers its events from 1 after each start. */
        if (startedMs && startedMs !== health.started_ms) {
          lastId = 0;
          addGap("The store was started again here.");
        }
        startedMs = health.started_ms;
        const wanted = { pattern: patternOf(kept.search), client: kept.client || undefined, after: lastId };
        await readEvents(wanted, (event) => {
          const data = parseJson(event.data);
          error = null;
          lastId = event.id ?? lastId;
          if (event.event === "gap") addGap(`${count(data.lost)} events are missing here: this page was too slow.`);
          else add(data);
        }, signal);
      } catch (failure) {
        /* Of a lost connection the banner tells. */
        if (!signal.aborted && failure.status > 0) error = failure;
        isDirty = true;
      }
      await sleep(RETRY_MS);
    }
  }

  async function draw() {
    if (!isDirty) return content.firstChild;
    isDirty = false;
    status.textContent = isPaused ? `Paused; ${plural(nWaiting, "new event")}`
      : `${rows.length < EVENTS_MAX ? "" : "The last "}${plural(rows.length, "event")}`;
    if (isPaused) return content.firstChild;
    return error ? errorBox(error) : list(rows, emptyState("Waiting for events",
      "Changes, expiries and refused requests appear here."));
  }

  container.append(
    viewHead("Live", status, pause),
    form(() => {
      Object.assign(kept, { search: search.value, client: client.value });
      start();
    }, labelled("Keys", search), labelled("Client", client), button("Filter", null, "primary")),
    content);
  start();
  poll(viewSignal, content, draw, DRAW_MS);
}
