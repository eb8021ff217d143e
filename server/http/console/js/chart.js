/* SPDX-License-Identifier: Apache-2.0 */

/* Line charts over time, as SVG. */

import { el, svg } from "./dom.js";

const WIDTH = 400;
const HEIGHT = 110;
const MINUTES = 15;

/* Return a round number that is at least the value. */
export function niceMaximum(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= value);
}

/* Return the path of a line through the values; it has a gap where a value is null. */
export function linePath(values, maximum) {
  const step = values.length > 1 ? WIDTH / (values.length - 1) : 0;
  let isInLine = false;
  let path = "";
  values.forEach((value, i) => {
    if (value === null || value === undefined) {
      isInLine = false;
      return;
    }
    const y = HEIGHT - Math.min(1, value / maximum) * HEIGHT;
    path += `${isInLine ? "L" : "M"}${(i * step).toFixed(1)} ${y.toFixed(1)}`;
    /* A value alone is a dot: round ends of a line without length. */
    if (!isInLine && (values[i + 1] === null || values[i + 1] === undefined)) path += "h0";
    isInLine = true;
  });
  return path;
}

const latest = (values) => values.findLast((value) => value !== null && value !== undefined);

function summary(title, series, format) {
  const parts = series.map(({ name, values }) => {
    const known = values.filter((value) => value !== null && value !== undefined);
    return known.length === 0 ? `${name}: no data`
      : `${name}: now ${format(known.at(-1))}, at most ${format(Math.max(...known))}`;
  });
  return `${title}, last ${MINUTES} minutes. ${parts.join("; ")}.`;
}

/*
 * A chart of series { name, values }, oldest value first. format(value) is for people. limit: also show
 * how near the values are to it. Moving over the chart shows the values of that time.
 */
export function chart(title, series, format, intervalMs) {
  const all = series.flatMap(({ values }) => values).filter((value) => value !== null && value !== undefined);
  const maximum = niceMaximum(Math.max(0, ...all));
  const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
    "aria-label": summary(title, series, format),
  },
  ...[0, 0.5, 1].map((part) => svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: part * HEIGHT, y2: part * HEIGHT })),
  ...series.map(({ values }, i) => svg("path", { class: `line line-${i}`, d: linePath(values, maximum) })), cursor);
  const values = series.map(() => el("span", { class: "number" }));
  const when = el("span", { class: "faint" });

  function show(index) {
    series.forEach((one, i) => {
      const value = index === null ? latest(one.values) : one.values[index];
      values[i].textContent = value === null || value === undefined ? "–" : format(value);
    });
    const n = series[0]?.values.length ?? 0;
    when.textContent = index === null ? "now" : `${Math.round((n - 1 - index) * intervalMs / 1000)} s ago`;
    cursor.setAttribute("visibility", index === null ? "hidden" : "visible");
    if (index !== null) for (const x of ["x1", "x2"]) cursor.setAttribute(x, index * WIDTH / Math.max(1, n - 1));
  }

  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const n = series[0]?.values.length ?? 0;
    if (n > 1) show(Math.max(0, Math.min(n - 1, Math.round((event.clientX - box.left) / box.width * (n - 1)))));
  });
  picture.addEventListener("pointerleave", () => show(null));
  show(null);
  return el("figure", { class: "chart" },
    el("figcaption", {}, el("h3", {}, title), when),
    el("div", { class: "plot" }, el("span", { class: "maximum faint" }, format(maximum)), picture),
    el("div", { class: "axis faint" }, el("span", {}, `${MINUTES} min ago`), el("span", {}, "now")),
    el("div", { class: "legend" }, ...series.map(({ name }, i) =>
      el("span", {}, el("i", { class: `key key-${i}` }), `${name} `, values[i]))));
}
