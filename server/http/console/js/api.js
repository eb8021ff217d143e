/* SPDX-License-Identifier: Apache-2.0 */

import { parseJson, percentEncode } from "./bytes.js";
import { sleep } from "./dom.js";
import { decodeReply, encodeRequest } from "./resp.js";
import { explained } from "./text.js";

const TOKEN = "statestore-token";
const RETRY_MS = 2000;
const NO_ANSWER = "The server does not answer. Does statestored run?";
const WRONG_TOKEN = "This token is not known to the store. Check that you pasted all of it.";
const notReady = (reason) => `The store does not serve requests now: ${reason}.`;

/* The error of a request with a Statestore-If-Version that the key does not have. */
export const VERSION_CHANGED = "the version has changed";

/* Events: "online"; "offline" and "logged-out" with a reason in detail. */
export const connection = new EventTarget();
let isOnline = true;

const announce = (type, detail) => connection.dispatchEvent(new CustomEvent(type, { detail }));

export const logIn = (token) => sessionStorage.setItem(TOKEN, token);

export function logOut(reason) {
  sessionStorage.removeItem(TOKEN);
  announce("logged-out", reason);
}

async function waitUntilOnline(reason) {
  announce("offline", reason);
  if (!isOnline) return;
  isOnline = false;
  for (;;) {
    await sleep(RETRY_MS);
    const health = await fetch("/api/health").then((response) => response.json()).catch(() => null);
    if (health?.ready) break;
    announce("offline", health ? notReady(health.reason) : NO_ANSWER);
  }
  isOnline = true;
  announce("online");
}

const given = (fields) => Object.entries(fields).filter(([, value]) => value !== undefined);

const apiError = (status, text) => Object.assign(new Error(text), { status });

async function send(path, options) {
  const token = sessionStorage.getItem(TOKEN);
  const Authorization = token === null ? undefined : `Bearer ${token}`;
  const headers = given({ ...options.headers, Authorization });
  let response;

  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    waitUntilOnline(NO_ANSWER);
    throw apiError(0, NO_ANSWER);
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (response.status === 503) waitUntilOnline(notReady(error));
  if (response.status === 401 && token !== null) logOut(WRONG_TOKEN);
  throw apiError(response.status, error);
}

function get(path, parameters, signal) {
  const query = given(parameters).map(([name, value]) => `${name}=${percentEncode(String(value))}`);
  return send(`${path}?${query.join("&")}`, { signal });
}

export const getJson = async (path, parameters = {}, signal = undefined) =>
  parseJson(await (await get(path, parameters, signal)).text());

function post(path, words, headers, signal) {
  const type = { "Content-Type": "application/octet-stream" };
  return send(path, { method: "POST", headers: { ...type, ...headers }, body: encodeRequest(words), signal });
}

const readReply = async (response) => decodeReply(new Uint8Array(await response.arrayBuffer()));

/* Returns the decoded reply. */
export async function request(words, { fence, ifVersion }) {
  const headers = { "Statestore-Fence": fence, "Statestore-If-Version": ifVersion };
  return readReply(await post("/api/request", words, headers));
}

/* Read a key: { bytes, null: none; size, version, fence, deadline }. Above maxBytes: no bytes, the reply's size. */
export async function readKey(key, maxBytes) {
  const abort = new AbortController();
  const response = await post("/api/request", ["GET", key], {}, abort.signal);
  const header = (name) => response.headers.get(name) ?? undefined;
  const expiresInMs = header("Statestore-Expires-In-Ms");
  const state = {
    size: Number(header("Content-Length")), version: header("Statestore-Version"), fence: header("Statestore-Fence"),
    deadline: expiresInMs && Date.now() + Number(expiresInMs),
  };

  if (state.size > maxBytes + 32) {
    abort.abort();
    return state;
  }
  const reply = await readReply(response);
  if (reply.type === "error") throw new Error(explained(reply.text));
  return { ...state, bytes: reply.bytes ?? null, size: reply.bytes?.length };
}

export const control = async (words) => readReply(await post("/api/control", words));

/* Returns a function that takes the next part of a stream, and calls onEvent({ id, event, data }). */
export function eventParser(onEvent) {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/)));
      if (event.data) onEvent(event);
    }
  };
}

/* Read events until the signal is aborted, or the server ends the stream. */
export async function readEvents(parameters, onEvent, signal) {
  const response = await get("/api/events", parameters, signal);
  const parse = eventParser(onEvent);
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) parse(text);
}
