// The workbench: the node and its ledger at the top, one tab per builder. Python creates a builder when its tab is first
// opened (`_children`); the browser shows it with the builder's own front end.

let benches = 0;

function render({ model, el, host, signal }) {
  const uid = `ltkw${++benches}-${Math.random().toString(36).slice(2, 7)}`;
  const get = (name) => model.get(name);
  let silent; // what is said while Python does not answer
  const send = sender(model, el, (now) => ((silent = now), say()));
  const button = (text, run, kind = "") => make("button", { type: "button", text, class: kind, onclick: run });

  // the node ---------------------------------------------------------------------------------------------------------

  const target = make("select", { id: `${uid}-node`, onchange: () => choose() });
  const back = button("", () => (node(), send({ do: "cancel" }))); // which also removes why it could not connect
  const other = make("p", { class: "ltk-stale", role: "status", hidden: true });
  const forms = make("div", { class: "ltk-forms" });
  for (const [value, text] of get("_targets")) target.append(make("option", { value, text }));
  const plain = { autocomplete: "off", autocapitalize: "off", spellcheck: "false" };
  const url = make("input", { ...plain, type: "text", id: `${uid}-url`, class: "ltk-mono", placeholder: "https://host/v1" });
  const urlLabel = make("label", { for: url.id, text: "URL" });
  const ask = () => send(get("busy") ? { do: "cancel" } : { do: "connect", target: target.value || url.value });
  const connect = button("Connect", ask, "ltk-primary");
  url.addEventListener("keydown", (event) => event.key === "Enter" && connect.click());
  const refresh = button("Refresh", () => get("busy") || send({ do: "refresh" }));
  const status = make("div", { role: "status", class: "ltk-status" });
  const facts = make("dl", { class: "ltk-facts" });
  const gone = goneNote(el, "this cell again to use the workbench");
  const choice = make("div", { class: "ltk-bar" }, make("label", { for: target.id, text: "Node" }), target, urlLabel, url, connect, refresh, status);
  /** The forms below use the connected node; they are disabled while another node is selected. */
  function choose() {
    for (const one of [url, urlLabel]) one.hidden = target.value !== "";
    connect.disabled = !target.value && !url.value.trim() && !get("busy");
    const { name, target: known } = get("_node");
    const differs = Boolean(name) && (target.value !== known || (!known && url.value.trim() !== name));
    forms.inert = differs;
    forms.classList.toggle("ltk-rest", differs);
    other.hidden = !differs;
    refresh.hidden = differs || !name;
    connect.hidden = !refresh.hidden && !get("busy");
    back.textContent = `Keep using ${name}`;
    other.replaceChildren("Not connected to this node yet. The forms wait until you connect. ", back);
  }
  url.addEventListener("input", choose);

  // the tabs ---------------------------------------------------------------------------------------------------------

  const list = make("div", { role: "tablist", "aria-label": "Builders", class: "ltk-tabs ltk-main-tabs" });
  const empty = make("p", { class: "ltk-hint ltk-none" });
  const panels = new Map();
  for (const [name, title] of get("_tabs")) {
    const panel = make("div", { role: "tabpanel", id: `${uid}-${name}-panel`, "aria-labelledby": `${uid}-${name}`, hidden: true });
    const about = { type: "button", role: "tab", id: `${uid}-${name}`, "aria-controls": panel.id, onclick: () => turn(name) };
    const tab = make("button", { ...about, text: title });
    panels.set(name, { tab, panel, shown: "" });
    list.append(tab);
  }
  list.addEventListener("keydown", (event) => {
    const names = [...panels.keys()];
    const now = names.indexOf(get("selected"));
    const step = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: names.length - 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    turn(names[(step + names.length) % names.length]);
  });
  function turn(name) {
    model.set("selected", name);
    model.save_changes();
    panels.get(name).tab.focus();
  }
  function select() {
    const now = get("selected");
    for (const [name, { tab, panel }] of panels) {
      tab.setAttribute("aria-selected", String(name === now));
      tab.tabIndex = name === now ? 0 : -1;
      panel.hidden = name !== now;
    }
    ready();
    open();
  }
  const toGas = button("", () => send({ do: "gas" }), "ltk-small");
  const row = make("div", { class: "ltk-switch-row" }, list, toGas);
  const ready = () => {
    toGas.hidden = !["simulation", "view"].includes(get("selected"));
    toGas.disabled = !get("_has_call");
    // A simulation runs at the head only: its gas over versions is that of the function's committed transactions.
    toGas.textContent = get("selected") === "simulation" ? "Gas of this function's transactions" : "Open this call in Gas";
  };

  /** Show the builder of the open tab, and request it if it does not exist yet. */
  async function open() {
    const name = get("selected");
    const place = panels.get(name);
    const ref = (get("_children") || {})[name];
    if (!place) return;
    if (!ref) {
      const known = get("_node").name;
      empty.textContent = known ? "Opening\u2026" : "Choose a node and press Connect.";
      place.panel.replaceChildren(empty);
      if (known) send({ do: "open", tab: name });
    } else if (place.shown !== ref) {
      place.shown = ref;
      const inside = make("div", {});
      place.panel.replaceChildren(inside);
      const child = await host.getWidget(ref);
      await child.render({ el: inside, signal });
    }
  }
  function node() {
    const { name, target: known } = get("_node");
    if (name) {
      target.value = known;
      if (!known) url.value = name;
    }
    choose();
    row.hidden = !name;
    select();
    if (name && !get("_facts").length) send({ do: "refresh" });
  }
  function state() {
    facts.replaceChildren(...get("_facts").map(([name, value]) => make("div", {}, make("dt", { text: name }), make("dd", { text: value }))));
    facts.hidden = !get("_facts").length;
  }
  function say() {
    const { kind = "hint", text = "" } = silent || get("_status") || {};
    status.className = `ltk-status ltk-${kind}`;
    if (status.textContent !== text) status.textContent = text;
  }
  let [since, clock] = [0, 0];
  function work() {
    connect.textContent = get("busy") ? "Cancel" : "Connect";
    choose();
    clearInterval(clock);
    if (get("busy")) [since, clock] = [Date.now(), setInterval(() => (status.textContent = `${get("_status").text} ${Math.round((Date.now() - since) / 1000)} s`), 1000)];
    refresh.setAttribute("aria-disabled", String(get("busy")));
  }

  el.classList.add("ltk", "ltk-workbench", "mathjax_ignore");
  const head = make("div", { class: "ltk-head" }, make("span", { class: "ltk-title", text: "Workbench" }));
  head.append(make("span", { class: "ltk-hint", text: "nothing is signed or submitted" }));
  el.replaceChildren(make("div", { class: "ltk-bench" }, head, choice, gone, other, forms));
  forms.append(facts, row, ...[...panels.values()].map(({ panel }) => panel));
  el.prepend(hiddenPicture(get("_key")));

  // In the app, the address contains the entries, so that a link or a reload restores them.
  const app = Boolean(document.querySelector("[data-voila]"));
  const fragment = location.hash.slice(1);
  const link = () => app && get("_link") && history.replaceState(null, "", `#${get("_link")}`);
  if (app && fragment && !get("_link")) send({ do: "restore", name: fragment });
  const watched = { _link: link, _node: node, _facts: state, _status: say, busy: work, selected: select, _children: open, _has_call: ready };
  for (const [name, run] of Object.entries(watched)) model.on(`change:${name}`, run);
  const away = () => gone.show();
  model.on("comm_live_update", away);
  const run = () => forms.inert || panels.get(get("selected")).panel.querySelector(".ltk-primary")?.click();
  const letKeysGo = keepKeys(el, run); // a form has its own keys: these are of the tabs and the node
  state();
  say();
  work();
  node();
  return () => {
    for (const [name, run] of Object.entries(watched)) model.off(`change:${name}`, run);
    model.off("comm_live_update", away);
    letKeysGo();
    send.stop();
    clearInterval(clock);
  };
}

export default { render };
