// The settings: one field for each, whose ranges are the server's.

import { t, complaint, seconds } from "/words.js";
import { element, post, setText } from "/dom.js";

/** Sliders end here, where a person still sees something happen; the boxes take the whole range. */
const SLIDER_MS = 20000;
const fields = new Map();
let inForce = {};

export function makeSettings(form, ranges) {
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const name of ["work_ms", "lease_ms", "wait_ms", "min_lease_ms", "pause_ms", "slots", "candidates"]) {
    form.append(numberField(name, ranges[name]));
  }
  form.append(checkField("auto_extend"), choiceField("on_lost", ["cancel", "notify"]), checkField("repeat"));
  sayAgain();
}

/** What a person has just set stays as it is until the server has had time to say so. */
const SETTLES_MS = 700;

async function send(name, value) {
  const field = fields.get(name);
  field.settled = performance.now() + SETTLES_MS;
  // Only numbers have a place for what is wrong with them.
  const answer = await post("/api/settings", { [name]: value }, (said) => field.refuse !== undefined && said.field !== undefined);
  if (answer.ok) showSettings(answer);
  field.refuse?.(answer.field === undefined || answer.ok ? null : { ...answer, sent: value });
}

/** What would have been taken, in the units of the page. */
function said(name, answer) {
  const { sent, field, range } = answer;
  const [least, most] = range ?? [];
  if (typeof most !== "number") return complaint(answer);
  const ends = [amount(field, least), amount(field, most)];
  return field === name ? t("set.range", ...ends) : t("set.other", amount(name, sent), t(`set.${field}`).split(":")[0], ...ends);
}

function amount(name, value) {
  return name.endsWith("_ms") ? seconds(value) : String(value);
}

function numberField(name, [least, most]) {
  const time = name.endsWith("_ms");
  const scale = time ? 1000 : 1;
  const label = element("label", { for: name, id: `${name}-label` });
  const range = element("input", {
    type: "range", id: name, name, min: time ? Math.floor(least / 100) / 10 : least, max: time ? SLIDER_MS / scale : most, step: time ? 0.1 : 1, "aria-describedby": `${name}-refusal`,
  });
  const box = element("input", {
    type: "number", id: `${name}-number`, min: least / scale, max: most / scale, step: time ? "any" : 1, inputmode: "decimal", "aria-labelledby": `${name}-label`, "aria-describedby": `${name}-refusal`,
  });
  const unit = element("span", { id: `${name}-unit`, "aria-hidden": "true" });
  const refusal = element("p", { class: "refusal", id: `${name}-refusal`, role: "alert" });
  range.addEventListener("input", () => { box.value = range.value; });
  const change = (input) => {
    // An empty box is no number; for the server it would be a 0.
    if (input.value === "") return fields.get(name).refuse({ field: name, range: [least, most] });
    const value = Math.round(Number(input.value) * scale);
    // The slider's end means the least that is allowed, which may lie between two of its steps.
    send(name, input === range ? Math.max(value, least) : value);
  };
  const put = (value) => { range.value = value / scale; box.value = value / scale; };
  range.addEventListener("change", () => change(range));
  box.addEventListener("change", () => change(box));
  fields.set(name, {
    show(value) {
      const touched = [range, box].includes(document.activeElement) || this.refused?.field === name;
      if (!touched || this.last !== value) put(value);
      this.last = value;
      range.setAttribute("aria-valuetext", amount(name, value));
    },
    /** Says why the server did not take what was sent; `null` when it did. */
    refuse(answer) {
      this.refused = answer;
      this.sayRefusal();
      box.setAttribute("aria-invalid", String(answer?.field === name));
      // Another setting is in the way: what is in force is shown again, and only what was sent of this one is wrong.
      if (answer && answer.field !== name) put(inForce[name]);
    },
    sayRefusal() { setText(refusal, this.refused ? said(name, this.refused) : ""); },
    say() {
      this.sayRefusal();
      setText(label, t(`set.${name}`));
      setText(unit, time ? t("seconds") : "");
      if (this.last !== undefined) range.setAttribute("aria-valuetext", amount(name, this.last));
      box.title = t("set.range", `${least / scale}`, `${most / scale} ${time ? t("seconds") : ""}`.trim());
    },
  });
  return element("div", { class: "field", "data-field": name }, [label, range, element("div", { class: "amount" }, [box, unit]), refusal]);
}

function checkField(name) {
  const box = element("input", { type: "checkbox", id: name, name });
  const label = element("label", { for: name });
  box.addEventListener("change", () => send(name, box.checked));
  fields.set(name, { show: (value) => { box.checked = value; }, say: () => setText(label, t(`set.${name}`)) });
  return element("div", { class: "check", "data-field": name }, [box, label]);
}

function choiceField(name, choices) {
  const legend = element("legend", {});
  const parts = choices.map((choice) => {
    const box = element("input", { type: "radio", name, id: `${name}-${choice}`, value: choice });
    const label = element("label", { for: `${name}-${choice}` });
    box.addEventListener("change", () => send(name, choice));
    return { choice, box, label };
  });
  fields.set(name, {
    show: (value) => { for (const { choice, box } of parts) box.checked = choice === value; },
    say: () => { setText(legend, t(`set.${name}`)); for (const { choice, label } of parts) setText(label, t(`set.${choice}`)); },
  });
  return element("fieldset", { id: name, "data-field": name }, [legend, ...parts.map(({ box, label }) => element("div", { class: "check" }, [box, label]))]);
}

/** Shows the settings in force. */
export function showSettings(settings) {
  const now = performance.now();
  const names = [...fields.keys()];
  // What was refused was refused with the settings as they were, which another page may have changed since.
  if (names.some((name) => settings[name] !== inForce[name])) names.forEach((name) => fields.get(name).refuse?.(null));
  inForce = settings;
  for (const [name, field] of fields) {
    if (!(field.settled > now)) field.show(settings[name]);
  }
}

/** Says the labels in the language in use. */
export function sayAgain() {
  for (const field of fields.values()) field.say();
}
