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

// Sphinx finds only pages that have all words of a question. If no page has, list those that have most of them.
function listNearest(question) {
  const found = new Map();
  const [skipped, stemmer] = [new Set(stopwords), new Stemmer()];
  const words = splitQuery(question.toLowerCase()).filter((word) => !skipped.has(word));
  for (const word of new Set(words.map((one) => stemmer.stemWord(one)))) {
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
    const listed = new Set(); // Sphinx lists a page again for an entry of the index
    for (const result of Search.output.querySelectorAll(".kind-index, .kind-text")) {
      const page = result.querySelector("a").pathname;
      if (listed.has(page)) result.remove();
      listed.add(page);
    }
    if (Search.output.children.length) _finishSearch(Search.output.children.length); // writes the count again
    else listNearest(question);
  }
});
