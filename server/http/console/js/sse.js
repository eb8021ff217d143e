/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Server-sent events in a stream of text. EventSource cannot send the token in a header, so the
 * console reads the stream itself. Returns a function that takes the next part of the text, and calls
 * on_event({ id, event, data }) for each event in it.
 */
export function eventParser(onEvent) {
  let rest = "";
  let current = { event: "message", data: [] };

  function endEvent() {
    if (current.data.length > 0) onEvent({ ...current, data: current.data.join("\n") });
    current = { event: "message", data: [] };
  }

  function readLine(line) {
    const [, name, value] = /^([^:]*)(?::\s?(.*))?$/s.exec(line);
    if (line === "") endEvent();
    else if (name === "data") current.data.push(value ?? "");
    else if (name === "id" || name === "event") current[name] = value ?? "";
  }

  return (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) readLine(line.replace(/\r$/, ""));
  };
}
