// The top of a page: what was tested, the verdict with its reasons, and how many checks ended how.

const VERDICT_SYMBOLS = { conformant: "pass", partial: "not-observable", "not-conformant": "fail", "not-judged": "error", "under-way": "running" };
// How many reasons are shown before the others are asked for.
const REASONS = 8;
// Up to this number, reasons are shown whole.
const WHOLE_REASONS = 4;

const pill = (verdict) => span(`pill ${verdict}`, symbol(VERDICT_SYMBOLS[verdict], ""), spaced(verdict));

// A link to a check of the page.
const linkTo = (id) => make("a", { href: `#check=${id}`, onclick: (event) => {
  event.preventDefault();
  show(id);
} }, id);

// Links to checks, the first few at once.
function linksTo(ids, few = 4) {
  const links = (some) => some.flatMap((id, n) => [n ? ", " : "", linkTo(id)]);
  if (ids.length <= few + 1) return links(ids);
  const rest = make("span", { hidden: true }, ", ", links(ids.slice(few)));
  const more = button("more", () => {
    rest.hidden = false;
    more.remove();
  }, {}, `and ${ids.length - few} more`);
  return [links(ids.slice(0, few)), " ", more, rest];
}

// The line over the page: the program, and what belongs to the page as a whole.
function brand(subject, links) {
  const versions = [subject.harnessVersion && `version ${subject.harnessVersion}`, subject.checkSet && `checks ${subject.checkSet}`];
  return make(
    "div", { className: "brand" },
    make("a", { className: "skip", href: "#checks", onclick: (event) => {
      event.preventDefault();
      document.querySelector("#checks input")?.focus();
    } }, "Skip to the checks"),
    make("strong", {}, "ccm-conformance"), span("faint", versions.filter(Boolean).join(" · ")),
    make("nav", { ariaLabel: "sections" }, links.map(([id, text]) => make("a", { href: `#${id}`, onclick: (event) => {
      event.preventDefault();
      document.getElementById(id)?.scrollIntoView();
    } }, text))),
    theme.button(), button("tool", openHelp, { title: "What the symbols mean, and the keys of this page (?)" }, "Legend and keys"),
  );
}

// What was tested, where and when: [name, value, more about it].
function factsOf({ report }) {
  const { subject } = report;
  const [cluster] = [[subject.backend, subject.topology].filter(Boolean).join(", ")];
  const cloud = subject.dialect ? `fake cloud, dialect ${subject.dialect}` : subject.driver;
  const shards = subject.shard ? `part ${subject.shard.share}` : subject.merged?.length ? `merged from ${count(subject.merged.length, "part")}` : "";
  return [
    ["CCM", subject.image || subject.settings.find(({ setting }) => setting === "binary")?.value || "no image", subject.imageDigest],
    ["Kubernetes", subject.kubernetesVersion, subject.nodeImage], ["Cluster", cluster, subject.kindVersion && `kind ${subject.kindVersion}`],
    ["Cloud", cloud], ["Framework", subject.frameworkVersion], ["Started", moment(report.started), report.started],
    ["Duration", report.duration_ms ? duration(report.duration_ms) : ""], ["Run", shards],
  ].filter(([, value]) => value);
}

const factList = (facts) => make("dl", { className: "facts" }, facts.map(([name, value, more]) =>
  make("div", {}, make("dt", {}, name), make("dd", { title: more || undefined }, value))));

// How many MUSTs passed, in a sentence.
function inShort(run) {
  const musts = run.report.entries.filter((entry) => entry.level === "MUST" && outcomeOf(entry) !== "not-declared");
  const counted = (outcome) => musts.filter((entry) => outcomeOf(entry) === outcome).length;
  const others = Object.keys(MEANINGS).filter((outcome) => outcome !== "pass" && counted(outcome));
  const words = { fail: "failed", blocked: "blocked", error: "with an environment error" };
  const rest = others.map((outcome) => `${counted(outcome)} ${words[outcome] ?? spaced(outcome)}`);
  return musts.length ? `${counted("pass")} of ${musts.length} applicable MUST checks passed${rest.length ? `; ${rest.join(", ")}` : ""}.` : "";
}

function top(run) {
  const { report, verdict } = run;
  const { profile } = report.subject;
  document.title = `${spaced(verdict)}: ${profile || "no profile"} – ccm-conformance`;
  const hasReasons = run.because.length || report.explanations?.length;
  const links = [
    hasReasons && ["why", "Reasons"], run.profiles.length && ["profiles", "Profiles"],
    ["checks", "Checks"], ["run", "Time line"], ["settings", "Settings"],
  ].filter(Boolean);
  const header = make(
    "header", {}, brand(report.subject, links), make("h1", {}, pill(verdict), span("subject", profile || "no profile")),
    make("p", { className: "short" }, inShort(run)), factList(factsOf(run)), figures(run),
  );
  if (run.goesOn) {
    const judged = report.entries.filter((entry) => entry.outcome !== "skip");
    const ended = judged.filter((entry) => !(entry.outcome in UNENDED)).length;
    const now = [...run.stages].filter((stage) => stage !== "checks").join(", ");
    header.append(make("p", { className: "short" }, now ? `Now: ${now}` : `${ended} of ${judged.length} checks have ended.`));
  }
  if (report.environment_error) header.append(make("pre", { className: "error" }, report.environment_error));
  return header;
}

