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
  const button = form.querySelector("button");
  alert.textContent = "";
  button.disabled = true;
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
    button.disabled = false;
  }
}

function written(form) {
  const input = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
  const code = new URLSearchParams(location.search).get("code");
  if (code) input.code = code;
  if ("repeated" in input && input.repeated !== input.passphrase) throw new Error("The two passphrases differ.");
  delete input.repeated;
  return input;
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
  if (!button) continue;
  button.hidden = !passkey.isSupported();
  button.addEventListener("click", () => open(form, async (key) => ({ passkey: await passkey.answer("sign-in", key) })));
}
