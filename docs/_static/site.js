// The search page shows excerpts of the pages that it found. A page that is opened from a file may not read other files, but it
// may load a script: `pages.js` has the text of every page.
if (location.protocol === "file:" && location.pathname.endsWith("/search.html")) {
  const loaded = new Promise((done) => {
    const script = document.createElement("script");
    script.src = "_static/pages.js";
    script.onload = script.onerror = done;
    document.head.append(script);
  });
  window.fetch = async (address) => {
    await loaded;
    const name = String(address).replace(/^\.\//, "").replace(/\.html$/, "");
    const text = (window.PAGES || {})[name] || "";
    return { text: async () => `<div role="main">${text}</div>` };
  };
}

// The stems of the words of a text, without those that Sphinx skips, such as "how" and "my".
function stems(text) {
  const stemmer = new Stemmer();
  return splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word)).map((word) => stemmer.stemWord(word));
}

// Sphinx finds an entry of the index that contains the question. One that `conf.py` adds also counts if the question contains
// its words, in any order. Return the pages whose entries have at least half of the question's words, the best last.
function answers(question) {
  const asked = new Set(stems(question));
  const found = new Map();
  for (const [entry, places] of Object.entries(Search._index.indexentries)) {
    const words = stems(entry);
    if (!words.length || !words.every((word) => asked.has(word))) continue;
    for (const [file, id] of places) if (id === "index-0") found.set(file, new Set([...(found.get(file) ?? []), ...words]));
  }
  const most = [...found].filter(([, words]) => 2 * words.size >= asked.size);
  return most.sort(([, a], [, b]) => a.size - b.size).map(([file]) => file);
}

// Sphinx finds only pages that have all words of a question. If no page has, list those that have most of them.
function listNearest(question) {
  const found = new Map();
  for (const word of new Set(stems(question))) {
    const results = Search.performTermsSearch(new Set([word]), new Set());
    for (const result of results) {
      const [page, title] = result;
      const score = Scorer.score(result) + 100 / results.length; // a rare word counts more
      found.set(page, { title, score: score + (found.get(page)?.score ?? 0) });
    }
  }
  if (!found.size) return;
  Search.status.textContent = "No page has all of these words. These have most of them:";
  for (const [page, { title }] of [...found].sort(([, a], [, b]) => b.score - a.score).slice(0, 5)) {
    const link = Search.output.appendChild(document.createElement("li")).appendChild(document.createElement("a"));
    link.href = `${page}.html`;
    link.textContent = title;
  }
}
window.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  const question = new URLSearchParams(location.search).get("q");
  if (!results || !question) return;
  const observer = new MutationObserver(check);
  observer.observe(results, { childList: true, subtree: true });
  check();
  function check() {
    if (!Search.status?.textContent) return; // it is set at the end of a search
    observer.disconnect();
    for (const file of answers(question)) {
      const { docnames, titles, filenames } = Search._index;
      _displayItem([docnames[file], titles[file], "", null, 0, filenames[file], "text"], new Set(stems(question)), []);
      Search.output.prepend(Search.output.lastElementChild);
    }
    const listed = new Set(); // a page is there again for an entry of the index, and for its text
    for (const result of Search.output.querySelectorAll(".kind-index, .kind-text")) {
      const page = result.querySelector("a").pathname;
      if (listed.has(page)) result.remove();
      listed.add(page);
    }
    if (Search.output.children.length) _finishSearch(Search.output.children.length); // writes the count again
    else listNearest(question);
  }
});
