"""What is typed about a gas study: its parts, and the one mapping between the texts and a `Study`.

The call that is chosen has its fields at the top, the list ``calls`` has all of them. What is not edited keeps the
value that the form was filled with, so that every study comes out as it went in.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from toolkit._present.text import plural
from toolkit.errors import InputError
from toolkit.gas._calls import Call
from toolkit.gas._study import Study
from toolkit.gas._study_file import VersionChoice
from toolkit.move import parse_address
from toolkit.move._ids import wire_address
from toolkit.widgets import _fields
from toolkit.widgets._fields import U64, Findings, validated
from toolkit.widgets._functions import FunctionDraft, function_fields, parse_arguments, read_types, write_call
from toolkit.widgets._messages import Group, Part, Picks, Step, Text, group, mono, select
from toolkit.widgets._programs import connect_line, format_expression
from toolkit.widgets._readings import parse_plan, plan_words
from toolkit.wire import SimulationRequest, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client._node import Node
    from toolkit.widgets._functions import FunctionKind, ResolvedCall, ResolvedFunction


Reads = Literal["view", "committed", "simulate"]  # the keys of a study file that name a function
_READS_LABELS: dict[Reads, str] = {
    "view": "View function, at each version",
    "committed": "Committed transactions of an entry function",
    "simulate": "Simulation of an entry function, at the head",
}
_CALLED: tuple[Reads, ...] = ("view", "simulate")
Outcome = Literal["any", "true", "false"]
_OUTCOME_OF: dict[bool | None, Outcome] = {None: "any", True: "true", False: "false"}
_OUTCOME_LABELS = {"any": "successful or not", "true": "successful ones", "false": "failed ones"}
_PLANS = {"search": "Find every step (as few as needed)", "these": "These versions"}
SAMPLE = "0:-1/200"  # versions of committed transactions that nobody has chosen: as many pages, evenly spaced
_DEFAULT_TITLE = str(Study.model_fields["title"].default)
_KEY = re.compile(r"`(\w+)(?:\.(\d+))?`(?:: |, )")
_OF_A_CALL = re.compile(r"call (\d+)")
_FILTERS = {"sender": "sender", "range": "versions", "outcome": "success"}
_FEES = ("sender", "fee_payer", "gas_unit_price", "max_gas_amount")
# fields of a call by the key of their text; all but those of `_FEES` and `_FILTERS` are in every call
_PATHS = {name: key for key, name in _FILTERS.items()} | dict.fromkeys(_READS_LABELS, "function")


class CallDraft(FunctionDraft, frozen=True):
    """What is typed about one call. ``kept`` has what the form does not show; ``wrong`` is why it is not complete."""

    label: str = ""
    source: Reads = "view"
    sender: str = ""
    fee_payer: str = ""
    gas_unit_price: str = "100"
    max_gas_amount: str = ""
    range: str = ""
    outcome: Outcome = "any"
    kept: dict[str, Any] = msgspec.field(default_factory=dict)
    wrong: str = ""

    @property
    def takes_arguments(self) -> bool:
        """Whether the call has arguments; committed transactions have theirs."""
        return self.source in _CALLED

    @property
    def function_kind(self) -> FunctionKind:
        """Which functions the call can have."""
        return "view" if self.source == "view" else "entry"


class StudyDraft(CallDraft, frozen=True):
    """What is typed about a study; the fields of a call are those of the chosen one."""

    title: str = ""
    chosen: int = 0
    calls: tuple[CallDraft, ...] = (CallDraft(),)
    plan: Literal["search", "these"] = "search"
    span: str = "0:-1"
    initial: str = "33"
    max_requests: str = "2000"

    @property
    def call(self) -> CallDraft:
        """The call that is chosen."""
        return CallDraft(**{name: getattr(self, name) for name in _CALL_TEXTS})

    def with_calls(self, calls: Sequence[CallDraft], chosen: int) -> StudyDraft:
        """Return the draft with other calls, one of which is chosen; without calls it has a blank one."""
        listed = tuple(calls) or (CallDraft(),)
        place = min(max(chosen, 0), len(listed) - 1)
        shown = {name: getattr(listed[place], name) for name in _CALL_TEXTS}
        return replace(self, calls=listed, chosen=place, **shown)

    def chosen_after(self, before: StudyDraft) -> StudyDraft:
        """Bring the list of calls in step with the fields of the chosen one, or show another that was chosen."""
        place = before.chosen if len(before.calls) == len(self.calls) else self.chosen
        calls = [self.call if number == place else one for number, one in enumerate(self.calls)]
        return self.with_calls(calls, self.chosen if 0 <= self.chosen < len(calls) else place)

    @property
    def versions(self) -> tuple[str, ...]:
        """What is typed about the versions."""
        return tuple(getattr(self, name) for name in _VERSION_TEXTS)

    @property
    def is_whole_ledger(self) -> bool:
        """Whether nobody has chosen versions: those of the whole ledger are read."""
        return self.versions == StudyDraft().versions


_CALL_TEXTS = tuple(name for name in CallDraft.__struct_fields__ if name != "seq")
_VERSION_TEXTS = StudyDraft.__struct_fields__[StudyDraft.__struct_fields__.index("plan") :]


# fields --------------------------------------------------------------------------------------------------------------


def form_fields(draft: StudyDraft, function: ResolvedFunction | None, call: ResolvedCall | None, hidden: str) -> Group:
    """Return what the browser draws.

    Parameters
    ----------
    draft : StudyDraft
    function : ResolvedFunction or None
        The function of the chosen call, if its ABI is known.
    call : ResolvedCall or None
        The same with its type arguments, if these are good.
    hidden : str
        What the study has and the form does not show, in words.
    """
    placeholder = "0x1::coin::supply" if draft.source == "view" else "0x1::aptos_account::transfer"
    about = function_fields(function, call, placeholder=placeholder, unknown_when=("source", _CALLED))
    inside = group(("source", select("Reads", _READS_LABELS)), *about, *_MORE_FIELDS)
    return group(
        ("", _VERSION_FIELDS),
        ("chosen", Picks("Calls")),
        ("", group(("", inside), label=f"Call {draft.chosen + 1}")),
        ("title", Text("Title", placeholder=_DEFAULT_TITLE)),
        *([("", Group(hidden, plain=True))] if hidden else []),
    )


_FEE_FIELDS = group(
    ("fee_payer", mono("Fee payer", "may be empty; 0x0 charges nobody", placeholder="0xa11ce")),
    ("gas_unit_price", mono("Gas unit price", "octas per gas unit")),
    ("max_gas_amount", mono("Max gas amount", "gas units; may be empty: what the sender can afford")),
    label="Fee and gas",
    fold=True,
    when=("source", ("simulate",)),
)
_FILTER_FIELDS = group(
    ("sender", mono("Sent by", "may be empty: all accounts", placeholder="0xa11ce")),
    ("outcome", select("Which ones", _OUTCOME_LABELS)),
    ("range", mono("In the versions", f"may be empty: those of the study; {SAMPLE} is a sample")),
    label="Only some transactions",
    fold=True,
    when=("source", "committed"),
)
_SENDER = mono("Sender", "an address; no key is needed", ("source", ("simulate",)), placeholder="0xa11ce")
_MORE_FIELDS: tuple[tuple[Step, Part], ...] = (
    ("sender", _SENDER),
    ("", _FEE_FIELDS),
    ("", _FILTER_FIELDS),
    ("label", Text("Label", hint="may be empty: the name of the function")),
)
_VERSION_FIELDS = group(
    ("plan", select("Read at", _PLANS)),
    ("span", mono("Versions", "0:-1 is all; 0:-1/200, 100:200, 2026-05-01..2026-06-01/20, or 100, 200, 300")),
    (
        "",
        group(
            ("initial", mono("First grid", "versions that are read first")),
            ("max_requests", mono("Requests at most", "for each call")),
            columns=True,
            when=("plan", ("search",)),
        ),
    ),
    label="Versions",
)


_HIDDEN = {"thresholds": "thresholds", "requests_per_second": "the pace"}


def hidden_parts(study: Study | None) -> str:
    """Return what a study has and the form does not show, as a sentence; empty if there is nothing."""
    if study is None:
        return ""
    found = [words for name, words in _HIDDEN.items() if getattr(study, name) is not None]
    found += [plural(len(study.waivers), "waiver")] if study.waivers else []
    own = sum(call.thresholds is not None for call in study.calls)
    found += [f"the thresholds of {plural(own, 'call')}"] if own else []
    return f"Not shown here, and part of the study: {', '.join(found)}." if found else ""


def may_be_long(study: Study) -> bool:
    """Return whether the number of requests of a run depends on the length of the ledger."""
    whole = any(call.reads_committed and "/" not in (call.versions or "") for call in study.calls)
    return whole or (study.versions.search is None and isinstance(study.versions.plan, str))


# writing -------------------------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """The study that a form was filled with, and its draft: what is not edited stays as it is there."""

    study: Study | None = None
    draft: StudyDraft = StudyDraft()

    @classmethod
    def of(cls, study: Study | None) -> Given:
        """Write the draft of a study; that of None is blank."""
        if study is None:
            return cls()
        title = "" if study.title == _DEFAULT_TITLE else study.title
        draft = StudyDraft(title=title, **_write_versions(study.versions))
        return cls(study, draft.with_calls([write_study_call(call) for call in study.calls], 0))

    def call(self, draft: CallDraft) -> Call | None:
        """Return the call whose draft shows the same."""
        pairs = () if self.study is None else zip(self.draft.calls, self.study.calls, strict=True)
        return next((call for written, call in pairs if _shown(written) == _shown(draft)), None)


def _shown(call: CallDraft) -> CallDraft:
    """Return what the form shows of a call: two that show the same are equal here."""
    types = tuple(name for name in call.type_arguments if name.strip())
    return replace(call, type_arguments=types, arguments=(), lead="raw", wrong="", seq=0)


def write_study_call(call: Call) -> CallDraft:
    """Return the draft of a call."""
    request = call.request.payload if isinstance(call.request, SimulationRequest) else call.request
    return CallDraft(
        **write_call(request),  # type: ignore[arg-type]  # a study simulates entry functions only
        label=call.label,
        source=next(name for name in _READS_LABELS if getattr(call, name) is not None),
        sender=_address_text(call.sender),
        fee_payer=_address_text(call.fee_payer),
        gas_unit_price=str(call.gas_unit_price),
        max_gas_amount="" if call.max_gas_amount is None else str(call.max_gas_amount),
        range=call.versions or "",
        outcome=_OUTCOME_OF[call.success],
        kept=call.model_dump(mode="json", include={"thresholds"}, exclude_none=True),
    )


def _address_text(address: str | None) -> str:
    return "" if address is None else wire_address(parse_address(address))


def _write_versions(versions: VersionChoice) -> dict[str, Any]:
    written = versions.written
    typed = {"span": ", ".join(map(str, written)) if isinstance(written, list) else written or "0:-1"}
    if versions.search is None:
        return typed | {"plan": "these"}
    return typed | {"initial": str(versions.initial), "max_requests": str(versions.max_requests)}


# reading -------------------------------------------------------------------------------------------------------------


def read_study(
    draft: StudyDraft, calls: Sequence[Call | None], given: Given, node: Node, found: Findings
) -> Study | None:
    """Return the study of a draft.

    Parameters
    ----------
    draft : StudyDraft
    calls : sequence of Call or None
        One per call of the draft, as `read_study_call` returns them.
    given : Given
        What the form was filled with.
    node : Node
        Where the study reads.
    found : Findings
        Receives a sentence for each field that does not fit or is missing.
    """
    for place, (call, one) in enumerate(zip(calls, draft.calls, strict=True)):
        if call is None and place != draft.chosen:
            found.errors.setdefault("chosen", f"call {place + 1} is not complete: {one.wrong or 'choose it'}")
    last = given.study
    values: dict[str, Any] = {"title": draft.title.strip() or _DEFAULT_TITLE}
    mine = Findings()
    if last is not None and draft.versions == given.draft.versions:
        versions: VersionChoice | None = last.versions
    else:
        versions = _read_versions(draft, mine)
    found.add(mine)
    if versions is None or not found.good or None in calls:
        return None
    if last is not None:
        names = [*_HIDDEN, "waivers", *(["title"] if draft.title == given.draft.title else [])]
        values |= {name: getattr(last, name) for name in names}
    try:
        return Study(calls=list(calls), versions=versions, node=node, **values)
    except InputError as error:
        places = [int(number) - 1 for number in _OF_A_CALL.findall(str(error))]
        found.errors["label" if draft.chosen in places else "chosen"] = str(error)
        return None


def read_study_call(draft: CallDraft, given: Given, found: Findings) -> Call | None:
    """Return the call of a draft; `found` receives a sentence for each field that does not fit or is missing."""
    name = draft.function.strip()
    if not name:
        found.missing["function"] = "expected a function, such as 0x1::coin::supply"
        return None
    unfiltered = draft.source == "committed" and not any(typed.strip() for typed in draft.type_arguments)
    values: dict[str, Any] = {
        "label": draft.label.strip(),
        draft.source: name,
        "type_arguments": () if unfiltered else read_types(draft.type_arguments, found),
        "arguments": parse_arguments(draft.raw if draft.takes_arguments else "", found),
        **_read_more(draft, found),
    }
    if not found.good:
        return None
    if (call := given.call(draft)) is not None:
        return call
    values["arguments"] = [_without_null(value) for value in values["arguments"]]
    values = {key: value for key, value in (values | draft.kept).items() if value not in (None, (), [])}
    mine = Findings()
    made = validated(partial(Call.model_validate, values), mine, "", _PATHS)
    for path, words in mine.errors.items():
        if path or not (match := _KEY.match(words)):
            found.errors[path or "function"] = words
        else:  # about several keys, one of which is named
            place = f".{int(match[2]) - 1}" if match[2] else ""
            found.errors[f"{_PATHS.get(match[1], match[1])}{place}"] = words[match.end() :]
    return made


def _read_more(draft: CallDraft, found: Findings) -> dict[str, Any]:
    """Return the keys of a simulation, or the filters of committed transactions."""
    if draft.source == "view":
        return {}
    if draft.source == "committed":
        texts = {name: getattr(draft, key).strip() or None for key, name in _FILTERS.items()}
        return texts | {"success": next(key for key, name in _OUTCOME_OF.items() if name == draft.outcome)}
    if not draft.sender.strip():
        found.missing["sender"] = "expected an address, such as 0xa11ce; no key is needed"
    values: dict[str, Any] = {name: getattr(draft, name).strip() or None for name in _FEES}
    numbers = ["gas_unit_price", *(["max_gas_amount"] if values["max_gas_amount"] else [])]
    return values | {name: _fields.read_leaf(U64, getattr(draft, name), name, found) for name in numbers}


def _without_null(value: Any) -> Any:
    """Return an argument with the form of an Option without a value that a study file can have."""
    if value is None:
        return {"vec": []}
    if isinstance(value, dict):
        return {name: _without_null(one) for name, one in value.items()}
    return [_without_null(one) for one in value] if isinstance(value, list | tuple) else value


def _read_versions(draft: StudyDraft, found: Findings) -> VersionChoice | None:
    """Return the versions of a draft."""
    typed = draft.span.strip()
    if not typed:
        found.missing["span"] = "expected versions, such as 0:-1, which is all of them"
        return None
    plan: Any = validated(partial(parse_plan, typed), found, "span")
    if plan is None:
        return None
    if draft.plan == "these":
        found.notes["span"] = f"= {plan_words(plan)}"
        return validated(partial(VersionChoice, plan=plan), found, "span")
    numbers = {name: _fields.read_leaf(U64, getattr(draft, name), name, found) for name in ("initial", "max_requests")}
    return validated(partial(VersionChoice, find_steps=typed, **numbers), found, "initial") if found.good else None


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
    versions = repr(study.versions.plan) if study.versions.search is None else f"toolkit.{study.versions.search!r}"
    calls = ", ".join(_call_as_python(call) for call in study.calls)
    fields = [f"title={study.title!r}"] if study.title != _DEFAULT_TITLE else []
    fields += ["node=node", f"versions={versions}", f"calls=[{calls}]"]
    keys = {"thresholds": "thresholds", "waivers": "waiver"}
    keys["requests_per_second"] = "requests_per_second"
    fields += [f"{name}={document[key]!r}" for name, key in keys.items() if key in document]
    made = format_expression(f"toolkit.Study({', '.join(fields)})")
    return f"import toolkit\n\n{connect_line(node)}\nstudy = {made}\nrun = study.run()\nprint(run.explain())"


def _call_as_python(call: Call) -> str:
    if isinstance(call.request, ViewFunction) and not call.label and call.thresholds is None:
        return call.request.to_python().replace(repr(call.request.function), repr(write_study_call(call).function))
    return repr(call.model_dump(mode="json", exclude_defaults=True, exclude_none=True))
