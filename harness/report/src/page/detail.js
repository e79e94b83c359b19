// What is known of one check: what was expected and seen, what is required, what happened, its evidence, and how to run it again.

// How the labels of a failure's text are shown.
const LABELS = {
  promise: "Promise", subject: "About", waited: "Waited", cloud: "Last calls to the cloud", likely: "Likely cause",
  resembles: "Known bug against the same row", "same row": "Known bug against it", explained: "Explanation",
};
const ISSUE = /\b([\w-]+\/[\w.-]+)#(\d+)/;

// A text in which the first issue of a repository is a link.
function withIssue(text) {
  const found = ISSUE.exec(text);
  if (!found) return [text];
  const [name, repository, number] = found;
  const link = make("a", { href: `https://github.com/${repository}/issues/${number}`, rel: "noopener noreferrer", target: "_blank" }, name);
  return [text.slice(0, found.index), link, text.slice(found.index + name.length)];
}

// What a check's text says: as a comparison where it names what was expected.
function verdictOf(run, { entry }) {
  const outcome = outcomeOf(entry);
  const text = textOf(entry);
  if (!text) return null;
  const failure = run.failures?.[entry.id];
  const blocker = outcome === "blocked" ? make("p", {}, "Blocked by ", linkTo(entry.by), ".") : null;
  if (!failure) return make("div", { className: `verdict ${outcome}` }, blocker, make("pre", { className: outcome }, text));
  const rows = failure.rest.map(([label, said]) => make("div", { className: `said-${label}` }, make("dt", {}, LABELS[label] ?? label), make("dd", {}, withIssue(said))));
  return make(
    "div", { className: `verdict ${outcome}` }, blocker, diff(failure.expected, failure.seen), make("dl", { className: "said" }, rows),
    folded("Text of the failure", command(text, "Copy the text of the failure")),
  );
}

// What a check waits for at the moment.
function waits(run, check) {
  if (outcomeOf(check.entry) !== "running") return [];
  return check.promises.filter((promise) => promise.to === null).map((promise) => {
    const since = `since ${duration(run.at - promise.from)}, at most ${duration(promise.limit_ms)}`;
    return make("pre", { className: "running" }, `waits: ${promise.promise}\nexpected: ${promise.expected}\n${since}`);
  });
}

// What the contract requires, and why.
function requirement(run, { entry }) {
  if (entry.private) return make("p", { className: "faint" }, "A check of the vendor's own. It is not part of the contract and has no effect on the verdict.");
  const demand = run.demands[entry.id.split(".")[0]];
  if (!demand) return null;
  return make(
    "div", { className: "demand" }, make("p", {}, make("strong", {}, "Required: "), withCode(demand.requires)), make("p", {}, make("strong", {}, "Why: "), withCode(demand.why)),
    folded("How the check provokes it", make("p", {}, withCode(demand.provoked))),
  );
}

function promiseTable(check) {
  if (!check.promises.length) return null;
  const rows = check.promises.map((promise) => promise.node = make(
    "tr", {}, make("td", {}, span(`state ${STATE_OUTCOMES[promise.state]}`, symbol(STATE_OUTCOMES[promise.state], ""), STATES[promise.state])),
    cell(promise.promise), cell(promise.to === null ? "" : `${duration(promise.to - promise.from)} of ${duration(promise.limit_ms)}`, { className: "n" })));
  return folded(count(rows.length, "promise"), table(["state", "promise", "took"], rows));
}

// When the check ran, how long, and with what else.
function circumstances(run, { entry, from }) {
  const used = entry.budget_used_percent;
  return [
    entry.suite, entry.level, from === undefined ? "" : `began after ${duration(from)}`, entry.duration_ms ? `took ${duration(entry.duration_ms)}` : "",
    typeof used === "number" ? `${used} % of its limit used` : "", ISOLATIONS[entry.sharing] ?? entry.sharing,
  ].filter(Boolean).join(" · ");
}

function commands(run, { entry }) {
  const keep = TROUBLE.includes(outcomeOf(entry)) ? " --keep on-failure" : "";
  // A mutant or a variant is judged as a whole.
  const again = run.again.startsWith("ccm-conformance controls") ? run.again : `${run.again} --only ${entry.id}${keep}`;
  return make("div", {}, make("h4", {}, "Run it again"), command(again), make("p", { className: "faint" }, "What is required, and how to test it by hand:"), command(`ccm-conformance explain ${entry.id}`));
}

function detail(run, check) {
  const { entry } = check;
  const deviation = run.report.subject.declared?.[entry.id] ?? run.report.subject.declared?.[entry.id.split(".")[0]];
  const facts = Object.entries(entry.facts ?? {});
  const evidence = run.evidence[entry.id] ?? [];
  const happened = run.isRead ? story(run, check) : make("p", { className: "empty" }, "The events are still being read.");
  return make(
    "div", { className: "detail", role: "region", ariaLabel: entry.id },
    make("p", { className: "faint" }, circumstances(run, check)), verdictOf(run, check), waits(run, check), requirement(run, check),
    deviation ? make("p", { className: "deviation" }, make("strong", {}, "Deviation that the vendor declares: "), deviation) : null,
    facts.length ? table(["measured", "value"], facts.map(([name, value]) => make("tr", {}, cell(name), cell(value, { className: "mono" })))) : null,
    happened, promiseTable(check),
    evidence.length ? make("div", {}, make("h4", {}, "Evidence"), evidence.map(([name, text]) => folded(name, make("pre", {}, text)))) : null,
    commands(run, check),
  );
}

function settings(run) {
  const { subject, stages } = run.report;
  const rank = { looser: 0, stricter: 1 };
  const all = [...subject.settings].sort((a, b) => (rank[a.bearing] ?? 2) - (rank[b.bearing] ?? 2));
  const rows = all.map((one) => make(
    "tr", {}, cell(one.setting), cell(one.value, { className: "mono" }), cell(one.contract ?? ""), cell(one.from),
    cell(one.bearing === "none" ? "" : spaced(one.bearing), { className: one.bearing === "looser" ? "fail" : "" })));
  const took = stages.map((one) => make("tr", {}, cell(one.stage), cell(duration(one.took_ms), { className: "n" })));
  const merged = (subject.merged ?? []).map((one) => make("tr", {}, cell(one.share), cell(moment(one.started)), cell(one.reproduce, { className: "mono" })));
  const digests = [["image digest", subject.imageDigest], ["manifests (SHA-256)", subject.manifestsSha256], ["node image digest", subject.nodeImageDigest]]
    .filter(([, value]) => value).map(([name, value]) => make("tr", {}, cell(name), cell(value, { className: "mono" })));
  return section(
    "settings", "How it was run", command(subject.reproduce),
    folded(`${count(rows.length, "setting")}, ${run.relaxed.length} of them looser than the contract`, table(["setting", "value", "contract", "set by", "compared with the contract"], rows)),
    folded("Stages and how long they took", table(["stage", "took"], took)),
    merged.length ? folded(`${count(merged.length, "part")} that the report was merged from`, table(["part", "started", "command"], merged)) : null,
    digests.length ? folded("Digests", table(["what", "digest"], digests)) : null,
    subject.capabilities?.length ? folded("Declared capabilities", make("p", {}, subject.capabilities.join(", "))) : null,
  );
}
