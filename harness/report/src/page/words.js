// Words, figures and symbols that all parts of the page share.

// How a check can end, the worst first, and what that means.
const OUTCOMES = {
  fail: "The CCM broke the requirement.",
  blocked: "The CCM broke another requirement first, so this one could not be judged. A blocked MUST counts like a failed one.",
  error: "The environment failed (cluster, cloud or machine). It is never counted against the CCM.",
  interrupted: "The user ended the run before this check ended. The result is at most partial.",
  pass: "The CCM met the requirement.",
  "not-observable": "This cluster, Kubernetes version or cloud cannot show it. If it is a MUST, the result is at most partial.",
  deselected: "It was left out of this run. The result is at most partial.",
  "not-declared": "It is about a capability that the profile does not declare. It does not affect the verdict.",
};
// Checks that have not ended, while their run is in progress.
const UNENDED = { running: "The check runs now.", waiting: "The check has not started yet." };
const MEANINGS = { ...OUTCOMES, ...UNENDED, unknown: "This run did not have the check." };
const TROUBLE = ["fail", "blocked", "error"];
const UNJUDGED = ["blocked", "error", "interrupted", "not-observable", "deselected"];

const LEVELS = {
  MUST: "Required. A failed MUST makes the CCM not conformant.",
  SHOULD: "Recommended. A failed SHOULD is shown and does not change the verdict.",
  INFO: "Recorded only. It never fails.",
};
// In place of a level, for the checks of a vendor's own.
const PRIVATE = "private";
const LIMIT_USED = "How much of its time limit the longest wait of the check used. At 100 % the limit ran out.";

// What a check ran together with, by the words of reports.
const ISOLATIONS = {
  shared: "ran together with others", joint: "ran with the others that watch the crash of the leader", calm: "ran only with checks that wait, too",
  exclusive: "ran alone", cold: "ran alone on a new cluster", standing: "judged the whole run after all others", apart: "needed no cluster",
  own: "had a cluster of its own",
};

// A suite in words; the list begins them with a capital letter.
const suiteName = (name) => name.replace(/^csi-/, "CSI ").replace("loadbalancer", "load balancer").replaceAll("-", " ");
const spaced = (word) => word.replaceAll("-", " ");
const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

// A duration, for people: 350 ms, 12.3 s, 17 min 6 s, 2 h 5 min.
function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

// A time, for people: 2026-11-25 22:43 UTC.
function moment(text) {
  const [, day, time] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*Z$/.exec(text ?? "") ?? [];
  return day ? `${day} ${time} UTC` : text ?? "";
}

// Symbols, each of another shape, so that colour is not needed to tell them apart.
const FILLED = { class: "filled" };
const INNER = { class: "inner" };
const OUTLINE = { class: "outline" };
const SYMBOLS = {
  pass: [["circle", { cx: 8, cy: 8, r: 7, ...FILLED }], ["path", { d: "M4.8 8.3 7 10.5l4.3-4.8", ...INNER }]],
  fail: [["rect", { x: 1, y: 1, width: 14, height: 14, rx: 2.5, ...FILLED }], ["path", { d: "m5 5 6 6m0-6-6 6", ...INNER }]],
  blocked: [["circle", { cx: 8, cy: 8, r: 6.1, ...OUTLINE }], ["path", { d: "m3.7 12.3 8.6-8.6", ...OUTLINE }]],
  error: [["path", { d: "M8 .8 15.6 14.6H.4z", ...FILLED }], ["path", { d: "M8 5.6v4M8 12.2v.1", ...INNER }]],
  "not-observable": [["circle", { cx: 8, cy: 8, r: 6.1, ...OUTLINE, "stroke-dasharray": "2.4 2.4" }]],
  interrupted: [["path", { d: "M3.5 3h3v10h-3zM9.5 3h3v10h-3z", ...FILLED }]],
  deselected: [["path", { d: "M2.5 3.5 8 8l-5.5 4.5zM8 3.5 13.5 8 8 12.5z", ...FILLED }]],
  "not-declared": [["path", { d: "M3 8h10", ...OUTLINE }]],
  running: [["circle", { cx: 8, cy: 8, r: 6.1, ...OUTLINE, opacity: 0.35 }], ["path", { d: "M8 1.9A6.1 6.1 0 0 1 14.1 8", ...OUTLINE }]],
  waiting: [["path", { d: "M2.6 8h.1M8 8h.1M13.3 8h.1", class: "outline dots" }]],
  unknown: [["path", { d: "M5.2 5.8a2.8 2.8 0 1 1 4.3 2.4c-1 .6-1.5 1.1-1.5 2.1M8 13.2v.1", ...OUTLINE }]],
};

function drawn(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// The symbol of an outcome. `label`: the word that is read out; empty if the word is next to it.
function symbol(outcome, label = spaced(outcome)) {
  const shapes = (SYMBOLS[outcome] ?? SYMBOLS.unknown).map(([tag, attributes]) => drawn(tag, attributes));
  const said = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return drawn("svg", { viewBox: "0 0 16 16", class: `symbol ${outcome}`, ...said }, ...shapes);
}
