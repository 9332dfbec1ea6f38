// Small things that every part of the page needs: elements, texts, requests.

import { t, complaint, particulars } from "/words.js";

export function element(name, attributes = {}, content = []) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (typeof content === "string") made.textContent = content;
  else made.append(...content);
  return made;
}

/** Sets a text, and leaves the element alone when it has it already. */
export function setText(target, text) {
  const element = typeof target === "string" ? document.getElementById(target) : target;
  if (element.textContent !== text) element.textContent = text;
}

/** A sentence of the page's; and what the server says of it, which is English in any language. */
export function quote(place, sentence, words) {
  if (!words) return setText(place, sentence);
  const quoted = words.split("\n")[0];
  if (place.textContent !== `${sentence} ${quoted}`) place.replaceChildren(`${sentence} `, element("q", { lang: "en" }, quoted));
}

/** Seconds of the bench, for a table. */
export function number(ms) {
  return (ms / 1000).toFixed(2);
}

/** What cannot be done, said anew when the language changes. */
let problem = () => [""];

export function sayProblem() { quote(document.getElementById("problem"), ...problem()); }

function complain(say) {
  problem = say;
  sayProblem();
}

/** Asks the server to do something. What it refuses is handed back, and is shown unless whoever asks shows it: `has`. */
export async function post(path, body, has = () => false) {
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const said = await answer.json();
    complain(() => (answer.ok || has(said) ? [""] : [complaint(said), particulars(said)]));
    return { ok: answer.ok, ...said };
  } catch {
    complain(() => [t("disconnected")]);
    return { ok: false };
  }
}
