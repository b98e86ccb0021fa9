// The record's page: moments are chosen in the reader's own zone and asked for in UTC.

const shown = new WeakMap();

function local(text) {
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? "" : new Date(moment - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}

function moments(act) {
  for (const field of document.querySelectorAll("input[data-moment]")) act(field, field.form.elements[field.dataset.moment]);
}

// What somebody chose and has not asked for yet stays when the page is read again.
function showMoments() {
  moments((field, sent) => {
    if (shown.get(field) === sent.value) return;
    shown.set(field, sent.value);
    field.value = local(sent.value);
  });
}

// The moment that is sent is put in before anything else hears of the form.
function takeMoments() {
  moments((field, sent) => {
    if (field.value !== local(sent.value)) sent.value = field.value ? new Date(field.value).toISOString() : "";
  });
}

// What was asked for is shown already: the page that answers does not write over what somebody chose since.
function sendMoments() {
  takeMoments();
  moments((field, sent) => shown.set(field, sent.value));
}

document.addEventListener("submit", sendMoments, true);
document.addEventListener("change", takeMoments, true);
document.addEventListener("shown", showMoments);
showMoments();
