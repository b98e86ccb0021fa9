// Claiming, joining and signing in: makes the browser's key and opens a session with it.

import { newKey, sentence } from "./sign.js";

// Where the person wanted to go: a page of this desk, nothing else.
function next() {
  const wanted = new URLSearchParams(location.search).get("next") ?? "/";
  return /^\/(?![/\\])/.test(wanted) ? wanted : "/";
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
    const key = await newKey();
    input.public_key = key.publicKey;
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
    alert.textContent = error.message;
    button.disabled = false;
  }
}

for (const form of document.querySelectorAll("form[data-session]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(form);
  });
}
