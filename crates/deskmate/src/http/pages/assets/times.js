// Times in the reader's own zone: short where it is near, whole in the title. Making a format is slow, so each is made once.

const format = (options) => new Intl.DateTimeFormat(undefined, options);
const hour = format({ hour: "2-digit", minute: "2-digit" });
const day = format({ month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const far = format({ year: "numeric", month: "short", day: "numeric" });
const whole = format({ dateStyle: "full", timeStyle: "long" });

export function localise(root) {
  const now = new Date();
  const today = now.toDateString();
  for (const time of root.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const near = moment.getFullYear() === now.getFullYear() ? day : far;
    time.textContent = (moment.toDateString() === today ? hour : near).format(moment);
    time.title = whole.format(moment);
  }
  // A way of being told that is not there yet is in the reader's zone.
  for (const field of root.querySelectorAll("input[data-zone]")) field.setAttribute("value", format({}).resolvedOptions().timeZone);
  // In a drawing there is no such element: there the text begins with the moment.
  for (const mark of root.querySelectorAll("svg [data-time]")) mark.textContent = mark.textContent.replace(/^[\d-]+ [\d:]+ UTC/, () => day.format(new Date(mark.dataset.time)));
}
