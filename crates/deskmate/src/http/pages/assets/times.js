// Times in the reader's own zone: short where it is near, whole in the title.
export function localise(root) {
  const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
  const far = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
  const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
  const now = new Date();
  const today = now.toDateString();
  for (const time of root.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.textContent = moment.toDateString() === today ? moment.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" }) : (moment.getFullYear() === now.getFullYear() ? day : far).format(moment);
    time.title = whole.format(moment);
  }
}
