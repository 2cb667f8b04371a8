// How-to pages come before lessons, lists of names and the changelog, which contain nearly every word, and before the list
// of all commands, which has many words as titles. A word in a title counts 15 and one in a text 5, so a title counts more
// than the section.
const SECTIONS = Object.entries({
  "how-to/index": 6,
  "how-to/": 4,
  "tutorials/": 2,
  "explanation/": 2,
  "reference/api/": -1,
  "reference/commands": -12,
  "course/": -3,
  "project/": -3,
});
// The other values are those of Sphinx, which this object replaces.
var Scorer = {
  score: ([page, , , , score]) => score + (SECTIONS.find(([section]) => page.startsWith(section)) || ["", 0])[1],
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
