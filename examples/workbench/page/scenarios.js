// The stories: a button and a sentence for each, and how far the present one has come.

import { t, reason } from "/words.js";
import { element, post, quote, setText } from "/dom.js";

let scenarios = [];

export function makeScenarios(list, programme) {
  scenarios = programme;
  list.replaceChildren(...programme.map(({ name, unavailable }) => {
    const button = element("button", { type: "button", id: `scenario-${name}`, "data-scenario": name, "aria-describedby": `scenario-${name}-text` });
    button.disabled = Boolean(unavailable);
    button.addEventListener("click", () => post("/api/scenario", { name }));
    return element("li", {}, [button, element("p", { id: `scenario-${name}-text` })]);
  }));
  document.getElementById("scenario-end").addEventListener("click", () => post("/api/scenario", { name: null }));
}

export function sayScenarios() {
  for (const { name, unavailable } of scenarios) {
    setText(`scenario-${name}`, t(`${name}.title`));
    const why = unavailable ? ` ${t("scenario.unavailable")}` : "";
    quote(document.getElementById(`scenario-${name}-text`), t(`${name}.text`) + why, unavailable);
  }
}

/** Who has just ended the story stands on a button that goes: the story's own is the place to go on from. */
function keepFocus(status) {
  if (status.contains(document.activeElement)) document.getElementById(`scenario-${status.dataset.scenario}`)?.focus();
}

export function showScenario(scenario) {
  const status = document.getElementById("scenario-status");
  if (!scenario) keepFocus(status);
  status.hidden = !scenario;
  for (const button of document.querySelectorAll("[data-scenario]")) {
    button.setAttribute("aria-pressed", String(button.dataset.scenario === scenario?.name));
  }
  if (!scenario) return;
  const { name, step, steps, over, failure, failure_code: code } = scenario;
  status.dataset.scenario = name;
  status.dataset.step = step;
  status.dataset.over = over;
  setText("scenario-name", t(`${name}.title`));
  const progress = failure ? t("scenario.failed") : over ? t("scenario.over") : t("scenario.step", Math.max(step, 1), steps);
  setText("scenario-progress", `(${progress})`);
  const caption = failure ? `${t("scenario.failure")} ${reason(code)}`.trim() : t(`${name}.${Math.max(step, 1)}`);
  quote(document.getElementById("scenario-caption"), caption, failure);
}
