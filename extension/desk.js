// The desk that this browser is paired with: its address, the session, and calls that are signed with the browser's key.
// The private half of the key cannot be exported; whoever copies the session's secret can read with it and decide nothing.

export const api = globalThis.browser ?? globalThis.chrome;
export const USUAL_ADDRESS = "http://127.0.0.1:7373";
const LOOPBACK = ["127.0.0.1", "localhost"];
const KEY = "signing-key";

// Errors are written for the middle of a line; here people read them.
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

// Something that the desk refused, or that kept us from asking it.
export class Fault extends Error {
  constructor({ code = "unknown", message = "something went wrong", hint, field, needs_presence: needsPresence = false }) {
    const about = code === "invalid" && field ? `${field.replaceAll("_", " ")}: ${message}` : message;
    const said = (hint ? `${about}: ${hint}` : about).replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => new Date(time).toLocaleTimeString());
    super(sentence(said));
    Object.assign(this, { code, needsPresence, bare: sentence(message) });
  }
}

// Only what is complete is kept: a popup that closes before takes its transaction with it.
function keys(mode, act) {
  return new Promise((resolve, reject) => {
    const open = indexedDB.open("deskmate", 1);
    open.onupgradeneeded = () => open.result.createObjectStore("keys");
    open.onerror = () => reject(open.error);
    open.onsuccess = () => {
      const transaction = open.result.transaction("keys", mode);
      const request = act(transaction.objectStore("keys"));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    };
  });
}

const base64 = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));
const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
const utf8 = (text) => new TextEncoder().encode(text);

// The origin of an address that a person wrote. Beyond this machine nothing is sent without TLS.
export function origin(text) {
  const written = text.trim();
  const address = URL.parse(written.includes("://") ? written : `http://${written}`);
  const plain = address?.protocol === "http:" && LOOPBACK.includes(address.hostname);
  if (!plain && address?.protocol !== "https:") throw new Fault({ message: "this is no address of a desk", hint: `write ${USUAL_ADDRESS}, or https:// and the name of your team's desk` });
  return address.origin;
}

// Asks the browser whether we may talk to an address. Has to be called right from a click.
export function mayReach(address) {
  const { protocol, hostname } = new URL(address);
  return api.permissions.request({ origins: [`${protocol}//${hostname}/*`] });
}

// Who we are on which desk; nothing if not paired.
export async function pairing() {
  return (await api.storage.local.get("pairing")).pairing ?? null;
}

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

// `again` makes the headers anew, for a call that was signed with another time than the desk's: nothing was done then.
async function send(address, operation, body, headers = {}, again = null) {
  let response;
  try {
    response = await fetch(`${address}/api/${operation}`, {
      method: "POST",
      // The session is in a header. Whoever is signed in to the pages is somebody else.
      credentials: "omit",
      redirect: "error",
      cache: "no-store",
      headers: { "content-type": "application/json", ...headers },
      body,
    });
  } catch {
    throw new Fault({ code: "unreachable", message: `the desk at ${address} does not answer`, hint: "start it with `deskmate up`, or look whether the address is right" });
  }
  if (learn(response, headers["deskmate-signed-at"]) && response.status === 401 && again) return send(address, operation, body, await again());
  const answer = await response.json().catch(() => null);
  if (response.ok && answer) return answer;
  throw new Fault(answer?.error ?? { code: "unreachable", message: `what answers at ${address} is not a desk` });
}

// Changes a code for a session with a new key of this browser.
export async function pair(address, code) {
  const made = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
  const publicKey = base64(await crypto.subtle.exportKey("raw", made.publicKey));
  const answer = await send(address, "desk_pair", JSON.stringify({ code, public_key: publicKey }));
  if (!answer.session) throw new Fault({ message: "this code was for a program", hint: "make one for a browser extension, and revoke the token that this one gave" });
  await keys("readwrite", (store) => store.put(made.privateKey, KEY));
  const { session, person, person_name: name, role } = answer;
  await api.storage.local.set({ pairing: { address, session, person, name, role } });
}

async function forget() {
  await api.storage.local.remove("pairing");
  await keys("readwrite", (store) => store.delete(KEY));
}

// Ends the session on the desk and forgets the key. Answers whether the desk knows of it.
export async function unpair() {
  let told = true;
  try {
    await call("desk_sign_out", {});
  } catch (fault) {
    told = fault.code === "unauthenticated";
  }
  await forget();
  return told;
}

// Times of one page never repeat, so that two equal calls in one millisecond are two.
let last = 0;

// Calls an operation as the person who paired this browser.
export async function call(operation, input) {
  const paired = await pairing();
  const key = paired && (await keys("readonly", (store) => store.get(KEY)));
  if (!key) throw new Fault({ code: "unpaired", message: "this browser is not paired with a desk" });
  const body = JSON.stringify(input);
  const digest = hex(await crypto.subtle.digest("SHA-256", utf8(body)));
  const sign = async () => {
    const at = (last = Math.max(Date.now() + ahead, last + 1));
    const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, utf8(`POST\n/api/${operation}\n${digest}\n${at}`));
    return { authorization: `Bearer ${paired.session}`, "deskmate-signature": base64(signature), "deskmate-signed-at": String(at) };
  };
  return send(paired.address, operation, body, await sign(), sign);
}
