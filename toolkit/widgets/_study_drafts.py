"""The form of a gas study: its fields, and its draft read into a study and written from one.

A draft is one JSON object. The call that is chosen has its fields at the top, the list ``calls`` has all of them. What
is not edited keeps the value that the form was filled with, so that every study comes out as it went in.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from toolkit.client._versions import FindSteps, VersionPlan
from toolkit.errors import InputError
from toolkit.gas._calls import Call
from toolkit.gas._study import Study
from toolkit.gas._study_file import VersionChoice
from toolkit.move import FunctionId, UInt, parse_address, parse_type_tag
from toolkit.move._ids import wire_address
from toolkit.move._type_tags import wire_type
from toolkit.widgets import _fields
from toolkit.widgets._fields import Findings, group, select, text
from toolkit.widgets._functions import arguments_text, function_fields, parse_arguments, read_types
from toolkit.widgets._results import connect_line, format_expression
from toolkit.wire import ViewFunction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.client._node import Node
    from toolkit.widgets._functions import FunctionKind, ResolvedCall, ResolvedFunction


Draft = dict[str, Any]

SOURCES = {
    "view": "View function, at each version",
    "committed": "Committed transactions of an entry function",
    "resimulate": "Committed transactions, to be simulated again",
    "simulate": "Simulation of an entry function, at the head",
}
_COMMITTED = ["committed", "resimulate"]
_CALLED = ["view", "simulate"]
_OUTCOMES = {"any": "successful or not", "true": "successful ones", "false": "failed ones"}
_PLANS = {
    "search": "Find every step (as few as needed)",
    "even": "Evenly spaced versions",
    "every": "Every version, or every n-th",
    "dates": "Between two dates",
    "list": "Listed versions",
}
BLANK_CALL: Draft = {
    "label": "",
    "source": "view",
    "function": "",
    "type_arguments": [],
    "arguments": [],
    "raw": "",
    "lead": "raw",
    "sender": "",
    "fee_payer": "",
    "gas_unit_price": "100",
    "max_gas_amount": "",
    "range": "",
    "outcome": "any",
    "kept": {},
    "wrong": "",
}
"""The draft of one call. ``kept`` has what the form does not show; ``wrong`` is why it is not complete."""
_VERSIONS: Draft = {
    "plan": "search",
    "first": "0",
    "last": "-1",
    "count": "200",
    "step": "1",
    "since": "",
    "until": "",
    "listed": "",
    "initial": "33",
    "max_requests": "2000",
}
BLANK: Draft = {"seq": 0, "title": "", "chosen": 0, "calls": [BLANK_CALL]} | _VERSIONS | BLANK_CALL
"""The draft of a form that nobody has touched."""
SAMPLE = "0:-1/200"
"""Versions of committed transactions that nobody has chosen: as many pages, evenly spaced."""
_DEFAULT_TITLE = str(Study.model_fields["title"].default)
_ANY = "any"
_NUMBER = re.compile(r"-?\d{1,20}")
_KEY = re.compile(r"`(\w+)(?:\.(\d+))?`(?:: |, )")
_PATHS = {"versions": "range", "success": "outcome"} | dict.fromkeys((*SOURCES,), "function")
_OF_A_CALL = re.compile(r"call (\d+)")
_NOT_COMPARED = frozenset({"arguments", "lead", "wrong"})


# fields --------------------------------------------------------------------------------------------------------------


def form_fields(draft: Draft, function: ResolvedFunction | None, call: ResolvedCall | None, hidden: str = "") -> Draft:
    """Return what the browser draws.

    Parameters
    ----------
    draft : dict
    function : ResolvedFunction or None
        The function of the chosen call, if its ABI is known.
    call : ResolvedCall or None
        The same with its type arguments, if these are good.
    hidden : str, optional
        What the study has and the form does not show, in words.
    """
    title = text("Title", placeholder=_DEFAULT_TITLE)
    parts: list[tuple[str | int, Draft]] = [
        ("", _version_fields()),
        ("chosen", {"kind": "picks", "label": "Calls"}),
        ("", group(f"Call {draft['chosen'] + 1}", [("", _call_fields(draft, function, call))])),
        ("title", title),
    ]
    return group("", [*parts, ("", group(hidden, [], plain=True))] if hidden else parts)


def _call_fields(draft: Draft, function: ResolvedFunction | None, call: ResolvedCall | None) -> Draft:
    simulated, committed = {"when": ["source", ["simulate"]]}, {"when": ["source", _COMMITTED]}
    mono: Draft = {"mono": True, "placeholder": "0xa11ce"}
    sender = text("Sender", hint="an address; no key is needed", **mono)
    more: list[tuple[str | int, Draft]] = [
        ("fee_payer", text("Fee payer", hint="may be empty; 0x0 charges nobody", **mono)),
        ("gas_unit_price", text("Gas unit price", mono=True, hint="octas per gas unit")),
        (
            "max_gas_amount",
            text("Max gas amount", mono=True, hint="gas units; may be empty: what the sender can afford"),
        ),
    ]
    filters: list[tuple[str | int, Draft]] = [
        ("sender", text("Sent by", hint="may be empty: all accounts", **mono)),
        ("outcome", select("Which ones", _OUTCOMES)),
        ("range", text("In the versions", mono=True, hint=f"may be empty: those of the study; {SAMPLE} is a sample")),
    ]
    view = draft["source"] == "view"
    about = function_fields(
        function,
        call,
        placeholder="0x1::coin::supply" if view else "0x1::aptos_account::transfer",
        unknown_when=["source", _CALLED],
    )
    return group(
        "",
        [
            ("source", select("Reads", SOURCES)),
            *about,
            ("sender", sender | simulated),
            ("", group("Fee and gas", more, fold=True, **simulated)),
            ("", group("Only some transactions", filters, fold=True, **committed)),
            ("label", text("Label", hint="may be empty: the name of the function")),
        ],
    )


def function_kind(draft: Draft) -> FunctionKind:
    """Return which functions the chosen call can have."""
    return "view" if draft["source"] == "view" else "entry"


def _version_fields() -> Draft:
    def when(*plans: str) -> Draft:
        return {"when": ["plan", list(plans)], "mono": True}

    ends = ("search", "even", "every")
    date = "UTC, such as 2026-05-01 or 2026-05-01T12:00"
    fields: list[tuple[str | int, Draft]] = [
        ("first", text("First version", hint="negative: from the head", **when(*ends))),
        ("last", text("Last version", hint="-1 is the head", **when(*ends))),
        ("since", text("From", placeholder="2026-05-01", hint=date, **when("dates"))),
        ("until", text("To", placeholder="2026-06-01", hint="likewise", **when("dates"))),
        ("count", text("Number of versions", **when("even", "dates"))),
        ("step", text("Step", hint="1 reads every version", **when("every"))),
        ("initial", text("First grid", hint="versions that are read first", **when("search"))),
        ("max_requests", text("Requests at most", hint="for each call", **when("search"))),
    ]
    listed = text("Versions, one by one", rows=2, hint="separated by commas or spaces", **when("list"))
    plan = select("Read at", _PLANS)
    return group("Versions", [("plan", plan), ("", group("", fields, columns=True)), ("listed", listed)])


def hidden_parts(study: Study | None) -> str:
    """Return what a study has and the form does not show, as a sentence; empty if there is nothing."""
    if study is None:
        return ""
    names = {"thresholds": "thresholds", "allow": "what never fails a comparison", "requests_per_second": "the pace"}
    found = [words for name, words in names.items() if getattr(study, name) is not None]
    found += [f"{len(study.waivers)} waiver{'s' * (len(study.waivers) > 1)}"] if study.waivers else []
    own = sum(call.thresholds is not None for call in study.calls)
    found += [f"the thresholds of {own} call{'s' * (own > 1)}"] if own else []
    return f"Not shown here, and part of the study: {', '.join(found)}." if found else ""


# the calls of a draft ------------------------------------------------------------------------------------------------


def call_of(draft: Mapping[str, Any]) -> Draft:
    """Return the draft of the chosen call."""
    return {name: draft[name] for name in BLANK_CALL}


def with_calls(draft: Draft, calls: Sequence[Draft], chosen: int) -> Draft:
    """Return the draft with other calls, one of which is chosen; without calls it has a blank one."""
    listed = list(calls) or [dict(BLANK_CALL)]
    place = min(max(chosen, 0), len(listed) - 1)
    return draft | {"calls": listed, "chosen": place} | listed[place]


def choose(draft: Draft, before: Draft) -> Draft:
    """Bring the list of calls in step with the fields of the chosen one, or show another that was chosen.

    Parameters
    ----------
    draft : dict
        As it came from the browser.
    before : dict
        The draft of before.
    """
    calls, chosen = list(draft["calls"]), draft["chosen"]
    place = before["chosen"] if len(before["calls"]) == len(calls) else chosen
    if not (isinstance(chosen, int) and 0 <= chosen < len(calls)):
        chosen = place
    if 0 <= place < len(calls):
        calls[place] = call_of(draft)
    return with_calls(draft, calls, chosen)


def is_whole_ledger(draft: Mapping[str, Any]) -> bool:
    """Return whether a draft has the versions that nobody has chosen: all of the ledger."""
    return all(draft[name] == value for name, value in _VERSIONS.items())


def may_be_long(study: Study) -> bool:
    """Return whether the number of requests of a run depends on the length of the ledger."""
    whole = any(call.reads_committed and "/" not in (call.versions or "") for call in study.calls)
    return whole or (study.versions.search is None and isinstance(study.versions.plan, str))


def takes_arguments(draft: Mapping[str, Any]) -> bool:
    """Return whether the chosen call has arguments; committed transactions have theirs."""
    return draft["source"] in _CALLED


# studies -------------------------------------------------------------------------------------------------------------


class Given:
    """The study that a form was filled with: what is not edited stays as it is there."""

    def __init__(self, study: Study | None = None) -> None:
        self.study = study
        self._calls = {_compared(write_call(call)): call for call in (study.calls if study is not None else ())}
        self._versions = None if study is None else _write_versions(study.versions)

    def call(self, draft: Draft) -> Call | None:
        """Return the call that was written as this draft."""
        return self._calls.get(_compared(draft))

    def title(self, draft: Draft) -> str:
        """Return the title that was written as that of this draft; empty if there is none."""
        return self.study.title if self.study is not None and _write_title(self.study) == draft["title"] else ""

    def versions(self, draft: Draft) -> VersionChoice | None:
        """Return the versions that were written as those of this draft."""
        if self.study is None or self._versions != {name: draft[name] for name in _VERSIONS}:
            return None
        return self.study.versions


def _compared(call: Draft) -> str:
    types = [name for name in call["type_arguments"] if name.strip()]
    shown = {name: value for name, value in call.items() if name in BLANK_CALL and name not in _NOT_COMPARED}
    return json.dumps(shown | {"type_arguments": types}, sort_keys=True)


def write_study(study: Study | None) -> Draft:
    """Return the draft of a study; that of None is blank."""
    if study is None:
        return dict(BLANK)
    draft = BLANK | _write_versions(study.versions) | {"title": _write_title(study)}
    return with_calls(draft, [write_call(call) for call in study.calls], 0)


def _write_title(study: Study) -> str:
    return "" if study.title == _DEFAULT_TITLE else study.title


def write_call(call: Call) -> Draft:
    """Return the draft of a call."""
    source = next(name for name in SOURCES if getattr(call, name) is not None)
    kept = {} if call.thresholds is None else {"thresholds": call.thresholds.model_dump(mode="json", exclude_none=True)}
    written = {
        "label": call.label,
        "source": source,
        "function": FunctionId.parse(call.function).wire,
        "type_arguments": [wire_type(parse_type_tag(name)) for name in call.type_arguments],
        "raw": arguments_text(call.arguments),
        "sender": _address_text(call.sender),
        "fee_payer": _address_text(call.fee_payer),
        "gas_unit_price": str(call.gas_unit_price),
        "max_gas_amount": "" if call.max_gas_amount is None else str(call.max_gas_amount),
        "range": call.versions or "",
        "outcome": _ANY if call.success is None else str(call.success).lower(),
        "kept": kept,
    }
    return BLANK_CALL | written


def _address_text(address: str | None) -> str:
    return "" if address is None else wire_address(parse_address(address))


def _write_versions(versions: VersionChoice) -> Draft:
    draft = dict(_VERSIONS)
    if isinstance(versions.plan, list):
        return draft | {"plan": "list", "listed": ", ".join(map(str, versions.plan))}
    plan = VersionPlan.parse(versions.plan or versions.find_steps or "0:-1")
    if versions.search is not None:
        draft |= {"initial": str(versions.initial), "max_requests": str(versions.max_requests)}
    elif plan.count is not None:
        draft |= {"plan": "even", "count": str(plan.count)}
    else:
        draft |= {"plan": "every", "step": str(plan.step)}
    if not isinstance(plan.first, int) or not isinstance(plan.last, int):
        parts = re.split(r"\.\.|/", str(versions.plan or versions.find_steps))
        since, until = (part.strip() for part in parts[:2])
        count = "" if plan.count is None else str(plan.count)
        return draft | {"plan": "dates", "since": since, "until": until, "count": count}
    return draft | {"first": str(plan.first), "last": str(plan.last)}


def read_study(draft: Draft, calls: Sequence[Call | None], given: Given, node: Node, found: Findings) -> Study | None:
    """Return the study of a draft.

    Parameters
    ----------
    draft : dict
    calls : sequence of Call or None
        One per call of the draft, as `read_call` returns them.
    given : Given
        What the form was filled with.
    node : Node
        Where the study reads.
    found : Findings
        Receives a sentence for each field that does not fit or is missing.
    """
    for place, (call, one) in enumerate(zip(calls, draft["calls"], strict=True)):
        if call is None and place != draft["chosen"]:
            found.errors.setdefault("chosen", f"call {place + 1} is not complete: {one['wrong'] or 'choose it'}")
    versions = given.versions(draft) or _read_versions(draft, found)
    if versions is None or not found.good or None in calls:
        return None
    rest: Draft = {}
    if given.study is not None:
        rest = {name: getattr(given.study, name) for name in ("thresholds", "allow", "waivers", "requests_per_second")}
    title = given.title(draft) or draft["title"].strip() or _DEFAULT_TITLE
    try:
        return Study(calls=list(calls), versions=versions, node=node, title=title, **rest)
    except InputError as error:
        words = str(error)
        places = [int(number) - 1 for number in _OF_A_CALL.findall(words)]
        found.errors["label" if draft["chosen"] in places else "chosen"] = words
        return None


def read_call(draft: Draft, given: Given, found: Findings) -> Call | None:
    """Return the call of a draft; `found` receives a sentence for each field that does not fit or is missing."""
    if not draft["function"].strip():
        found.missing["function"] = "expected a function, such as 0x1::coin::supply"
        return None
    source = draft["source"]
    types, arguments = _read_types(draft, found), parse_arguments(draft["raw"] if source in _CALLED else "", found)
    fields = {"label": draft["label"].strip(), source: draft["function"].strip()} | _read_more(draft, found)
    if types is None or arguments is None or not found.good:
        return None
    if (call := given.call(draft)) is not None:
        return call
    fields |= {"type_arguments": types, "arguments": [_without_null(value) for value in arguments]} | draft["kept"]
    try:
        return Call.model_validate({name: value for name, value in fields.items() if value not in (None, (), [])})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        words = first["msg"].removeprefix("Value error, ")
        key, place = next(map(str, first["loc"]), "function"), None
        if match := _KEY.match(words):
            key, place, words = match[1], match[2], words[match.end() :]
        path = _PATHS.get(key, key)
        found.errors[path if place is None else f"{path}.{int(place) - 1}"] = words
        return None


def _read_types(draft: Draft, found: Findings) -> tuple[str, ...] | None:
    """Return the type arguments; committed transactions need none, as they are a filter."""
    drafts = draft["type_arguments"]
    if draft["source"] in _COMMITTED and not any(typed.strip() for typed in drafts):
        return ()
    return read_types(drafts, found)


def _read_more(draft: Draft, found: Findings) -> Draft:
    """Return the keys of a simulation, or the filters of committed transactions."""
    if draft["source"] == "view":
        return {}
    sender = draft["sender"].strip() or None
    if draft["source"] != "simulate":
        success = None if draft["outcome"] == _ANY else draft["outcome"] == "true"
        return {"sender": sender, "success": success, "versions": draft["range"].strip() or None}
    if sender is None:
        found.missing["sender"] = "expected an address, such as 0xa11ce; no key is needed"
    price = _fields.read_leaf(UInt(64), draft["gas_unit_price"], "gas_unit_price", found)
    most = None
    if draft["max_gas_amount"].strip():
        most = _fields.read_leaf(UInt(64), draft["max_gas_amount"], "max_gas_amount", found)
    payer = draft["fee_payer"].strip() or None
    return {"sender": sender, "fee_payer": payer, "gas_unit_price": price, "max_gas_amount": most}


def _without_null(value: Any) -> Any:
    """Return an argument with the form of an Option without a value that a study file can have."""
    if value is None:
        return {"vec": []}
    if isinstance(value, dict):
        return {name: _without_null(one) for name, one in value.items()}
    return [_without_null(one) for one in value] if isinstance(value, list | tuple) else value


def _read_versions(draft: Draft, found: Findings) -> VersionChoice | None:
    match draft["plan"]:
        case "list":
            return _read_list(draft["listed"], found)
        case "dates":
            return _read_dates(draft, found)
        case plan:
            return _read_range(draft, plan, found)


def _read_range(draft: Draft, plan: str, found: Findings) -> VersionChoice | None:
    """Return the versions of a search, of evenly spaced versions, or of every n-th."""
    first, last = (_read_number(draft, name, found) for name in ("first", "last"))
    names = {"search": ("initial", "max_requests"), "even": ("count",)}.get(plan, ("step",))
    numbers = [_read_count(draft, name, found) for name in names]
    if first is None or last is None or None in numbers:
        return None
    if (first < 0) == (last < 0) and last < first:
        found.errors["last"] = f"the versions run from {first} down to {last}; the older version comes first"
        return None
    ends, number = f"{first}:{last}", numbers[0]
    if plan == "search":
        return _versions(FindSteps, ends, "initial", found, initial=number, max_requests=numbers[1])
    more = f"/{number}" if plan == "even" else f":{number}" if number != 1 else ""
    return _versions(str, ends + more, names[0], found)


def _versions(make: Any, ends: str, path: str, found: Findings, **more: Any) -> VersionChoice | None:
    try:
        return VersionChoice.of(make(ends, **more))
    except (InputError, ValidationError) as error:
        found.errors[path] = _words(error)
        return None


def _words(error: Exception) -> str:
    text = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return text.removeprefix("Value error, ").removeprefix("FindSteps: ")


def _read_dates(draft: Draft, found: Findings) -> VersionChoice | None:
    since, until = draft["since"].strip(), draft["until"].strip()
    for name, typed in (("since", since), ("until", until)):
        if not typed:
            found.missing[name] = "expected a date, such as 2026-05-01"
        else:
            _versions(str, f"{typed}..{typed}", name, found)
    number = _read_count(draft, "count", found) if draft["count"].strip() else None
    if not found.good:
        return None
    return _versions(str, f"{since}..{until}" + (f"/{number}" if number else ""), "until", found)


def _read_list(typed: str, found: Findings) -> VersionChoice | None:
    words = typed.replace(",", " ").split()
    wrong = next((word for word in words if not _NUMBER.fullmatch(word)), None)
    if wrong is not None:
        found.errors["listed"] = f"expected whole numbers, such as 100, 200, 300, got {wrong[:40]!r}"
    elif not words:
        found.missing["listed"] = "expected versions, such as 100, 200, 300"
    else:
        return _versions(list, [int(word) for word in words], "listed", found)  # type: ignore[arg-type]
    return None


def _read_number(draft: Draft, path: str, found: Findings) -> int | None:
    typed = draft[path].strip().replace("_", "").replace(",", "")
    if _NUMBER.fullmatch(typed):
        return int(typed)
    if typed:
        found.errors[path] = f"expected a ledger version, such as 1000, or -1 for the head, got {typed[:40]!r}"
    else:
        found.missing[path] = "expected a ledger version; -1 is the head"
    return None


def _read_count(draft: Draft, path: str, found: Findings) -> int | None:
    typed = draft[path].strip().replace("_", "").replace(",", "")
    if typed.isdecimal() and len(typed) < 20 and int(typed) > 0:  # noqa: PLR2004 - digits of a u64
        return int(typed)
    found.errors[path] = f"expected a whole number from 1, got {typed[:40]!r}"
    return None


# programs ------------------------------------------------------------------------------------------------------------


def study_as_python(study: Study, node: Node) -> str:
    """Return a Python program that makes an equal study, runs it and prints what was found.

    Parameters
    ----------
    study : Study
    node : Node
        The program names its URL without credentials.
    """
    document = study.document()
    search = study.versions.search
    versions = repr(study.versions.plan)
    if search is not None:
        versions = f"toolkit.{search!r}"
    calls = ", ".join(_call_as_python(call) for call in study.calls)
    fields = [f"title={study.title!r}"] if study.title != _DEFAULT_TITLE else []
    fields += ["node=node", f"versions={versions}", f"calls=[{calls}]"]
    fields += [
        f"{name}={document[key]!r}"
        for name, key in (
            ("thresholds", "thresholds"),
            ("allow", "allow"),
            ("waivers", "waiver"),
            ("requests_per_second", "requests_per_second"),
        )
        if key in document
    ]
    made = format_expression(f"toolkit.Study({', '.join(fields)})")
    return f"import toolkit\n\n{connect_line(node)}\nstudy = {made}\nrun = study.run()\nprint(run.explain())"


def _call_as_python(call: Call) -> str:
    if isinstance(call.request, ViewFunction) and not call.label and call.thresholds is None:
        return call.request.to_python().replace(repr(call.request.function), repr(FunctionId.parse(call.function).wire))
    return repr(call.model_dump(mode="json", exclude_defaults=True, exclude_none=True))