// How many checks of a level ended how: [outcome, number], those that are not there left out.
function countsOf(entries) {
  const of = (outcome) => entries.filter((entry) => outcomeOf(entry) === outcome).length;
  return [...Object.keys(OUTCOMES), ...Object.keys(UNENDED)].map((outcome) => [outcome, of(outcome)]).filter(([, n]) => n);
}

// The numbers from left to right as people expect them: what passed comes first.
const passFirst = (counts) => [...counts].sort(([a], [b]) => (b === "pass") - (a === "pass"));
const inWords = (counts) => counts.map(([outcome, n]) => `${n} ${spaced(outcome)}`).join(", ");

// One row for each level: a bar, and numbers that narrow the list of checks down.
function figures(run) {
  const rows = Object.keys(LEVELS).map((level) => {
    const counts = passFirst(countsOf(run.report.entries.filter((entry) => entry.level === level)));
    const numbers = counts.map(([outcome, n]) => button(`figure ${outcome}`, () => narrowTo({ level, outcome }), {
      title: `${MEANINGS[outcome]} Show these checks.`, ariaLabel: `${n} ${level} ${spaced(outcome)}: show these checks`,
    }, symbol(outcome, ""), make("strong", {}, String(n)), span("word", spaced(outcome))));
    return make("div", { className: "figures-row" }, make("span", { className: "level-name", title: LEVELS[level] }, level),
      bar(counts, `${level}: ${inWords(counts)}`), span("numbers", ...numbers));
  });
  return make("div", { className: "figures" }, rows);
}

// What was expected and what was there, for a row of the table of reasons.
function reasonRow(run, cause, isWide) {
  const checks = cause.checks.length ? linksTo(cause.checks, 2) : "the whole run";
  const mark = cause.outcome ? symbol(cause.outcome) : null;
  const title = cause.checks.length === 1 ? run.check(cause.checks[0]).entry.title : "";
  const first = make("td", {}, mark, " ", checks, title ? make("div", { className: "faint" }, title) : null);
  if (!cause.expected) {
    const reason = make("td", { colSpan: isWide ? 2 : 1 }, cause.seen);
    reason.dataset.head = "reason";
    return make("tr", {}, first, reason);
  }
  const clamp = run.because.length > WHOLE_REASONS ? "clamp" : "";
  const [expected, seen] = compared(cause.expected, cause.seen);
  const about = cause.subject && !cause.seen.includes(cause.subject) ? span("faint", `${cause.subject}: `) : null;
  return make("tr", {}, first,
    make("td", { className: "wanted" }, make("div", { className: clamp, title: cause.expected }, expected)),
    make("td", { className: "got" }, make("div", { className: clamp, title: cause.seen }, about, seen)));
}

// Why the verdict is what it is, one line for each reason.
function reasons(run) {
  const explained = run.report.explanations ?? [];
  if (!run.because.length && !explained.length) return null;
  const reasonsTable = (causes, className) => {
    const isWide = causes.some((cause) => cause.expected);
    return table(isWide ? ["check", "expected", "actual"] : ["check", "reason"], causes.map((cause) => reasonRow(run, cause, isWide)), className);
  };
  const [first, rest] = [run.because.slice(0, REASONS), run.because.slice(REASONS)];
  const shown = reasonsTable(first, `reasons ${run.verdict}`);
  const more = rest.length ? folded(`${count(rest.length, "more reason")}`, reasonsTable(rest, "reasons")) : null;
  const explains = explained.length ? make("ul", { className: "explained" }, explained.map((text) => make("li", {}, text))) : null;
  const title = run.goesOn ? "What failed so far" : `Why ${spaced(run.verdict)}`;
  return section("why", title, explains, run.because.length ? shown : null, more);
}

// How the CCM stands to each profile of conformance.
function profiles(run) {
  if (!run.profiles.length) return null;
  const declared = run.profiles.filter(({ standing }) => standing !== "not-declared");
  const others = run.profiles.filter(({ standing }) => standing === "not-declared").map(({ profile }) => profile);
  const rows = declared.map(({ profile, standing, musts, passed, leftOut, because = [] }) => make(
    "tr", {}, make("th", { scope: "row" }, profile), make("td", {}, span(`standing ${standing}`, symbol(VERDICT_SYMBOLS[standing], ""), spaced(standing))),
    make("td", { className: "share" }, bar([["pass", passed], ["rest", musts - passed]], `${passed} of ${musts}`), `${passed} of ${musts}${leftOut ? `, ${leftOut} left out` : ""}`),
    make("td", {}, because.length ? linksTo(because, 3) : "")));
  return section(
    "profiles", "Profiles of conformance",
    rows.length ? table(["profile", "result", "MUSTs passed", "not passed"], rows, "standings") : null,
    others.length ? make("p", { className: "faint" }, `Not declared: ${others.join(", ")}.`) : null,
  );
}
