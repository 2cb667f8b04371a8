// Code shared by the front ends of the builders and the workbench; it comes before their own code.

/** Return an element; `on*` are listeners, `text` is its text, other properties are attributes. */
function make(tag, about = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "text") made.textContent = value;
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...inside.filter((one) => one));
  return made;
}

// Hide single keys and Ctrl+Enter, which runs `enter`, from a notebook, which handles keys wherever they are pressed: x
// would cut the cell together with the form. Other keys with Ctrl or Meta pass. Returns a function that removes the
// listeners.
function keepKeys(el, enter) {
  const command = (event) => event.ctrlKey || event.metaKey;
  const ours = (event) => !command(event) || event.key === "Enter";
  // Notebook 7 handles keys before they reach the form, except on elements with this attribute.
  const before = (event) => {
    if (el.contains(event.target)) event.target.toggleAttribute("data-lm-suppress-shortcuts", ours(event));
  };
  const here = (event) => {
    if (!ours(event)) return;
    event.stopPropagation();
    if (!command(event)) return;
    event.preventDefault();
    if (!event.repeat) enter();
  };
  window.addEventListener("keydown", before, true);
  el.addEventListener("keydown", here);
  return () => {
    window.removeEventListener("keydown", before, true);
    el.removeEventListener("keydown", here);
  };
}

const SILENT_MS = 5000;
let sent = 0;

/**
 * Return a function that sends a message to Python. `silent` is called with what is said while none has been handled
 * for 5 s, and with nothing afterwards.
 */
function sender(model, el, silent) {
  let last = "";
  let timer = 0;
  let mute = false;
  let answered = false; // on this page
  const tell = (now) => now !== mute && silent((mute = now) && noAnswer(el, answered));
  const wait = () => (timer ||= setTimeout(() => tell(true), SILENT_MS));
  const heard = () => {
    clearTimeout(timer);
    timer = 0;
    answered = true;
    tell(false);
    if (model.get("_heard") === last) last = ""; // what is heard next may be of another view of this widget
    if (last) wait();
  };
  model.on("change:_heard", heard);
  const send = (content) => {
    last = `${++sent}-${Math.random()}`; // also of other pages that show the widget
    wait(); // first: a page that has lost its server may not send at all
    model.send({ ...content, id: last });
  };
  send.stop = () => (clearTimeout(timer), model.off("change:_heard", heard));
  return send;
}

/** Return what is said of a Python that does not answer, or that has not answered yet. */
function noAnswer(el, answered) {
  if (!answered) return { kind: "hint", text: "No answer from Python yet: it is busy, or this is a saved page, where buttons have no effect." };
  const again = el.closest("[data-voila]") ? "what you type here is lost: start the app again and open the address that it prints" : "run this cell again";
  return { kind: "error", text: `No answer from Python: it is busy, or has ended. If it has ended, ${again}.` };
}

/** Return a style that hides the picture of a widget, which notebooks store beside it. */
function hiddenPicture(key) {
  const picture = `[data-ltk-of="${key}"]`;
  return make("style", { text: key && `${picture}, .jp-OutputArea-child:has(${picture}) { display: none; }` });
}

/** Return the note that a widget shows once its kernel is gone. Voila runs the cells of a page when it is loaded. */
function goneNote(el, run) {
  const gone = make("p", { class: "ltk-gone", hidden: true, role: "alert" });
  gone.show = () => {
    gone.textContent = el.closest("[data-voila]") ? "The kernel has ended: reload this page to continue." : `The kernel was restarted: run ${run}.`;
    gone.hidden = false;
  };
  return gone;
}
