// Expected and actual values below each other, with the words that differ marked.

// Longer texts are compared as a whole.
const MOST_WORDS = 400;
// From this share of common words on, two texts are two versions of one.
const ALIKE = 0.4;
// Words of at least this length are worth pointing out where both texts have them.
const TELLING = 12;

const wordsOf = (text) => text.match(/\s+|[\w./:%*-]+|[^\s\w]/g) ?? [];

// The places of the longest common sequence of words in both.
function common(before, after) {
  const width = after.length + 1;
  const best = new Uint16Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      best[i * width + j] = before[i] === after[j]
        ? best[(i + 1) * width + j + 1] + 1
        : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const kept = [new Set(), new Set()];
  for (let i = 0, j = 0; i < before.length && j < after.length;) {
    if (before[i] === after[j]) {
      kept[0].add(i);
      kept[1].add(j);
      i += 1;
      j += 1;
    } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return kept;
}

// A text with some of its words marked.
const withMarks = (words, isMarked, className) => words.map((word, n) => (isMarked(word, n) ? make("mark", { className }, word) : word));

// Both texts with their differences marked, or with the telling words that they share where they are quite different.
function compared(before, after) {
  const all = [wordsOf(before), wordsOf(after)];
  if (Math.max(all[0].length, all[1].length) > MOST_WORDS) return [before, after];
  const isWord = (word) => word.trim() !== "";
  const kept = common(...all);
  const share = all[0].filter((word, n) => isWord(word) && kept[0].has(n)).length / Math.max(...all.map((words) => words.filter(isWord).length), 1);
  if (share >= ALIKE) return all.map((words, n) => withMarks(words, (word, at) => isWord(word) && !kept[n].has(at), "differs"));
  const shared = new Set(all[0].filter((word) => word.length >= TELLING && all[1].some((other) => other.includes(word))));
  return all.map((words) => withMarks(words, (word) => [...shared].some((one) => word.includes(one)), "shared"));
}

function diff(expected, actual) {
  const [before, after] = compared(expected, actual);
  const line = (kind, label, text) => make("div", { className: `diff-line ${kind}` }, span("diff-label", label), make("div", { className: "diff-text" }, text));
  return make("div", { className: "diff" }, line("wanted", "Expected", before), line("got", "Actual", after));
}
