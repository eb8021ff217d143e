/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers, times and versions for people. */

import { el } from "./dom.js";

export function count(n) {
  return n === null || n === undefined ? "–" : n.toLocaleString("en");
}

export function keyCount(n, more = "") {
  return n === 1 && more === "" ? "1 key" : `${count(n)}${more} keys`;
}

export function byteSize(n) {
  if (n === null || n === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

/* 45 s, 3 min 20 s, 2 h 5 min, 3 d 4 h */
export function duration(ms) {
  const seconds = Math.ceil(ms / 1000);
  const pair = (big, bigUnit, small, smallUnit) =>
    small > 0 ? `${big} ${bigUnit} ${small} ${smallUnit}` : `${big} ${bigUnit}`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return pair(Math.floor(seconds / 60), "min", seconds % 60, "s");
  if (seconds < 86400) return pair(Math.floor(seconds / 3600), "h", Math.floor(seconds % 3600 / 60), "min");
  return pair(Math.floor(seconds / 86400), "d", Math.floor(seconds % 86400 / 3600), "h");
}

export function microseconds(us) {
  if (us === null || us === undefined) return "–";
  if (us < 1000) return `${Math.round(us)} µs`;
  return us < 1e6 ? `${(us / 1000).toFixed(us < 1e4 ? 1 : 0)} ms` : `${(us / 1e6).toFixed(1)} s`;
}

const two = (n) => String(n).padStart(2, "0");

/* Local time: with milliseconds if it is today, else with the date. */
export function time(ms, now = Date.now()) {
  const date = new Date(ms);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return date.toDateString() === new Date(now).toDateString()
    ? `${clock}.${String(date.getMilliseconds()).padStart(3, "0")}` : `${day} ${clock}`;
}

/* Return { ms, counter, node } of an HLC such as 001795219608228:00000:StateStore, or null. */
export function parseVersion(version) {
  const match = /^(\d{15}):(\d{5}):(.*)$/s.exec(version ?? "");
  return match ? { ms: Number(match[1]), counter: Number(match[2]), node: match[3] } : null;
}

/* A version as a time and its counter. The title has the version itself. */
export function versionElement(version) {
  const hlc = parseVersion(version);
  if (!hlc) return el("span", { class: "faint" }, version ?? "–");
  return el("span", { title: version, class: "number" }, time(hlc.ms),
    el("span", { class: "faint" }, ` #${hlc.counter}`));
}

export function remaining(deadline, now = Date.now()) {
  return deadline <= now ? "expired" : duration(deadline - now);
}

/* The remaining time, counting down. undefined: the key does not expire. */
export function countdown(deadline) {
  if (deadline === undefined) return el("span", { class: "faint" }, "–");
  return el("span", { class: "countdown number", "data-deadline": deadline }, remaining(deadline));
}

/* Update all shown countdowns. Call once a second. */
export function updateCountdowns() {
  for (const element of document.querySelectorAll(".countdown")) {
    const text = remaining(Number(element.dataset.deadline));
    if (element.textContent !== text) element.textContent = text;
  }
}
