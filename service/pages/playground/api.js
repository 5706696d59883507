/** Requests to the service that this page came from. Addresses are relative, so the service may be under a path. */

/**
 * @typedef {import("./types.js").Timing} Timing
 */

/** The service refused a request, and said why (RFC 9457). */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {string[]} fields   The fields that were not accepted.
   * @param {number} retryAfter Seconds.
   */
  constructor(status, detail, fields, retryAfter) {
    super(detail);
    this.status = status;
    this.fields = fields;
    this.retryAfter = retryAfter;
  }

  /** @param {Response} response */
  static async of(response) {
    const body = await response.json().catch(() => ({}));
    const detail = body.detail ?? `The service answered ${response.status} ${response.statusText}`.trim();
    const named = /^`(\w+)/.exec(detail);
    const fields = [...(body.errors ?? []).map((error) => String(error.loc[0])), ...(named ? [named[1]] : [])];
    return new Problem(response.status, detail, fields, Number(response.headers.get("retry-after")) || 1);
  }

  get busy() {
    return this.status === 503 || this.status === 429;
  }

  get wantsKey() {
    return this.status === 401 || this.status === 403;
  }
}

/** The service cannot be reached. */
export class Unreachable extends Error {
  constructor() {
    super("attend cannot be reached");
  }
}

/** Returns an error of the service or the network. Throws any other. @param {any} error */
export function expected(error) {
  if (!(error instanceof Problem || error instanceof Unreachable)) throw error;
  return error;
}

let key = sessionStorage.getItem("attend-key") ?? "";

/** @param {string} value  The key for a service that requires one; kept until the browser's tab is closed. */
export function useKey(value) {
  key = value;
  sessionStorage.setItem("attend-key", value);
}

export function hasKey() {
  return key !== "";
}

/** Returns the key as a field of a message, if there is one: a browser's WebSocket sends no header. */
export function keyField() {
  return key ? { key } : {};
}

/** @param {string} path */
export function addressOf(path) {
  return new URL(path, document.baseURI.split("#")[0]).href;
}

/** @returns {Promise<import("./types.js").Model[]>} */
export async function models() {
  const response = await reach("models", {});
  return (await bodyOf(response)).models;
}

/**
 * @param {string} path
 * @param {object} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<{answer: any, timing: Timing}>}
 */
export async function post(path, body, signal) {
  const began = performance.now();
  const headers = { "content-type": "application/json" };
  const response = await reach(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  const answer = await bodyOf(response);
  return { answer, timing: { roundTrip: performance.now() - began, parts: serverTiming(response) } };
}

/**
 * Asks as above, for an answer that comes in pieces.
 *
 * @param {string} path
 * @param {object} body
 * @param {AbortSignal} signal
 * @param {(piece: string) => void} hear  Gets each piece of the first text's translation.
 * @returns {Promise<{answer: any, timing: Timing}>}
 */
export async function postInPieces(path, body, signal, hear) {
  const began = performance.now();
  const headers = { "content-type": "application/json", accept: "application/x-ndjson" };
  const response = await reach(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let answer = null;
  let rest = "";
  for (;;) {
    const { done, value } = await connected(reader.read());
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const one of lines.map((line) => JSON.parse(line))) {
      if ("piece" in one) hear(one.piece);
      else answer = one;
    }
  }
  if (answer === null) throw new Unreachable();
  if ("status" in answer) throw new Problem(answer.status, answer.detail, [], 1);
  return { answer, timing: { roundTrip: performance.now() - began, parts: [] } };
}

/**
 * @param {File} file
 * @param {Record<string, unknown>} options  Values that are not strings are sent as JSON.
 * @param {AbortSignal} signal
 * @returns {Promise<import("./types.js").DocumentCard>}
 */
export async function upload(file, options, signal) {
  const body = new FormData();
  body.append("file", file);
  for (const [name, value] of Object.entries(options)) {
    body.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return bodyOf(await reach("translate/document", { method: "POST", body, signal }));
}

/** @returns {Promise<{id: string, name: string}[]>} */
export async function glossaries() {
  return (await bodyOf(await reach("glossaries", {}))).glossaries;
}

/** @param {File} file @param {string} source @param {string} target @returns {Promise<{id: string}>} */
export async function uploadGlossary(file, source, target) {
  const body = new FormData();
  for (const [name, value] of Object.entries({ file, source, target })) body.append(name, value);
  return bodyOf(await reach("glossaries/file", { method: "POST", body }));
}

/** @returns {Promise<{id: string, name: string, source: string, target: string}[]>} */
export async function memories() {
  return (await bodyOf(await reach("memories", {}))).memories;
}

/** @param {string} name @param {string} source @param {string} target @returns {Promise<{id: string}>} */
export async function makeMemory(name, source, target) {
  return (await post("memories", { name, source, target })).answer;
}

/** @param {string} id  Of a memory. @param {string} source  A text. @param {string} target  Its translation. */
export async function storeSegment(id, source, target) {
  await post(`memories/${id}/segments`, { segments: [{ source, target }] });
}

/** @param {string} address @param {AbortSignal} signal @returns {Promise<import("./types.js").DocumentCard>} */
export async function statusOf(address, signal) {
  return bodyOf(await reach(address, { signal }));
}

/** @param {string} address @param {AbortSignal} signal */
export async function download(address, signal) {
  const response = await reach(address, { signal });
  return connected(response.blob());
}

/** @param {string} address  Address of a document to delete; nobody waits until it is deleted. */
export function forget(address) {
  reach(address, { method: "DELETE", keepalive: true }).catch(() => {});
}

/** @param {string} path @param {RequestInit} init */
async function reach(path, init) {
  const authorization = key ? { authorization: `Bearer ${key}` } : {};
  const response = await connected(fetch(addressOf(path), { ...init, headers: { ...init.headers, ...authorization } }));
  if (!response.ok) throw await Problem.of(response);
  return response;
}

/** @param {Response} response */
function bodyOf(response) {
  return connected(response.json());
}

/** Awaits a promise of fetch, and turns every failure of the network into one error. */
async function connected(promise) {
  try {
    return await promise;
  } catch (error) {
    throw error.name === "AbortError" ? error : new Unreachable();
  }
}

/** @param {Response} response @returns {import("./types.js").Part[]} */
function serverTiming(response) {
  const header = response.headers.get("server-timing") ?? "";
  return [...header.matchAll(/([\w-]+);dur=([\d.]+)/g)].map(([, name, ms]) => ({ name, ms: Number(ms) }));
}
