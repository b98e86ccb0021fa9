// Claiming, joining and signing in: makes the browser's key and opens a session with it.

import * as passkey from "./passkey.js";
import { newKey, sentence } from "./sign.js";

// Where the person wanted to go: a page of this desk, nothing else, however it is spelled.
function next() {
  const wanted = new URLSearchParams(location.search).get("next") ?? "/";
  const there = URL.canParse(wanted, location.origin) ? new URL(wanted, location.origin) : location;
  return there.origin === location.origin && there !== location ? there.href : "/";
}

// Opens a session with what the person showed, and with a new key of this browser.
async function open(form, shown) {
  const alert = form.querySelector("[role=alert]");
  const busy = (now) => form.querySelectorAll("button").forEach((button) => (button.disabled = now));
  alert.textContent = "";
  busy(true);
  try {
    const key = await newKey();
    const input = { ...(await shown(key.publicKey)), public_key: key.publicKey };
    const response = await fetch(form.dataset.session, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(input),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(sentence(answer.error));
    // Only now: a sign-in that failed must not take the key of the session that is open.
    await key.keep();
    location.replace(next());
  } catch (error) {
    alert.textContent = error.name === "NotAllowedError" ? "No passkey answered." : error.message;
    busy(false);
  }
}

const code = new URLSearchParams(location.search).get("code");

function written(form) {
  const input = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
  if (code) input.code = code;
  if ("repeated" in input && input.repeated !== input.passphrase) throw new Error("The two passphrases differ.");
  delete input.repeated;
  return input;
}

// What a passkey shows: that somebody is who they were, or, of somebody new who comes with a link, who they are from now on.
async function byPasskey(form, key) {
  const name = form.elements.name?.value;
  if (form.dataset.session === "/session/sign-in") return { passkey: await passkey.answer("sign-in", key) };
  const made = await passkey.make("first", `${code}\n${key}`, crypto.getRandomValues(new Uint8Array(16)), name || "Deskmate");
  return { code, ...(name ? { name } : {}), passkey: made };
}

// Cookies ignore ports, so a page that an agent serves on this machine would get one of a bare address. Where the browser
// knows the desk's own name, everything happens under that; passkeys need a name too.
function moveToOwnName() {
  if (!["127.0.0.1", "localhost"].includes(location.hostname) || location.protocol !== "http:") return;
  const own = new URL(location.href);
  own.hostname = "deskmate.localhost";
  const probe = new Image();
  probe.onload = () => location.replace(own);
  probe.src = new URL(document.querySelector("link[rel=icon]").getAttribute("href"), own);
}

moveToOwnName();
for (const form of document.querySelectorAll("form[data-session]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    open(form, async () => written(form));
  });
  const button = form.querySelector("[data-passkey]");
  (form.querySelector("[data-passkey-way]") ?? button).hidden = !passkey.isSupported();
  button.addEventListener("click", () => {
    // Of the fields only a name of somebody new is needed.
    if (form.elements.name?.required && !form.elements.name.reportValidity()) return;
    open(form, (key) => byPasskey(form, key));
  });
}
