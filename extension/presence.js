// Showing that one is there: what decides asks for the passphrase, which is sent to the desk and kept nowhere.

import { Fault, call } from "./desk.js";
import { make } from "./view.js";

// Asks until the passphrase is right or the person gives up.
function showPresence(why) {
  return new Promise((resolve) => {
    const input = make("input", { id: "passphrase", type: "password", autocomplete: "current-password", required: true });
    const alert = make("p", { role: "alert" });
    const go = make("button", {}, "Go on");
    const form = make(
      "form",
      {},
      make("h2", { id: "presence-title" }, "Is it you?"),
      make("p", {}, why),
      make("label", { for: "passphrase" }, "Passphrase or PIN"),
      input,
      alert,
      make("div", { class: "acts" }, go, make("button", { type: "button", class: "quiet", click: () => dialog.close() }, "Cancel")),
    );
    const dialog = make("dialog", { "aria-labelledby": "presence-title" }, form);
    let shown = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const passphrase = input.value;
      input.value = "";
      go.disabled = true;
      try {
        shown = (await call("desk_show_presence", { passphrase })).shown;
        alert.textContent = shown ? "" : "The passphrase is wrong.";
      } catch (fault) {
        alert.textContent = fault.message;
      }
      go.disabled = false;
      if (shown) dialog.close();
      else input.focus();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(shown);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// A call that shows presence first where the desk asks for it.
export async function act(operation, input) {
  try {
    return await call(operation, input);
  } catch (fault) {
    if (!fault.needsPresence) throw fault;
    if (!(await showPresence(fault.bare))) throw new Fault({ message: "nothing was done without your passphrase" });
    return call(operation, input);
  }
}
