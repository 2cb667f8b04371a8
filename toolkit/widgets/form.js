// The controls of a builder. Python provides the texts and buttons (`_about`), the fields (`_spec`) and the results
// (`_findings`, `_status`, `_pages`). While the user types, the browser owns `_draft`: each edit increments `seq`, and a
// draft from Python with a lower `seq` is out of date.

const LOOK_MS = 350;
const SEARCH_MS = 200;
const WAIT_MS = 300;
const MAX_UNFILTERED = 3; // items of a list that needs no filter
const MAX_LINES = 40; // of code that are shown initially
const CLOSE_MS = 150;
const SAID_MS = 2000; // that something was copied
const READ_MS = 120; // time in which Python reads an edit, unless it is busy
const PLACES = "Contracts to start from";
const RECENT = "Recently used, or start from";
const AS_CODE = "As code";
const RUNNING = "Still running: Cancel first.";
const WAITS = "Waiting for the node\u2026";
const PICTURE = "This is a picture of the form, or Python is busy.";
const FUNCTION = /^\s*(0x)?[0-9a-f]{1,64}::\w+::\w+\s*$/i;
let forms = 0;

function later(ms, run) {
  let timer = 0;
  const start = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), ms);
  };
  start.stop = () => clearTimeout(timer);
  return start;
}

