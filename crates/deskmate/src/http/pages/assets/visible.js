// Marks that turn or hide text are shown as what they are.

const HIDDEN = /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

export function visible(text) {
  return text.replace(HIDDEN, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`);
}
