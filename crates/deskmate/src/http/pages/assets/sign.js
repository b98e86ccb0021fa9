// Calls operations as the person who is signed in, signed with the browser's key. The private half cannot be exported
// and is kept per origin, port included, so that a page of another port with our cookie still cannot decide anything.

const KEY = "signing-key";

function store(mode, act) {
  return new Promise((resolve, reject) => {
    const open = indexedDB.open("deskmate", 1);
    open.onupgradeneeded = () => open.result.createObjectStore("keys");
    open.onerror = () => reject(open.error);
    open.onsuccess = () => {
      const transaction = open.result.transaction("keys", mode);
      const request = act(transaction.objectStore("keys"));
      // Only what is complete is kept: a page that leaves before takes its transaction with it.
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    };
  });
}

function base64(bytes) {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)));
}

// A new pair: the public half to send, and how to keep the private one.
export async function newKey() {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
  const publicKey = base64(await crypto.subtle.exportKey("raw", pair.publicKey));
  return { publicKey, keep: () => store("readwrite", (keys) => keys.put(pair.privateKey, KEY)) };
}

// How long an answer may take; some operations wait for half a minute.
const PATIENCE = 60_000;

// How far the desk's time is from this machine's clock, as its answers tell: nobody is kept from deciding by a clock that is off.
let ahead = 0;
const SLACK = 5_000;

// Learns from an answer. True if the desk's time is another one than what was signed, also where another answer has just told so.
function learn(answer, signed) {
  const now = Number(answer.headers.get("deskmate-now"));
  if (!now) return false;
  const off = now - Date.now();
  if (Math.abs(off - ahead) >= SLACK) [ahead, last] = [off, 0];
  return Math.abs(now - signed) >= SLACK;
}

// The desk's time, as far as it is known.
export const deskNow = () => Date.now() + ahead;

// The desk's time, asked for.
export async function deskTime() {
  await fetch("/healthz").then((answer) => learn(answer), () => false);
  return deskNow();
}

// Times of one browser never repeat, so that two equal calls in one millisecond are two.
let last = 0;

// When the call was signed that an answer is to: the record keeps that with what the call wrote.
const moments = new WeakMap();
export const signedAt = (answer) => moments.get(answer);

async function send(path, body, key, isAgain = false) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const at = String((last = Math.max(deskNow(), last + 1)));
  const text = new TextEncoder().encode(`POST\n${path}\n${hex}\n${at}`);
  const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, text);
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "deskmate-signature": base64(signature), "deskmate-signed-at": at },
    body,
    signal: AbortSignal.timeout(PATIENCE),
  });
  // Nothing was done: it is signed once more, with the desk's time.
  if (learn(answer, at) && answer.status === 401 && !isAgain) return send(path, body, key, true);
  const said = await answer.json();
  moments.set(said, at);
  return said;
}

export async function call(operation, input) {
  const key = await store("readonly", (keys) => keys.get(KEY));
  if (!key) return { error: { code: "unauthenticated", message: "this browser's key is gone", hint: "sign in again" } };
  const [path, body] = [`/api/${operation}`, JSON.stringify(input)];
  try {
    return await send(path, body, key);
  } catch {
    return { error: { code: "unavailable", message: "the desk does not answer; nothing is known to have been done" } };
  }
}

// A moment, with its day unless that is today.
function moment(time) {
  const at = new Date(time);
  const isToday = at.toDateString() === new Date().toDateString();
  return at.toLocaleString(undefined, isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}

// Errors are written for the middle of a line and with times for programs; here people read them.
export function sentence({ code, field, message, hint }) {
  const about = code === "invalid" && field ? `${field.replaceAll("_", " ")}: ` : "";
  const said = about + (hint ? `${message}: ${hint}` : message);
  const text = said.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, moment);
  return text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");
}
