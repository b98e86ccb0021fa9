// Settings: pairing with a desk, and the folders that are open to agents. Here they can be narrowed; what opens more is
// done on the desk's own page, where all of it is seen.

import { refreshBadge } from "./badge.js";
import { USUAL_ADDRESS, call, mayReach, origin, pair, pairing, unpair } from "./desk.js";
import { act } from "./presence.js";
import { badge, button, deskLink, empty, fill, make, problem, run, said, tell } from "./view.js";

const at = (id) => document.getElementById(id);

function pairForm() {
  const address = make("input", { id: "address", type: "text", inputmode: "url", value: USUAL_ADDRESS, required: true, spellcheck: "false", autocomplete: "off" });
  const code = make("input", { id: "code", type: "text", required: true, spellcheck: "false", autocomplete: "off", "aria-describedby": "code-hint" });
  const wrong = make("div", {});
  const submit = (event) => {
    event.preventDefault();
    run(event.submitter, wrong, async () => {
      const there = origin(address.value);
      // The browser asks the person only right after the click, so this comes before anything that takes time.
      if (!(await mayReach(there))) throw new Error("Without your leave to talk to this address nothing can be done.");
      await pair(there, code.value.trim());
      tell("Paired.");
      await show();
    });
  };
  return make(
    "form",
    { submit },
    make("h2", {}, "Pair with your desk"),
    make("p", {}, "Your desk makes a code that is good once, for ten minutes. This browser makes a key of its own, and from then on signs with it what you decide."),
    make("label", { for: "address" }, "The desk's address"),
    address,
    make("label", { for: "code" }, "Pairing code"),
    code,
    make("p", { class: "hint", id: "code-hint" }, "On the desk, under People: Your sessions and tokens, then Make a code."),
    make("div", { class: "acts" }, make("button", {}, "Pair")),
    wrong,
  );
}

function paired({ address, name, role }) {
  const wrong = make("div", {});
  const end = (event) =>
    run(event.currentTarget, wrong, async () => {
      const told = await unpair();
      tell(told ? "Unpaired: the session has ended." : "Forgotten here. The desk did not answer: end the session there, under People, when it is back.");
      await show();
    });
  return [
    make("h2", {}, "Paired"),
    make("p", {}, "You are ", make("strong", {}, said(name)), ` (${role}) at `, make("a", { href: address, target: "_blank", rel: "noopener" }, address), "."),
    make("p", { class: "hint" }, "This browser reads with its session alone. Whatever changes something is signed with its key, and what decides or configures asks for your passphrase."),
    make("div", { class: "acts" }, button("Unpair", end, "alarm")),
    wrong,
  ];
}

// Puts other roots in force. It says what it was made from, so that nobody else's change is undone by it.
async function apply(whole, roots) {
  const document = JSON.stringify({ workspace: { ...whole.body.workspace, roots } });
  await act("desk_policy_apply", { document, expected_rulebook: whole.digest });
}

function rootRow(root, whole, isOwner) {
  const { name, path, access, deny = [] } = root;
  const wrong = make("div", {});
  const roots = whole?.body.workspace?.roots ?? [];
  const narrow = (text, others) => (event) =>
    run(event.currentTarget, wrong, async () => {
      await apply(whole, others);
      tell(text);
      await showRoots();
    });
  const acts = [
    access === "write" && button("Make it read-only", narrow(`${name} is for looking only now.`, roots.map((one) => (one.name === name ? { ...one, access: "read" } : one))), "quiet"),
    button("Close it", narrow(`${name} is closed.`, roots.filter((one) => one.name !== name)), "alarm"),
  ];
  return make(
    "li",
    {},
    make("strong", {}, said(name)),
    " ",
    badge(access, access === "write" ? "plans may change it" : "for looking"),
    make("p", { class: "meta" }, path ? make("code", {}, said(path)) : "", deny.length ? [" without ", said(deny.join(", "))] : ""),
    isOwner && make("div", { class: "acts", role: "group", "aria-label": name }, acts),
    wrong,
  );
}

// What a person may do here about the folders, and why no more.
function mayDo(role) {
  if (role === "owner") return "As an owner you can take away here: make a folder read-only, or close it. What opens more to agents, or leaves less out, you do where you see all of it: on ";
  return `You are ${/^[aeiou]/.test(role) ? "an" : "a"} ${role}, so you see here what agents can reach, and change nothing: which folders are open holds for everybody's agents, and only an owner decides it, on `;
}

function showRoots() {
  return fill(at("roots"), async () => {
    const you = await call("desk_whoami", {});
    const { roots } = await call("workspace_list_roots", {});
    const isOwner = you.role === "owner";
    const whole = isOwner ? await call("desk_policy_get", {}) : null;
    return [
      make("h2", {}, "Folders that are open to agents"),
      roots.length ? make("ol", { class: "rows" }, roots.map((root) => rootRow(root, whole, isOwner))) : empty("None is open", "Agents look around only in folders that an owner named."),
      make("p", { class: "hint", id: "may" }, mayDo(you.role), await deskLink("/workspace", "the desk's page Workspace"), "."),
    ];
  });
}

async function show() {
  const now = await pairing();
  at("pairing").replaceChildren(...(now ? paired(now) : [pairForm()]));
  at("roots").hidden = !now;
  await refreshBadge();
  if (now) await showRoots();
}

show().catch((fault) => at("pairing").replaceChildren(problem(fault)));
