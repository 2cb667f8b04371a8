"""Judge a contract, calls or rules by what happens when a story on a fresh ledger uses them."""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from typing import Any

import msgspec

from toolkit._present.text import counted, number, plural
from toolkit.client._node import connect
from toolkit.embedded import Aborted, Ledger
from toolkit.errors import ContractError, ToolkitError
from toolkit.frames._columns import plain_rows
from toolkit.move._ids import wire_address
from toolkit.teaching._answers import GivenAnswer, StoryTrial, calls_of
from toolkit.teaching._contract_cell import contracts_in, is_published
from toolkit.teaching._exercises import (
    AnswerKind,
    CallStep,
    Ending,
    FreshStep,
    GasStep,
    GateStep,
    MarkStep,
    PlayStep,
    PublishStep,
    Relation,
    Step,
    ValueStep,
)
from toolkit.wire import EntryFunction, ViewFunction
from toolkit.wire._aborts import Abort

_MAX_CALLS = 40  # the exercises need few; each call is executed while a class is graded
_COMPARE = {Relation.EQUAL: operator.eq, Relation.AT_LEAST: operator.ge, Relation.AT_MOST: operator.le}


def what_happens(steps: Iterable[Step], answer: GivenAnswer) -> str:
    """Return what goes wrong in a story with this answer, or an empty string if every step ends as expected.

    The fresh ledger is the same for all students, so the steps can expect exact numbers.
    """
    story = _Story(answer)
    for step in steps:
        try:
            found = story.perform(step)
        except ContractError as error:
            return f"The contract is not valid: {error}"
        except ToolkitError as error:
            found = _clause(error)
        except (LookupError, TypeError, ValueError) as error:  # a view that returns something else
            found = f"The call returned an unexpected value: {_clause(error)}"
        if found:
            return f"{found}. {getattr(step, 'says', '')}".rstrip()
    return ""


