// Makes the browser's key and opens a session with it. The private half cannot be exported and is kept per origin,
// port included, so that a page of another port with our cookie still cannot decide anything.

const KEY = "signing-key";

function store(mode, act) {
  return new Promise((resolve, reject) => {
    const open = indexedDB.open("deskmate", 1);
    open.onupgradeneeded = () => open.result.createObjectStore("keys");
    open.onerror = () => reject(open.error);
    open.onsuccess = () => {
      const request = act(open.result.transaction("keys", mode).objectStore("keys"));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    };
  });
}

function base64(bytes) {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)));
}

function newKey() {
  return crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
}

// Calls an operation as the person who is signed in here, signed over what is sent.
export async function call(operation, input) {
  const path = `/api/${operation}`;
  const body = JSON.stringify(input);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(body));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const at = String(Date.now());
  const key = await store("readonly", (keys) => keys.get(KEY));
  if (!key) throw new Error("This browser's key is gone. Sign in again.");
  const text = new TextEncoder().encode(`POST\n${path}\n${hex}\n${at}`);
  const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, text);
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "deskmate-signature": base64(signature), "deskmate-signed-at": at },
    body,
  });
  return response.json();
}

// Errors are written for the middle of a line and with times for programs; here people read them.
export function sentence({ message, hint }) {
  const said = hint ? `${message}: ${hint}` : message;
  const text = said.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => new Date(time).toLocaleTimeString());
  return text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");
}

// Where the person wanted to go: a page of this desk, nothing else.
function next() {
  const wanted = new URLSearchParams(location.search).get("next");
  return wanted && /^\/requests\/[0-9a-f-]+$/.test(wanted) ? wanted : "/";
}

async function submit(form) {
  const alert = form.querySelector("[role=alert]");
  const button = form.querySelector("button");
  const input = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
  const code = new URLSearchParams(location.search).get("code");
  if (code) input.code = code;
  alert.textContent = "";
  if ("repeated" in input && input.repeated !== input.passphrase) {
    alert.textContent = "The two passphrases differ.";
    return;
  }
  delete input.repeated;
  button.disabled = true;
  try {
    const pair = await newKey();
    input.public_key = base64(await crypto.subtle.exportKey("raw", pair.publicKey));
    const response = await fetch(form.dataset.open, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(input),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(sentence(answer.error));
    // Only now: a sign-in that failed must not take the key of the session that is open.
    await store("readwrite", (keys) => keys.put(pair.privateKey, KEY));
    location.replace(next());
  } catch (error) {
    alert.textContent = error.message;
    button.disabled = false;
  }
}

for (const form of document.querySelectorAll("form[data-open]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(form);
  });
}

const who = document.querySelector("[data-who]");
if (who) {
  const response = await fetch("/api/desk_whoami");
  const you = await response.json();
  const isPerson = response.ok && you.kind === "person";
  who.textContent = isPerson ? `You are signed in as ${you.name}, ${you.role} of this desk.` : "You are not signed in.";
  document.querySelector("[data-sign-in]").hidden = isPerson;
  const out = document.querySelector("[data-sign-out]");
  out.hidden = !isPerson;
  out.addEventListener("click", async () => {
    await call("desk_sign_out", {});
    location.replace("/sign-in");
  });
}
