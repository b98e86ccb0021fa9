// The number on the button: how much waits. Nothing if not paired, and `!` if the desk cannot be asked.

import { api, call, pairing } from "./desk.js";

const MOST = 99;
const GREEN = "#1f5f4c";
const RED = "#9c2b1f";

async function show(text, color, title) {
  await api.action.setBadgeBackgroundColor({ color });
  await api.action.setBadgeText({ text });
  await api.action.setTitle({ title });
}

export async function refreshBadge() {
  if (!(await pairing())) return show("", GREEN, "Deskmate: not paired yet");
  try {
    const { requests, next_cursor: more } = await call("desk_request_list", { limit: MOST });
    const count = requests.length;
    const text = more ? `${MOST}+` : count ? String(count) : "";
    await show(text, GREEN, count ? `Deskmate: ${more ? "more than " : ""}${count} waiting for you` : "Deskmate: nothing waits for you");
  } catch (fault) {
    await show("!", RED, `Deskmate: ${fault.message}`);
  }
}
