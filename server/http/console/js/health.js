/* SPDX-License-Identifier: Apache-2.0 */

/* The view of health: state, warnings with remedies, and charts of the last 15 minutes. */

import { getJson } from "./api.js";
import { chart } from "./chart.js";
import { copyButton, el, errorBox, viewHead, warning } from "./dom.js";
import { byteSize, count, duration, microseconds } from "./format.js";
import { commandLine } from "./shell.js";

const REFRESH_MS = 5000;
const SERIES_MAX = 6;
const BROKERS = { plugin: "with the plugin", plain: "without the plugin", unknown: "not recognized yet" };

function tile(name, value, detail = null, use = null) {
  return el("div", { class: "tile" }, el("dt", {}, name), el("dd", {}, value),
    use === null ? null : el("meter", { min: 0, max: 1, high: 0.9, value: use, "aria-label": `${name}: used part` }),
    detail ? el("dd", { class: "faint" }, detail) : null);
}

function used(name, { n, max }, format) {
  return max ? tile(name, format(n), `of ${format(max)}`, n / max) : tile(name, format(n));
}

function tiles(health) {
  const list = [
    tile("Broker", health.broker.connected ? "connected" : "not connected", BROKERS[health.broker.kind]),
    used("Keys", health.keys, count), used("Memory", health.bytes, byteSize),
    used("Watched keys", health.registrations, count), used("Waiting requests", health.waiting_bytes, byteSize),
    tile("Remembered replies", count(health.remembered.n),
      health.remembered.dropped_early > 0 ? `${count(health.remembered.dropped_early)} dropped early` : null),
    tile("Dropped requests", count(health.dropped)),
    tile("Running for", duration(health.now_ms - health.started_ms)),
  ];
  list.push(health.commits ? tile("Commits", count(health.commits.n), `${count(health.commits.failed)} failed`)
    : tile("Commits", "none", "the store is in memory"));
  if (health.disk) list.push(tile("Free on disk", byteSize(health.disk.free_bytes)));
  if (health.cluster)
    list.push(tile("Cluster", health.cluster.leads ? "this member leads" : "standby", `term ${health.cluster.term}`));
  return el("dl", { class: "tiles" }, ...list);
}

/* The verbs with the most requests; the others together. Requests a second. */
function requestSeries({ requests, interval_ms: intervalMs }) {
  const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);
  const perSecond = (values) => values.map((value) => (value === null ? null : value * 1000 / intervalMs));
  const verbs = Object.entries(requests).filter(([, values]) => sum(values) > 0)
    .sort(([, a], [, b]) => sum(b) - sum(a));
  const series = verbs.slice(0, SERIES_MAX - 1).map(([name, values]) => ({ name, values: perSecond(values) }));
  const rest = verbs.slice(SERIES_MAX - 1).map(([, values]) => perSecond(values));
  if (rest.length > 0) series.push({ name: "others", values: rest[0].map((_, i) => sum(rest.map((values) => values[i]))) });
  return series.length > 0 ? series : [{ name: "all", values: Object.values(requests)[0]?.map(() => 0) ?? [] }];
}

function charts(samples, hasCommits) {
  const interval = samples.interval_ms;
  const rate = (value) => `${value < 10 ? Math.round(value * 10) / 10 : count(Math.round(value))}/s`;
  const series = (...pairs) => pairs.map(([name, values]) => ({ name, values: values ?? [] }));
  const all = [
    chart("Requests", requestSeries(samples), rate, interval),
    chart("Waiting time", series(["median", samples.queue_p50_us], ["99 %", samples.queue_p99_us]), microseconds, interval),
    chart("Execution time", series(["99 %", samples.engine_p99_us]), microseconds, interval),
    chart("Keys", series(["keys", samples.keys]), (value) => count(Math.round(value)), interval),
    chart("Memory", series(["bytes", samples.bytes]), byteSize, interval),
    chart("Dropped requests", series(["dropped", samples.dropped]), (value) => count(Math.round(value)), interval),
  ];
  if (hasCommits) {
    all.splice(3, 0, chart("Commit time",
      series(["median", samples.commit_p50_us], ["99 %", samples.commit_p99_us]), microseconds, interval));
  }
  return el("div", { class: "charts" }, ...all);
}

function state(health) {
  return el("div", { class: health.ready ? "state good-state" : "state bad-state", role: "status" },
    el("strong", {}, health.ready ? "● Ready" : "▲ Not ready"),
    health.ready ? "The store serves requests." : health.reason);
}

function warnings(health) {
  return health.warnings.map(({ text, remedy }) => warning(el("strong", {}, `▲ ${text}`), remedy));
}

function explanation(session) {
  if (session.login !== "unavailable") return null;
  return el("div", { class: "notice" },
    el("p", {}, el("strong", {}, "Only Health is shown."), " This store has no console users, so nobody can log in."),
    el("p", {}, "Make a user and a token: ", el("code", {}, "statestorectl console-token NAME"),
      ". Put the printed line into a file, add the word ", el("code", {}, "operator"), " if the user may see other clients, " +
      "and start the store with ", el("code", {}, "--console-users FILE"), "."));
}

export function showHealth(container, session) {
  const abort = new AbortController();
  const content = el("div", {}, el("p", { class: "faint" }, "Loading…"));
  let timer;

  container.append(viewHead("Health", null, copyButton(commandLine("stat", []))));
  const note = explanation(session);
  if (note) container.append(note);
  container.append(content);

  async function refresh() {
    try {
      const health = await getJson("/api/health", {}, abort.signal);
      content.replaceChildren(state(health), ...warnings(health), tiles(health),
        charts(health.samples, health.commits !== null));
    } catch (error) {
      if (error.name !== "AbortError") content.replaceChildren(errorBox(error));
    }
    if (!abort.signal.aborted) timer = setTimeout(refresh, REFRESH_MS);
  }

  refresh();
  return {
    goesOn: true,
    close() {
      abort.abort();
      clearTimeout(timer);
    },
  };
}
