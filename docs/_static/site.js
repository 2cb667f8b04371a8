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
