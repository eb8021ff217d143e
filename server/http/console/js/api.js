/* SPDX-License-Identifier: Apache-2.0 */

/* The JSON API of the store: README.md in this folder describes it. */

import { percentEncode } from "./bytes.js";
import { decodeReply, encodeRequest } from "./resp.js";
import { eventParser } from "./sse.js";

const TOKEN = "statestore-token";
const RETRY_MS = 2000;

/* The error of a request with a Statestore-If-Version that the key does not have. */
export const VERSION_CHANGED = "the version has changed";

/* Events: "online"; "offline" with a reason in detail; "logged-out" with a reason. */
export const connection = new EventTarget();

/* isReady: false if the store is reached, but does not serve requests. */
let isOnline = true;
let isReady = true;

/* The server refused a call, or did not answer (status 0). */
export class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

function announce(type, detail) {
  connection.dispatchEvent(new CustomEvent(type, { detail }));
}

export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

export function logIn(token) {
  sessionStorage.setItem(TOKEN, token);
}

export function logOut(reason) {
  sessionStorage.removeItem(TOKEN);
  announce("logged-out", reason);
}

async function retryUntilOnline() {
  while (!isOnline) {
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    const health = await getJson("/api/health").catch(() => null);
    isOnline = health !== null && (isReady || health.ready);
  }
  announce("online");
}

function setOffline(reason) {
  announce("offline", reason);
  if (!isOnline) return;
  isOnline = false;
  retryUntilOnline();
}

async function refusal(response) {
  let text = "";
  try {
    text = (await response.json()).error;
  } catch {
    text = response.statusText;
  }
  return new ApiError(response.status, text || `the server replied with status ${response.status}`);
}

/* Return the response if its status is 200. Throws ApiError; AbortError if the signal was used. */
async function send(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers };
  let response;

  if (token !== null) headers.Authorization = `Bearer ${token}`;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    isReady = true;
    setOffline("The server does not answer.");
    throw new ApiError(0, "the server does not answer");
  }
  if (response.ok) return response;
  const error = await refusal(response);
  if (error.status === 503) {
    isReady = false;
    setOffline(`The store does not serve requests now: ${error.message}.`);
  }
  if (error.status === 401 && token !== null) logOut(error.message);
  throw error;
}

function pathWith(path, parameters) {
  const query = Object.entries(parameters)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name}=${percentEncode(String(value))}`);
  return query.length > 0 ? `${path}?${query.join("&")}` : path;
}

/* GET a page as JSON. */
export async function getJson(path, parameters = {}, signal = undefined) {
  return (await send(pathWith(path, parameters), { signal })).json();
}

function post(path, words, { fence, ifVersion, signal } = {}) {
  const headers = { "Content-Type": "application/octet-stream" };
  if (fence) headers["Statestore-Fence"] = fence;
  if (ifVersion) headers["Statestore-If-Version"] = ifVersion;
  return send(path, { method: "POST", headers, body: encodeRequest(words), signal });
}

async function readReply(response) {
  return decodeReply(new Uint8Array(await response.arrayBuffer()));
}

/* Send a request of the protocol: words, and fence and ifVersion if any. Returns the decoded reply. */
export async function request(words, conditions) {
  return readReply(await post("/api/request", words, conditions));
}

/*
 * Read a key. Returns { reply, version, fence, deadline }; without reply, but with the size, if the
 * value has more than maxBytes.
 */
export async function readKey(key, maxBytes) {
  const abort = new AbortController();
  const response = await post("/api/request", ["GET", key], { signal: abort.signal });
  const expiresInMs = response.headers.get("Statestore-Expires-In-Ms");
  const size = Number(response.headers.get("Content-Length"));
  const state = {
    version: response.headers.get("Statestore-Version") ?? undefined,
    fence: response.headers.get("Statestore-Fence") ?? undefined,
    deadline: expiresInMs === null ? undefined : Date.now() + Number(expiresInMs),
  };

  if (size > maxBytes + 32) {
    abort.abort();
    return { ...state, size };
  }
  return { ...state, reply: await readReply(response) };
}

/* Send a command of test control. Returns the decoded reply. */
export async function control(words) {
  return readReply(await post("/api/control", words));
}

/* Read events until the signal is used, or the server ends the stream. */
export async function readEvents(parameters, onEvent, signal) {
  const response = await send(pathWith("/api/events", parameters), { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parse = eventParser(onEvent);

  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parse(value);
  }
}
