// Where somebody reads. What comes up is read from its head. In a log that grows the page stays at its end, unless somebody has scrolled
// up to read. Where they are is looked at right before the page is merged, so that nobody is taken away from what they turned to a
// moment ago.

const NEAR = 24;
const left = new WeakSet();
const logs = () => document.querySelectorAll("[data-follow]");

function look() {
  for (const log of logs()) {
    if (log.scrollHeight - log.scrollTop - log.clientHeight < NEAR) left.delete(log);
    else left.add(log);
  }
}

function follow() {
  for (const log of logs()) if (!left.has(log)) log.scrollTop = log.scrollHeight;
}

// What is open beside a list, and from where on the lists are shown: as long as both stay, what is read stays where it is.
function reading() {
  const query = new URLSearchParams(location.search);
  const values = (...names) => names.map((name) => query.get(name)).join();
  return { open: values("request", "thread", "write", "earlier"), from: values("cursor", "made_cursor") };
}

// A narrow window hides the list while something of it is open, and shows it again where it was left.
const isListHidden = () => document.querySelector(".split > .list")?.offsetParent === null;
let read = reading();
let list = { hidden: isListHidden(), top: 0 };

function leave() {
  list = isListHidden() ? { ...list, hidden: true } : { hidden: false, top: scrollY };
}

function head() {
  const before = read;
  read = reading();
  if (read.open !== before.open) {
    document.getElementById("detail")?.scrollTo(0, 0);
    if (isListHidden()) scrollTo(0, 0);
    else if (list.hidden) scrollTo(0, list.top);
  }
  if (read.from !== before.from) scrollTo(0, 0);
}

document.addEventListener("showing", look);
document.addEventListener("showing", leave);
document.addEventListener("shown", follow);
document.addEventListener("shown", head);
follow();