class _Story:
    """A fresh ledger and the answer that is tried on it."""

    def __init__(self, answer: GivenAnswer) -> None:
        self._answer = answer
        self._ledger = Ledger(fund_new_senders=True)
        self._mark = self._ledger.head

    def perform(self, step: Step) -> str:  # noqa: PLR0911 - one per kind
        """Perform a step; return what differs from the expected outcome, or an empty string."""
        match step:
            case PublishStep(source):
                return self._publish(source)
            case FreshStep():
                self._ledger = Ledger(fund_new_senders=True)
            case CallStep(function, arguments, sender, ending, abort_code):
                if step.amount:
                    (amount,), _gas_used = self._ledger.view(step.amount, (sender,))
                    arguments = (*arguments, max(0, amount - step.spared))
                return self._call(EntryFunction(function, arguments), sender, ending, abort_code)
            case PlayStep(senders):
                return self._play(senders)
            case ValueStep():
                return self._value(step)
            case GasStep():
                return self._gas(step)
            case GateStep(calls, passes):
                return self._gate(calls, passes=passes)
            case MarkStep():
                self._mark = self._ledger.head
        return ""

    def _value(self, step: ValueStep) -> str:
        try:
            (got,), _gas_used = self._ledger.view(step.function, step.arguments, step.type_arguments)
            outcome = f"returned {_shown(got)}"
        except Aborted as error:
            if not step.abort_code:
                raise
            status = error.vm_status
            outcome = "" if _aborted_with(step.abort_code, status) else f"failed: {_clause(status.splitlines()[-1])}"
        if step.abort_code:
            expected = f"but was expected to abort with {step.abort_code}"
            return outcome and f"{_written(step.function, step.arguments)} {outcome}, {expected}"
        if step.item:
            got = got[step.item]
        if isinstance(got, str) and got.startswith("0x"):
            got = wire_address(got)
        if _COMPARE[step.relation](got, step.expected):
            return ""
        bound = "" if step.relation is Relation.EQUAL else step.relation.removeprefix("is ") + " "
        return f"{_written(step.function, step.arguments)} is {_shown(got)}, expected {bound}{_shown(step.expected)}"

    def _gas(self, step: GasStep) -> str:
        kind = EntryFunction if step.sender else ViewFunction
        call = kind(step.function, step.arguments)
        profile = self._ledger.profile(call, sender=step.sender or None)
        if profile.gas_used <= step.at_most:
            return ""
        what = f"{_written(step.function, step.arguments)} uses {plural(profile.gas_used, 'gas unit')}"
        return f"{what}, expected at most {step.at_most:,}"

    def _publish(self, source: str) -> str:
        try:
            found = contracts_in(source or self._answer.value, "your contract", self._ledger)
        except ToolkitError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the code of an answer raises
            raise ContractError(f"{type(error).__name__}: {error}; the cell must define all that it uses") from None
        if new := [contract for contract in found if not is_published(self._ledger, contract)]:
            self._ledger.publish(*new)
        return "" if found else "The cell defines no contract"

    def _call(self, call: EntryFunction, sender: str, ending: Ending = Ending.SUCCESS, abort_code: str = "") -> str:
        """Commit a call, which must end as in the step `CallStep`."""
        done = self._ledger.execute(call, sender=sender)
        unwanted = Ending.ABORT if done.success else Ending.SUCCESS
        if ending is not unwanted and (done.success or not abort_code or _aborted_with(abort_code, done.vm_status)):
            return ""
        outcome = "succeeded" if done.success else f"failed: {_clause(done.vm_status)}"
        if ending is Ending.ABORT:
            outcome += f", but was expected to abort{f' with {abort_code}' if abort_code else ''}"
        return f"{_written(call.function, call.arguments)} signed by {sender} {outcome}"

    def _play(self, senders: tuple[str, ...]) -> str:
        planned = calls_of(self._answer)
        if len(planned) > _MAX_CALLS:
            return f"The answer has {len(planned)} calls, expected at most {_MAX_CALLS}"
        for one in planned:
            if wire_address(one.sender) not in senders:
                return f"{wire_address(one.sender)} signs a call, but only {' and '.join(senders)} may sign"
            call = EntryFunction(one.function, one.arguments, type_arguments=one.type_arguments)
            if said := self._call(call, wire_address(one.sender)):
                return said
        return ""

    def _gate(self, watched: dict[str, tuple[str, tuple[Any, ...]]], *, passes: bool) -> str:
        """Judge a gate by the answer's rules, which also name the calls to watch if the step names none."""
        from toolkit.gas._compare import compare
        from toolkit.gas._study import Study

        is_text = self._answer.kind is AnswerKind.TEXT
        rules: Any = self._answer.value if is_text else msgspec.json.decode(self._answer.value)
        if not watched:
            try:
                watched = msgspec.convert(rules["calls"], dict[str, tuple[str, tuple[Any, ...]]])
                rules = rules["thresholds"]
            except (KeyError, TypeError, msgspec.ValidationError) as error:
                wanted = '{"calls": {label: [function, arguments]}, "thresholds": limit}'
                return f"Expected {wanted}; {type(error).__name__}: {_clause(error)}"
        calls = {label: ViewFunction(*call) for label, call in watched.items()}
        versions = [self._mark, self._ledger.head]
        study = Study(title="Exercise", node=connect(self._ledger), calls=calls, versions=versions, thresholds=rules)
        run = study.run(progress=False)
        comparison = compare(*(run.at(version) for version in versions))
        gate = comparison.gate(study=study)
        if gate.passed is passes:
            return ""
        costs = ", ".join(
            f"{row['label']} from {number(row['gas_before'])} to {counted(number(row['gas_after']), 'gas unit')}"
            for row in plain_rows(comparison.calls)
        )
        outcome = "passes, but was expected to fail" if gate.passed else "fails, but was expected to pass"
        return f"The gate {outcome}: {costs}"


def _aborted_with(abort_code: str, vm_status: str) -> bool:
    """Return whether a status is a Move abort with a code of this name."""
    abort = Abort.find(vm_status)
    return abort is not None and abort.name == abort_code


def _clause(said: object) -> str:
    """Return what somebody else says as a part of a sentence, whose full stop follows."""
    return str(said).removesuffix(".")


def _written(function: str, arguments: tuple[Any, ...]) -> str:
    """Return a call in the form in which students write it."""
    return f"{function.rpartition('::')[2]}({', '.join(json.dumps(one) for one in arguments)})"


def _shown(value: Any) -> str:
    return f"{value:,}" if type(value) is int else json.dumps(value, default=str)


def main() -> None:
    """Read a `StoryTrial` and write what happens, for `grade`."""
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=StoryTrial)
    with redirect_stdout(sys.stderr):  # the answer may print
        said = what_happens(trial.steps, trial.answer)
    sys.stdout.buffer.write(msgspec.json.encode(said))


if __name__ == "__main__":
    main()
