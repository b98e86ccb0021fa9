// What the forms of agents and of trust answer: a token that is shown once and nowhere else, and whether the record gives
// the same score again.

const at = (id) => document.getElementById(id);

function showToken({ agent, token, expires_at: until }) {
  at("token-agent").textContent = agent;
  at("token-text").textContent = token;
  at("token-command").textContent = `DESKMATE_TOKEN=${token} deskmate connect claude-code`;
  at("token-until").textContent = new Date(until).toLocaleDateString(undefined, { dateStyle: "long" });
  at("token").showModal();
}

// Nothing of a token stays on the page once its dialog is closed.
function forgetToken() {
  for (const part of ["token-agent", "token-text", "token-command", "token-until"]) at(part).textContent = "";
}

function tellReplay({ agrees, compared, events, rows }) {
  const box = at("replay");
  const wrong = rows.filter((row) => !row.agrees).map((row) => `${row.verified ? "with its token" : "by its name alone"}: stored ${row.stored ?? "nothing"}, the record gives ${row.recomputed ?? "nothing"}`);
  const counted = `${compared} ${compared === 1 ? "score was" : "scores were"} compared, ${events} events were read.`;
  box.className = agrees ? "good" : "alarm";
  box.textContent = agrees ? `The record gives the same. ${counted}` : `The record gives something else, ${wrong.join("; ")}. ${counted}`;
}

document.addEventListener("done", (event) => {
  if ("token" in event.target.dataset) {
    showToken(event.detail.answer);
    event.target.reset();
  }
  if ("replay" in event.target.dataset) tellReplay(event.detail.answer);
});
// A key pressed by chance must not lose what cannot be shown again.
document.addEventListener("cancel", (event) => event.target.id === "token" && event.preventDefault(), true);
document.addEventListener("close", (event) => event.target.id === "token" && forgetToken(), true);
