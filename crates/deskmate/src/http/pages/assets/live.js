// Keeps a page up to date. One tab of the browser follows the desk's topics and tells the others; who holds the lock does,
// and when it closes, another one goes on where it ended. A page reads itself again when one of its topics is told.

const GAP = 250;
const LOOK_AGAIN = 700;
// The desk gives a sign of life every five seconds. When it is silent for so long, the connection is lost, whatever the browser
// takes it for.
export const SILENT = 15_000;
const channel = new BroadcastChannel("deskmate-live");
// What waits for people, as this page read it or the tab that leads told it last.
let waits = { count: document.body.dataset.count, newest: document.body.dataset.newest };
const page = { size: Number(document.body.dataset.size), wanted: false, running: false, leads: false, refresh: null, state: null };

function topics() {
  return document.body.dataset.topics.split(" ");
}

// Reads the page again, never twice at once and at most four times a second. What nobody looks at waits until somebody
// does, but for the tab that leads: it knows the count.
async function refresh() {
  page.wanted = true;
  if (page.running || (document.hidden && !page.leads)) return;
  page.running = true;
  try {
    while (page.wanted) {
      page.wanted = false;
      const begun = Date.now();
      await page.refresh();
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, GAP - (Date.now() - begun))));
    }
  } finally {
    page.running = false;
  }
}

function heard({ changed, size, up, waiting, asks }) {
  if (asks) return page.leads && tell({ changed: [], size: page.size });
  if (up !== undefined) page.state(up);
  if (waiting) {
    waits = waiting;
    showCount(waits.count);
  }
  if (size === undefined) return;
  const missed = size > page.size && changed.length === 0;
  page.size = Math.max(page.size, size);
  const own = topics();
  if (missed || changed.includes("*") || changed.some((topic) => own.includes(topic))) refresh();
}

function tell(news) {
  channel.postMessage(news);
  if (!news.asks) heard(news);
}

let source;
let silence;

function heardOf() {
  clearTimeout(silence);
  silence = setTimeout(listenAgain, SILENT);
}

// Gives a connection up over which nothing comes any more, and makes another one.
function listenAgain() {
  if (!page.leads) return;
  source.close();
  tell({ up: false });
  listen();
}

function listen() {
  page.leads = true;
  const own = new EventSource(`/live?from=${page.size}`);
  source = own;
  heardOf();
  own.onopen = () => {
    heardOf();
    tell({ up: true });
  };
  own.addEventListener("alive", heardOf);
  own.onmessage = ({ data, lastEventId }) => {
    heardOf();
    tell({ changed: JSON.parse(data), size: Number(lastEventId) });
  };
  own.onerror = async () => {
    tell({ up: false });
    if (own.readyState !== EventSource.CLOSED) return;
    // The desk refused: who is signed out is sent to sign in, and otherwise it is tried again.
    const answer = await fetch("/api/desk_whoami", { signal: AbortSignal.timeout(SILENT) }).catch(() => null);
    if (answer?.status === 401) location.reload();
    else setTimeout(() => own === source && listen(), 2000);
  };
}

// The number of requests that wait: in the title, on the tab's icon, and on that of the installed app.
function showCount(count) {
  const title = document.title.replace(/^\(\d+\+?\) /, "");
  document.title = count && count !== "0" ? `(${count}) ${title}` : title;
  const waiting = parseInt(count, 10) || 0;
  const icon = document.querySelector("link[rel=icon]");
  const shown = icon.href.replace(/[^/]*$/, waiting ? `desk-${waiting}.svg` : "desk.svg");
  if (icon.href !== shown) icon.href = shown;
  if (waiting) navigator.setAppBadge?.(waiting).catch(() => {});
  else navigator.clearAppBadge?.().catch(() => {});
}

// Shows what waits, also in the other tabs, and answers whether something new does. The count ends at a hundred, and one that is
// decided makes up for one that arrives: so the newest tells.
export function tellWaiting() {
  const { count, newest } = document.body.dataset;
  const isNew = newest > waits.newest || parseInt(count, 10) > parseInt(waits.count, 10);
  waits = { count, newest };
  showCount(count);
  if (page.leads) channel.postMessage({ waiting: waits });
  return isNew;
}

// Reads the page again in a while, because it could not be read now.
export function again() {
  setTimeout(refresh, 2000);
}

// How far work is that goes on is no news for anybody else, so a page that shows it is read again until it ends.
let later;
function lookAgain() {
  clearTimeout(later);
  if (document.querySelector("[data-again]")) later = setTimeout(refresh, LOOK_AGAIN);
}

export function isLeading() {
  return page.leads;
}

export function follow(refreshPage, state) {
  page.refresh = refreshPage;
  page.state = state;
  channel.onmessage = ({ data }) => heard(data);
  document.addEventListener("visibilitychange", () => !document.hidden && page.wanted && refresh());
  navigator.locks.request("deskmate-live", () => new Promise(listen));
  addEventListener("offline", listenAgain);
  addEventListener("online", listenAgain);
  // Something may have happened after this page was made and before it listened.
  tell({ asks: true });
  document.addEventListener("shown", lookAgain);
  lookAgain();
}

export { refresh };