function render({ model, el }) {
  const uid = `ltk${++forms}-${Math.random().toString(36).slice(2, 7)}`;
  const get = (name) => model.get(name);
  const form = get("_about");
  const edited = new Set(); // fields that the user has typed into
  const unread = new Set(); // edited fields whose edit Python has not read
  const touched = new Set(); // edited fields that have lost the focus: missing entries there are errors
  const open = new Set(); // sections that the user has opened, or that are filled
  const shut = new Set();
  let draft = structuredClone(get("_draft"));
  let controls = new Map(); // path -> {input, message, wrap, label, node}
  let drawn = null;
  let asked = ""; // the action that the user has requested, until it has ended
  let begun = false; // whether Python has started the action
  let looked = "";
  let chosen = { result: "", code: "" };
  let completed = null;
  let stays = false; // whether an edit waits for Python: the page may be older than the entries
  let lookedAt = 0; // the edit whose look-up was asked for last
  let halfway = ""; // the path of the entry that was typed into since the last action
  let guided = false; // whether the form has set the focus, on a message that a list would cover
  let held = null; // keys pressed since Tab left an entry that other fields depend on, until these have arrived

  // the draft ----------------------------------------------------------------------------------------------------------

  const key = (path) => path.join(".");
  const at = (path) => path.reduce((value, step) => (value === undefined || value === null ? undefined : value[step]), draft);
  function put(path, value) {
    const inside = at(path.slice(0, -1));
    if (inside === undefined) return;
    inside[path[path.length - 1]] = value;
    if (path[0] === "raw") draft.lead = "raw";
    if (path[0] === "arguments") draft.lead = "fields";
    draft.seq += 1;
    unread.add(key(path));
    readSoon();
    lookSoon();
    model.set("_draft", structuredClone(draft));
    model.save_changes();
  }
  const shown = (node, base) => !node.when || node.when[1].includes(at([...base, node.when[0]]));
  const join = (base, step) => (step === "" ? base : [...base, step]);

  /** The paths of all visible parts; nothing is redrawn until they change. */
  function shape(node, base) {
    if (!shown(node, base.parent)) return "";
    const path = base.path;
    if (node.kind === "group")
      return `{${key(path)}${(node.fields || []).map(([step, inner]) => shape(inner, { path: join(path, step), parent: path })).join(",")}}`;
    if (node.kind !== "actions" && at(path) === undefined) return ""; // it is drawn once its entry has arrived
    if (node.kind === "rows" && Array.isArray(at(path)))
      return `[${key(path)}${at(path).map((_, n) => shape(node.item, { path: [...path, n], parent: path })).join(",")}]`;
    return key(path) + node.kind;
  }
  const whole = () => JSON.stringify(get("_spec")) + shape(get("_spec"), { path: [], parent: [] });

  // fields ---------------------------------------------------------------------------------------------------------------

  function draw(node, path, parent, words) {
    if (node.kind === "actions") return shown(node, parent) ? drawActions(node) : null;
    if (!shown(node, parent) || (node.kind !== "group" && at(path) === undefined)) return null;
    const name = words ? `${words}, ${node.label}` : node.label;
    if (node.kind === "group") return drawGroup(node, path, words);
    if (node.kind === "rows") return drawRows(node, path, words);
    const id = `${uid}-${key(path)}`;
    const message = make("div", { id: `${id}-m`, class: "ltk-message" });
    let input;
    const about = { id, "aria-describedby": `${id}-m${node.hint ? ` ${id}-h` : ""}`, onblur: () => touch(path) };
    if (node.kind === "switch") {
      input = make("input", { ...about, type: "checkbox", onchange: () => change(path, input.checked) });
    } else if (node.kind === "select") {
      input = make("select", { ...about, onchange: () => change(path, input.value) });
      for (const [value, text] of node.options) input.append(make("option", { value, text }));
    } else {
      const plain = { autocomplete: "off", autocapitalize: "off", spellcheck: "false" };
      const typed = { ...about, ...plain, placeholder: node.placeholder, oninput: () => type(path, input, node) };
      input = node.rows ? make("textarea", { ...typed, rows: node.rows }) : make("input", { ...typed, type: "text" });
      if (node.mono) input.classList.add("ltk-mono");
      if (node.names && get("_about").accounts.length) input.setAttribute("list", `${uid}-accounts`);
      if (node.offers) input.setAttribute("list", `${id}-o`);
    }
    const label = make("label", { for: id, class: node.short ? "ltk-unseen" : "" });
    if (words) label.append(make("span", { class: "ltk-unseen", text: `${words}, ` }));
    label.append(node.label);
    // Without a name, the label is a word for the type.
    if (node.type && node.type.toLowerCase() !== node.label.toLowerCase()) label.append(" ", make("code", { text: node.type }));
    const named = node.names && get("_about").accounts.length ? ", or the name of an account" : "";
    const hint = node.hint && make("span", { id: `${id}-h`, class: "ltk-hint", text: node.hint + named });
    const wrap = make("div", { class: `ltk-field ltk-${node.kind}` });
    if (node.kind === "switch") wrap.append(make("div", { class: "ltk-line" }, input, label));
    else if (node.search) wrap.append(label, combobox(input, path), hint || "");
    else wrap.append(label, input, hint || "");
    if (node.hinted) wrap.insertBefore(message, hint);
    else wrap.append(message);
    if (node.offers) wrap.append(choices(`${id}-o`, node.offers));
    const offers = node.names ? () => get("_about").accounts : () => node.offers || [];
    controls.set(key(path), { input, message, wrap, name, path, unset: node.unset, offers });
    setValue(input, at(path) ?? node.unset);
    return wrap;
  }

  function drawActions(node) {
    const buttons = node.buttons.map(({ text, number }, n) =>
      make("button", { type: "button", class: "ltk-small", id: `${uid}-${node.do}${n}`, text, onclick: () => ask(node.do, { number }) }),
    );
    const hint = node.hint && make("span", { class: "ltk-hint", text: node.hint });
    const about = { role: "group", "aria-label": node.label, class: "ltk-choices" };
    return make("div", about, ...buttons, hint);
  }

  function drawGroup(node, path, words) {
    const inner = node.label && (words || node.type) ? (words ? `${words}, ${node.label}` : node.label) : words;
    const parts = (node.fields || []).map(([step, field]) => draw(field, join(path, step), path, inner)).filter((one) => one);
    if (node.fold) {
      const fold = make("details", { class: "ltk-fold" }, make("summary", { text: node.label }), ...parts);
      fold.addEventListener("keydown", (event) => {
        const buttons = [...fold.querySelectorAll(":scope > .ltk-choices button")];
        const act = buttons.find((one) => event.target.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING); // what the entry is for
        if (act && event.key === "Enter" && event.target.type === "text" && !event.ctrlKey && !event.metaKey) act.click();
      });
      fold.open = open.has(node.label) || (node.filled && !shut.has(node.label));
      fold.addEventListener("toggle", () => {
        open[fold.open ? "add" : "delete"](node.label);
        shut[fold.open ? "delete" : "add"](node.label);
      });
      return fold;
    }
    if (node.plain) return make("p", { class: "ltk-hint", text: node.label });
    if (!node.label) return make("div", {}, ...parts);
    const legend = make("legend", {});
    if (words) legend.append(make("span", { class: "ltk-unseen", text: `${words}, ` }));
    legend.append(node.label);
    if (node.type) legend.append(" ", make("code", { text: node.type }));
    return make("fieldset", { class: node.inline ? "ltk-inline" : "" }, legend, ...parts);
  }

  function drawRows(node, path, words) {
    const items = at(path);
    if (node.exactly === 0 && !items.length) return null;
    const name = words ? `${words}, ${node.label}` : node.label;
    const legend = make("legend", {}, node.label, " ", node.type ? make("code", { text: node.type }) : "");
    const message = make("div", { class: "ltk-message" });
    const field = make("fieldset", { class: "ltk-rows", id: `${uid}-${key(path)}`, tabindex: "-1" }, legend);
    controls.set(key(path), { input: field, message, wrap: field, name });
    if (!Array.isArray(items)) {
      const text = { kind: "text", label: `${node.label} as JSON`, rows: 4, mono: true };
      field.append(draw(text, [...path, "json"], path, words), message);
      return field;
    }
    const fixed = node.exactly === items.length;
    items.forEach((_, place) => {
      const hint = node.hints && node.hints[place];
      const item = { ...node.item, label: node.labels?.[place] ?? `${node.item.label} ${place + 1}`, ...(hint ? { hint } : {}) };
      const row = make("div", { class: "ltk-row" }, draw(item, [...path, place], path, name));
      if (!fixed) {
        const about = (what) => ({ type: "button", class: "ltk-small", "aria-label": `${what} ${name} ${place + 1}` });
        const up = { ...about("Move up"), text: "\u2191", disabled: place === 0, onclick: () => move(path, place) };
        const gone = { ...about("Remove"), text: "\u2715", onclick: () => remove(path, place) };
        row.append(make("div", { class: "ltk-tools" }, make("button", up), make("button", gone)));
      }
      field.append(row);
    });
    if (!fixed && node.exactly === undefined) {
      const text = `Add ${items.length ? "another" : "one"}`;
      const about = { type: "button", class: "ltk-small", "aria-label": `${text}: ${name}`, id: `${uid}-${key(path)}-add` };
      field.append(make("button", { ...about, text, onclick: () => add(path, node.blank ?? "") }));
    }
    field.append(message);
    return field;
  }

  function setValue(input, value) {
    if (input.type === "checkbox") input.checked = Boolean(value);
    else if (input.value !== undefined && input.value !== value) input.value = value ?? "";
  }
  function touch(path) {
    if (!edited.has(key(path))) return;
    touched.add(key(path));
    fillNamed(controls.get(key(path)) || {});
    if (["version", "plan", "span"].includes(key(path))) tell("time");
    findings();
  }
  const choices = (id, offers) => make("datalist", { id }, ...offers.map(([value, label]) => make("option", { value, label })));
  /** Replace a name by what it stands for: that of an account by its address. */
  function fillNamed({ input, path, offers }) {
    const typed = input?.value?.trim().toLowerCase();
    const [value] = (typed && offers?.().find(([, name]) => name.toLowerCase() === typed)) || [];
    if (!value) return;
    input.value = value;
    put(path, value);
  }
  function type(path, input, node) {
    edited.add(key(path));
    [halfway, browsing, guided] = [key(path), null, false];
    put(path, input.value);
    if (!node.search) return;
    narrow(input.value);
    search(input.value);
  }
  function change(path, value) {
    put(path, value);
    if (whole() !== drawn) redraw();
  }
  function focus(id) {
    const found = el.querySelector(`#${CSS.escape(id)}`);
    const inside = found && found.matches("fieldset, div") ? found.querySelector("input, select, textarea, button") : found;
    if (inside) inside.focus();
  }
  function add(path, blank) {
    const items = at(path);
    put(path, [...items, structuredClone(blank)]);
    redraw();
    const rows = el.querySelectorAll(`#${CSS.escape(`${uid}-${key(path)}`)} > .ltk-row`);
    const input = rows[rows.length - 1]?.querySelector("input, select, textarea, button");
    if (input) input.focus();
  }
  function remove(path, place) {
    put(path, at(path).filter((_, n) => n !== place));
    redraw();
    const rows = el.querySelectorAll(`#${CSS.escape(`${uid}-${key(path)}`)} > .ltk-row`);
    const next = rows[Math.min(place, rows.length - 1)]?.querySelector("input, select, textarea, button");
    if (next) next.focus();
    else focus(`${uid}-${key(path)}-add`);
  }
  function move(path, place) {
    const items = [...at(path)];
    [items[place - 1], items[place]] = [items[place], items[place - 1]];
    put(path, items);
    redraw();
    focus(`${uid}-${key([...path, place - 1])}`);
  }

  // the search for a function ----------------------------------------------------------------------------------------

  let active = -1;
  let marked; // the name of the active hit
  let listed = null;
  const search = later(SEARCH_MS, (query) => send({ do: "search", query }));
  function combobox(input, path) {
    const list = make("ul", { role: "listbox", id: `${uid}-hits`, class: "ltk-hits", "aria-label": "Functions", hidden: true });
    Object.entries({ role: "combobox", "aria-expanded": "false", "aria-controls": `${uid}-hits`, "aria-autocomplete": "list" })
      .forEach(([name, value]) => input.setAttribute(name, value));
    input.addEventListener("keydown", (event) => {
      const options = [...list.children].filter((one) => one.role === "option" || one.getAttribute("role") === "option");
      const only = options.length === 1 && !event.ctrlKey && !event.metaKey; // Ctrl+Enter runs what is typed
      const picked = options[active] || (only && options[0]);
      if (event.key === "ArrowDown" && list.hidden) openHits();
      else if (!list.hidden && event.key === "ArrowDown") active = Math.min(active + 1, options.length - 1);
      else if (!list.hidden && event.key === "ArrowUp") active = Math.max(active - 1, 0);
      else if (!list.hidden && event.key === "Enter" && picked) pick(picked.dataset.name);
      else if (!list.hidden && event.key === "Escape") closeHits();
      else return;
      event.preventDefault();
      mark(options);
    });
    // A click on a hit comes first. A field that was redrawn loses the focus too, and must not close the new list.
    const closeSoon = later(CLOSE_MS, () => listed && listed.list === list && closeHits());
    input.addEventListener("focus", () => {
      closeSoon.stop();
      if (guided) closeHits();
      else if (!input.value) openHits();
    });
    input.addEventListener("blur", () => ((guided = false), closeSoon()));
    listed = { input, list, path };
    const browse = button("Browse", () => (openHits(""), input.focus()), "ltk-small");
    browse.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
    browse.tabIndex = -1; // the arrow keys open the list, too
    return make("div", { class: "ltk-search" }, make("div", { class: "ltk-line" }, input, browse), list);
  }
  function mark(options) {
    marked = options[active]?.dataset.name;
    options.forEach((one, n) => one.setAttribute("aria-selected", String(n === active)));
    if (options[active]) {
      listed.input.setAttribute("aria-activedescendant", options[active].id);
      options[active].scrollIntoView({ block: "nearest" });
    } else listed.input.removeAttribute("aria-activedescendant");
  }
  /** Show the hits of the last search, if it was for the same text, and search again. An empty text lists accounts. */
  let browsing = null; // the text that is searched for in the place of what the field contains
  function openHits(query = listed.input.value) {
    guided = false;
    browsing = query === listed.input.value ? null : query;
    showHits();
    send({ do: "search", query });
  }
  function closeHits() {
    if (!listed) return;
    listed.list.hidden = true;
    listed.input.setAttribute("aria-expanded", "false");
    listed.input.removeAttribute("aria-activedescendant");
    [active, marked] = [-1, undefined];
    makeRoom();
    findings();
  }
  function pick(name) {
    search.stop();
    listed.input.value = name;
    put(listed.path, name);
    browsing = null;
    if (name.endsWith("::")) return send({ do: "search", query: name }); // a module: its functions follow
    closeHits();
    look();
  }
  /** Drop the hits that do not match what was typed since, so that none of an earlier text is picked. */
  function narrow(text) {
    const words = text.toLowerCase().split(/[\s:]+/);
    for (const one of [...listed.list.children])
      if (!words.every((word) => one.dataset.name?.toLowerCase().includes(word))) one.remove();
    active = -1;
    if (!listed.list.children.length) closeHits();
  }
  function showHits() {
    const { query, hits = [], error = "", total = 0 } = get("_hits") || {};
    if (!listed || guided || query !== (browsing ?? listed.input.value) || document.activeElement !== listed.input) return;
    active = hits.findIndex(([name]) => name === marked); // the same search may be answered twice
    const only = hits.length === 1 && hits[0][0] === query.trim();
    listed.list.replaceChildren(
      ...hits.map(([name, signature], n) => {
        const parts = name.split("::");
        const last = parts[2] ? 2 : parts[1] ? 1 : 0;
        const end = last < 2 && make("span", { text: "::" });
        const words = make("span", {}, ...parts.slice(0, last).map((one) => `${one}::`), make("b", { text: parts[last] }), end, " ", make("code", { text: signature }));
        const about = { role: "option", id: `${uid}-hit${n}`, "aria-selected": "false", "data-name": name };
        return make("li", { ...about, onmousedown: (event) => (event.preventDefault(), pick(name)) }, words);
      }),
    );
    if (!hits.length) listed.list.append(make("li", { class: "ltk-hint", text: error.replaceAll("`", "'") }));
    if (total > hits.length && hits.length > 1)
      listed.list.append(make("li", { class: "ltk-hint", role: "presentation", text: `${hits.length.toLocaleString("en")} of ${total.toLocaleString("en")} matches: type more to narrow them down` }));
    if (!query) listed.list.prepend(make("li", { class: "ltk-hint", role: "presentation", text: hits.some(([name]) => !name.endsWith("::")) ? RECENT : PLACES }));
    listed.list.hidden = only || (!query && !hits.length);
    listed.input.setAttribute("aria-expanded", String(!listed.list.hidden));
    mark([...listed.list.querySelectorAll("[role=option]")]);
    makeRoom();
    findings();
  }
  /** The form clips content beyond its end, so it grows while the hits are shown. */
  function makeRoom() {
    inside.style.minHeight = "";
    if (!listed || listed.list.hidden) return;
    const { bottom } = listed.list.getBoundingClientRect();
    inside.style.minHeight = `${Math.ceil(bottom - inside.getBoundingClientRect().top) + 8}px`;
  }

  let silent; // what is said while Python does not answer
  const send = sender(model, el, (now) => ((silent = now), say()));

  // what Python is asked -------------------------------------------------------------------------------------------------

  /** Messages overtake edits, which Jupyter sends one at a time, so messages that act on the draft include it. */
  const tell = (what, more = {}) => send({ do: what, draft: structuredClone(draft), ...more });
  const FUNCTION_KEYS = ["payload", "source", "function", "type_arguments"];
  const leading = form.look.length ? form.look : FUNCTION_KEYS; // entries that decide which other fields there are
  const target = () => JSON.stringify(leading.map((one) => draft[one]));
  function look() {
    const ready = form.look.length ? form.look.some((one) => draft[one]) : FUNCTION.test(draft.function || "");
    if (!ready || target() === looked) return;
    looked = target();
    lookedAt = draft.seq;
    tell("look");
  }
  const lookSoon = later(LOOK_MS, look);
  const looking = () => (get("_findings")?.looked ?? 0) < lookedAt;

  // Keys are for the fields that are about to arrive: on others they would be lost, or change a choice.
  const focusable = () => [...fields.querySelectorAll("input, select, textarea, summary, button:not([tabindex])")].filter((one) => one.getClientRects().length);
  function hold(event) {
    const { key: pressed, shiftKey: back, target: input } = event;
    const forward = pressed === "Tab" && !back;
    if (!held) {
      const field = forward && [...controls.values()].find((one) => one.input === input);
      if (!field || !leading.includes(field.path?.[0])) return;
      fillNamed(field);
      look();
      if (!looking()) return;
      held = [];
      if (listed?.input === input) closeHits();
    }
    const run = pressed === "Enter" && (event.ctrlKey || event.metaKey);
    const types = pressed.length === 1 && !event.ctrlKey && !event.metaKey;
    if (pressed === "Escape") letGo(true);
    else if (pressed === "Backspace") held.pop();
    else if (forward || run || types) held.push(run ? "Run" : pressed);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  /** Press the keys that were held, or drop them. */
  function letGo(dropped) {
    const keys = held || [];
    held = null;
    for (const pressed of dropped ? [] : keys) {
      const all = focusable();
      if (pressed === "Tab") all[all.indexOf(document.activeElement) + 1]?.focus();
      else if (pressed === "Run") actions[0].click();
      else document.execCommand("insertText", false, pressed);
    }
  }
  function ask(what, more = {}) {
    if (what === asked && get("busy")) return show("hint", RUNNING);
    [asked, begun, halfway] = [what, false, ""];
    search.stop();
    if (listed?.input === document.activeElement) guided = true; // a list would cover what the action says there
    closeHits();
    for (const control of controls.values()) fillNamed(control);
    lookSoon.stop();
    look();
    tell(what, more);
    if (silent) say();
  }

  // the page --------------------------------------------------------------------------------------------------------------

  const button = (text, run, kind = "") => make("button", { type: "button", text, class: kind, onclick: run });
  const actions = form.actions.map(([what, text], n) => button(text, () => ask(what), n ? "" : "ltk-primary"));
  actions[0].setAttribute("aria-keyshortcuts", "Control+Enter");
  const keys = make("span", { class: "ltk-hint ltk-keys", text: "Ctrl+Enter" });
  const status = make("div", { role: "status", class: "ltk-status" });
  const head = make("div", { class: "ltk-head" }, make("span", { class: "ltk-title", text: form.title }));
  const about = make("span", { class: "ltk-hint ltk-about" });
  head.append(about);
  const accounts = make("datalist", { id: `${uid}-accounts` }); // account names on the ledger, which fill in addresses
  const sayNode = () => {
    about.textContent = `Node: ${get("_about").node} \u00b7 nothing is signed or submitted`;
    accounts.replaceChildren(...get("_about").accounts.map(([value, label]) => make("option", { value, label })));
  };
  const stop = button("Cancel", () => (letGo(true), send({ do: "stop" })));
  stop.hidden = true;
  const meter = make("progress", { "aria-label": form.title, class: "ltk-meter" });
  const count = make("span", { class: "ltk-hint" });
  const bar = make("div", { class: "ltk-bar" }, actions[0], keys, ...actions.slice(1), stop, status, meter, count);
  const fields = make("div", { class: "ltk-form", role: "group", "aria-label": `${form.title}: entries` });
  fields.addEventListener("keydown", hold, true);
  fields.addEventListener("mousedown", () => letGo(true));
  const result = make("div", { role: "group", class: "ltk-result", "aria-label": "Result" });
  const origin = make("summary", { class: "ltk-origin" });
  const resultPages = make("div", {});
  const from = make("p", { class: "ltk-hint" }); // in place of `origin`, which says why the result is old
  const answer = make("details", { class: "ltk-answer", open: true }, origin, from, resultPages);
  const code = make("div", { role: "group", class: "ltk-code-pane", "aria-label": AS_CODE });
  const gone = goneNote(el, "this cell again to use the form");
  const right = make("div", { class: "ltk-right" }, result, code);
  const left = make("div", { class: "ltk-left" }, fields);
  el.classList.add("ltk", "mathjax_ignore");
  const inside = make("div", { class: "ltk-inside" }, head, accounts, bar, gone, make("div", { class: "ltk-panes" }, left, right));
  el.replaceChildren(hiddenPicture(get("_key")), inside);

  function redraw() {
    const focused = fields.contains(document.activeElement) ? document.activeElement : null;
    const place = focused && [focused.selectionStart, focused.selectionEnd];
    const before = focusable().map((one) => one.id);
    controls = new Map();
    listed = null;
    drawn = whole();
    fields.replaceChildren(draw(get("_spec"), [], [], "") || "");
    if (focused && focused.id && !focused.isConnected) {
      const left = (id) => id && el.querySelector(`#${CSS.escape(id)}`);
      const again = left(focused.id);
      // If the control is gone, its place is that of the next one that is still there.
      const next = again || before.slice(before.indexOf(focused.id)).map(left).find((one) => one) || focusable()[0];
      next?.focus({ preventScroll: true });
      if (again && place[0] !== null && place[0] !== undefined && again.setSelectionRange && again.type !== "checkbox")
        again.setSelectionRange(...place);
      if (listed && listed.input === again && again.value) showHits(); // for the text that is still being typed
    }
    findings();
  }

  function findings() {
    if (isRead()) {
      stays = false;
      unread.clear();
    }
    const { errors = {}, missing = {}, notes = {}, strict = false } = get("_findings") || {};
    const of = (path) => {
      const other = path === "raw" ? "arguments" : path;
      return errors[path] || errors[other] || ((strict || touched.has(path)) && (missing[path] || missing[other])) || "";
    };
    for (const [path, { input, message, wrap, offers }] of controls) {
      const typing = path === halfway && document.activeElement === input && ((listed && listed.input === input) || offers?.().length); // not a complete name yet
      const old = stays && unread.has(path); // what is said of the entry before
      const listing = listed && listed.input === input && !listed.list.hidden; // what to choose from is there
      const error = old || listing || (typing && !strict) ? "" : of(path);
      const text = (error || (!old && notes[path]) || "").replaceAll("`", "'");
      if (message.textContent !== text) message.textContent = text;
      message.classList.toggle("ltk-error", Boolean(error));
      wrap.classList.toggle("ltk-wrong", Boolean(error));
      wrap.classList.toggle("ltk-told", Boolean(text));
      if (error) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
      const fold = error && wrap.closest("details");
      if (fold) fold.open = true;
    }
    outdated();
    stale();
  }

  /** Tabs as the WAI-ARIA practices describe them: arrow keys change the page, and there is one tab stop. */
  function tabs(where, kind, pages, label, fill) {
    if (!pages.some(({ title }) => title === chosen[kind])) chosen[kind] = pages[0].title;
    const list = make("div", { role: "tablist", "aria-label": label, class: "ltk-tabs" });
    const panel = make("div", { role: "tabpanel", class: "ltk-panel", id: `${uid}-${kind}`, tabindex: "0" });
    const turn = (title, keep) => {
      chosen[kind] = title;
      [...list.children].forEach((tab) => {
        const on = tab.dataset.title === title;
        tab.setAttribute("aria-selected", String(on));
        tab.tabIndex = on ? 0 : -1;
        if (on) panel.setAttribute("aria-labelledby", tab.id);
        if (on && keep) tab.focus();
      });
      fill(panel, pages.find((one) => one.title === title));
    };
    pages.forEach(({ title, count, failed }, n) => {
      const bad = failed ? `, ${failed.toLocaleString("en")} failed` : "";
      const text = count === null || count === undefined ? title : `${title} (${count.toLocaleString("en")}${bad})`;
      const about = { type: "button", role: "tab", id: `${uid}-${kind}${n}`, "data-title": title, "aria-controls": `${uid}-${kind}` };
      list.append(make("button", { ...about, text, onclick: () => turn(title, true) }));
    });
    list.addEventListener("keydown", (event) => {
      const now = pages.findIndex(({ title }) => title === chosen[kind]);
      const step = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: pages.length - 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      turn(pages[(step + pages.length) % pages.length].title, true);
    });
    const onTab = where.contains(document.activeElement) && document.activeElement.getAttribute("role") === "tab";
    list.hidden = pages.length === 1;
    where.replaceChildren(list, panel);
    turn(chosen[kind], onTab);
  }

  function results() {
    const pages = get("_pages");
    result.hidden = !pages.length;
    const beside = form.code_below && pages.length ? left : right;
    if (code.parentNode !== beside) beside.append(code);
    if (!pages.length) return result.replaceChildren();
    if (!answer.isConnected) result.replaceChildren(answer);
    tabs(resultPages, "result", pages, "Result", (panel, { title, html }) => {
      panel.innerHTML = html;
      clip(panel);
      panel.onclick = (event) => {
        const { send: what, number = "-1" } = event.target.closest("[data-send]")?.dataset || {};
        if (what) tell(what, { number: Number(number) });
        const id = event.target.closest("code.ltk-id");
        if (id && !event.target.closest("summary")) copied(id.title);
      };
      filters(panel);
      if (form.late.includes(title) && completed !== get("_serial")) {
        completed = get("_serial");
        tell("page");
      }
    });
    stale();
  }
  /** A long list can be filtered by text and by kind of change. */
  let filter = {};
  function filters(panel) {
    const list = panel.querySelector("[data-list]");
    const items = list ? [...list.children] : [];
    if (items.length <= MAX_UNFILTERED) return;
    const texts = items.map((one) => `${one.textContent} ${[...one.querySelectorAll("[title]")].map((id) => id.title).join(" ")}`.toLowerCase());
    const kinds = [...new Set(items.map((one) => one.dataset.kind).filter((one) => one))];
    const words = make("input", { type: "search", id: `${uid}-filter`, class: "ltk-filter", value: filter.words, placeholder: "address, type, field or value" });
    const kind = make("select", { "aria-label": "Kind of change" }, make("option", { value: "", text: "all" }));
    for (const one of kinds) kind.append(make("option", { value: one, text: one }));
    kind.value = kinds.includes(filter.kind) ? filter.kind : "";
    const count = make("span", { class: "ltk-hint", role: "status" });
    const apply = () => {
      filter = { words: words.value, kind: kind.value };
      const wanted = words.value.toLowerCase().split(/\s+/).filter((one) => one);
      let shown = 0;
      items.forEach((one, n) => {
        one.hidden = (kind.value && one.dataset.kind !== kind.value) || !wanted.every((word) => texts[n].includes(word));
        shown += !one.hidden;
      });
      count.textContent = `${shown.toLocaleString("en")} of ${items.length.toLocaleString("en")}`;
    };
    words.addEventListener("input", apply);
    kind.addEventListener("change", apply);
    list.before(make("div", { class: "ltk-line" }, make("label", { for: words.id, text: "Filter" }), words, kinds.length > 1 && kind, count));
    apply();
  }
  /** Show the origin of the result. A result of other entries is dimmed and folded, at once if Python is busy. */
  let shownFor = "";
  function stale() {
    const why = stays ? "From before your last change" : get("_stale");
    const words = `From ${get("_origin")}`;
    if (origin.textContent !== (why || words)) origin.textContent = why || words;
    [from.hidden, from.textContent] = [!why, words];
    result.classList.toggle("ltk-old", Boolean(why));
    const now = `${get("_serial")} ${Boolean(why) && (stays || !get("busy"))}`;
    if (now !== shownFor) answer.open = now.endsWith("false");
    shownFor = now;
  }
  const isRead = () => draft.seq <= ((get("_findings") || {}).seq ?? 0);
  const readSoon = later(READ_MS, () => {
    stays = !isRead();
    if (stays) tell("draft"); // overtakes the edit, and is answered
    findings();
    say();
  });

  function programs() {
    const listed = get("_programs").map(([title, text]) => ({ title, text }));
    if (!listed.length) {
      code.replaceChildren(make("p", { class: "ltk-code-note ltk-hint" }));
      return outdated();
    }
    const note = make("p", { class: "ltk-code-note ltk-stale" });
    tabs(code, "code", listed, AS_CODE, (panel, { title, text }) => {
      if (text.reason) return panel.replaceChildren(make("p", { class: "ltk-hint", text: text.reason }));
      const said = make("span", { role: "status", class: "ltk-hint" });
      const forget = later(SAID_MS, () => (said.textContent = ""));
      const copy = button(`Copy ${title}`, async () => {
        const done = await copied(text);
        said.textContent = done ? "Copied." : "The browser does not allow copying: select and copy the text yourself.";
        if (done) forget();
      });
      panel.replaceChildren(make("pre", { class: "ltk-code", tabindex: "0", role: "group", "aria-label": `${AS_CODE}: ${title}`, text }), copy, said);
      clip(panel);
      outdated();
    });
    code.prepend(note);
    outdated();
  }
  /** Code that is out of date is marked, and cannot be copied or saved. */
  function outdated() {
    const why = (get("_findings") || {}).code_note || "";
    const old = stays || Boolean(why);
    const note = code.querySelector(".ltk-code-note");
    code.classList.toggle("ltk-old", old && Boolean(get("_programs").length));
    code.hidden = !get("_programs").length && !why;
    if (note) [note.hidden, note.textContent] = [!why, get("_programs").length || get("_pages").length ? why : form.purpose];
    for (const one of code.querySelectorAll(".ltk-panel button")) one.disabled = old;
  }
  /** Show the first lines of long code, and the rest on request: panes do not scroll inside the page. */
  function clip(panel) {
    for (const pre of panel.querySelectorAll("pre.ltk-code")) {
      const lines = pre.textContent.split("\n").length;
      if (lines <= MAX_LINES) continue;
      pre.classList.add("ltk-clipped");
      const more = button(`Show all ${lines.toLocaleString("en")} lines`, () => (pre.classList.remove("ltk-clipped"), more.remove()), "ltk-small");
      pre.after(more);
    }
  }
  async function copied(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = make("textarea", { class: "ltk-unseen" });
      area.value = text;
      el.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  function answered() {
    const busy = get("busy");
    el.classList.toggle("ltk-busy", busy);
    if (busy) {
      waitSoon();
      if (!clock) [since, clock] = [Date.now(), setInterval(progress, 1000)];
      return;
    }
    clearInterval(clock);
    clock = 0;
    progress();
    waitSoon.stop();
    if (stop === document.activeElement) actions[0]?.focus();
    stop.hidden = true;
    if (status.textContent === WAITS) say();
    if (!asked || !begun) return;
    const wrong = el.querySelector("[aria-invalid=true]");
    if (form.actions.some(([what]) => what === asked) && get("_pages").length && !get("_stale")) {
      const { top } = origin.getBoundingClientRect();
      if (top < 0 || top > 0.6 * window.innerHeight) origin.scrollIntoView({ block: "start" });
    } else if (wrong) {
      const inside = wrong.matches("fieldset") ? wrong.querySelector("input, select, textarea, button") || wrong : wrong;
      guided = listed?.input === inside;
      inside.focus();
    }
    asked = "";
  }
  let [since, clock] = [0, 0];
  const waitSoon = later(WAIT_MS, () => {
    if (!get("busy")) return;
    stop.hidden = false;
    if (!status.textContent) status.textContent = WAITS;
  });
  function progress() {
    const { done = 0, total = 0, text = "" } = get("_progress") || {};
    const seconds = clock ? Math.floor((Date.now() - since) / 1000) : 0;
    const words = [text, seconds > 0 && `${seconds} s`].filter((one) => one).join(", ");
    meter.hidden = !text;
    count.hidden = !words;
    count.textContent = words;
    if (total) Object.assign(meter, { max: total, value: Math.min(done, total) });
    else meter.removeAttribute("value");
  }
  function say() {
    const said = stays && !get("busy") ? {} : get("_status") || {};
    const finished = !asked && !stays && !get("busy") && get("_pages").length;
    const { kind = "hint", text = "" } = silent?.kind === "hint" && finished ? { text: PICTURE } : silent || said;
    show(kind, text);
  }
  function show(kind, text) {
    status.className = `ltk-status ltk-${kind}`;
    if (status.textContent !== text) status.textContent = text;
  }

  // one update for all traits that one message changes -----------------------------------------------------------------

  const changed = new Set();
  function update() {
    const has = (name) => changed.has(name);
    if (has("_draft") && get("_draft").seq >= draft.seq) {
      const { chosen: call, of } = get("_draft");
      const gone = call !== draft.chosen ? /./ : of !== draft.of ? /^(type_)?arguments|^raw/ : /$^/; // of another call or function
      for (const seen of [edited, touched]) for (const path of [...seen]) if (gone.test(path)) seen.delete(path);
      draft = structuredClone(get("_draft"));
      if (has("_spec") || whole() !== drawn) redraw();
      else for (const [path, { input, unset }] of controls) setValue(input, at(path.split(".")) ?? unset);
      lookSoon();
    } else if (has("_spec")) redraw();
    if (has("_findings")) findings();
    const why = has("_status") && get("_status").kind === "bad" && chosen.result; // the first page says it
    if (why) chosen.result = "";
    if (has("_pages") || why) results();
    if (has("_stale") || has("_origin") || has("_serial") || has("busy")) stale();
    if (has("_serial")) {
      // marimo runs the cells that use a form again once the browser sends a value. Jupyter sends nothing: it is the same.
      model.set("_serial", get("_serial"));
      model.save_changes();
    }
    if (has("_programs")) programs();
    if (has("_hits")) showHits();
    if (has("_progress")) progress();
    if (has("_status") || has("_findings")) say();
    if (has("_about")) {
      sayNode();
      looked = "";
      lookSoon();
    }
    if (has("busy") || has("_status")) answered();
    if (held && !looking()) letGo();
    changed.clear();
  }
  const listeners = ["_about", "_spec", "_draft", "_findings", "_status", "_pages", "_stale", "_origin", "_serial", "_programs", "_hits", "_progress", "busy"].map((name) => {
    const note = () => {
      if (name === "busy" && get("busy")) begun = true;
      if (!changed.size) queueMicrotask(update);
      changed.add(name);
    };
    model.on(`change:${name}`, note);
    return [name, note];
  });
  const away = () => (letGo(true), gone.show());
  model.on("comm_live_update", away);

  const letKeysGo = keepKeys(el, () => actions[0]?.click());

  sayNode();
  redraw();
  results();
  programs();
  progress();
  say();
  answered();
  look();
  return () => {
    listeners.forEach(([name, note]) => model.off(`change:${name}`, note));
    model.off("comm_live_update", away);
    letKeysGo();
    send.stop();
    lookSoon.stop();
    readSoon.stop();
    clearInterval(clock);
    search.stop();
    waitSoon.stop();
  };
}

export default { render };
