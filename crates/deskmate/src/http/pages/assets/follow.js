// A log that grows: the page stays at its end, unless somebody has scrolled up to read. Where they are is looked at right before the
// page is merged, so that nobody is taken away from what they turned to a moment ago.

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

document.addEventListener("showing", look);
document.addEventListener("shown", follow);
follow();
