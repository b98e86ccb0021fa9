// Deciding by a link: looking at the page decided nothing. The button does, once.

import { sentence } from "./sign.js";
import { localise } from "./times.js";

const form = document.querySelector("form[data-decide]");

async function decide(answer) {
  const alert = form.querySelector("[role=alert]");
  const buttons = form.querySelectorAll("button");
  alert.textContent = "";
  for (const button of buttons) button.disabled = true;
  try {
    const reason = form.elements.reason.value.trim();
    const response = await fetch("/decide", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ link: new URLSearchParams(location.search).get("link"), answer, ...(reason && { reason }) }),
    });
    const said = await response.json();
    if (said.error) throw new Error(sentence(said.error));
    document.getElementById("outcome").textContent = said.message;
    document.getElementById("outcome").dataset.state = said.state;
    form.remove();
  } catch (error) {
    alert.textContent = error.message;
    for (const button of buttons) button.disabled = false;
  }
}

localise(document);
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  decide(event.submitter.value);
});
