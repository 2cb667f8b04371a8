"""The exercises of the course: what is right and which mistakes are known, computed from the embedded ledger."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING

from toolkit.client._connect import connect
from toolkit.client._fetch import fetch_views
from toolkit.errors import InputError
from toolkit.teaching._answers import CheckedAnswer, Exercise, Verdict, judge
from toolkit.wire import ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.client._node import Node

__all__ = ["check", "exercise_names"]

_EXERCISES: dict[str, Callable[[Node], Exercise]] = {}
_FAILURES: Counter[str] = Counter()
"""Wrong answers to each exercise since the last right one."""


def check(exercise: str, answer: object) -> CheckedAnswer:
    """Say whether an answer to an exercise of the course is right.

    The solution is computed from the embedded ledger. A wrong answer never raises an error: the message says what is
    wrong without giving the solution away. The second wrong answer adds a hint, the third another one.

    Parameters
    ----------
    exercise : str
        Number of the exercise as in the lesson: lesson, a dot, and the exercise, such as ``"08.1"``.
    answer : object
        The answer; ``...`` means that there is none yet. Numbers are whole numbers (int); a float or a bool is not.

    Returns
    -------
    CheckedAnswer
        With `verdict` and `message`; a notebook shows it.

    Raises
    ------
    InputError
        If the course does not have this exercise.

    Examples
    --------
    >>> from toolkit.teaching import check
    >>> check("01.1", ...)
    01.1: not answered yet. Replace the dots by a whole number: names.
    >>> check("01.1", 652)
    01.1: right.
    """
    if exercise not in _EXERCISES:
        meant = get_close_matches(str(exercise), _EXERCISES, n=1)
        raise InputError(
            f"exercise must be a number such as '08.1', got {exercise!r}"
            + "".join(f"; did you mean {one!r}?" for one in meant)
        )
    checked = judge(exercise, _exercise(exercise), answer, _FAILURES[exercise])
    if checked.verdict is Verdict.NOT_YET:
        _FAILURES[exercise] += 1
    elif checked.verdict is Verdict.RIGHT:
        del _FAILURES[exercise]
    return checked


def exercise_names() -> list[str]:
    """Return the numbers of all exercises in the order of the course."""
    return sorted(_EXERCISES)


@cache
def _exercise(name: str) -> Exercise:
    """Return an exercise, computed once per process."""
    with connect() as node:
        return _EXERCISES[name](node)


def _numbered(name: str) -> Callable[[Callable[[Node], Exercise]], Callable[[Node], Exercise]]:
    """Return a decorator that enters an exercise under its number."""

    def enter(compute: Callable[[Node], Exercise]) -> Callable[[Node], Exercise]:
        _EXERCISES[name] = compute
        return compute

    return enter


# -- 01 First look ---------------------------------------------------------------------------------------------

_SIZE = ViewFunction("0xcafe::registry::size")
_SUPPLY = ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])


@_numbered("01.1")
def _names_at_the_head(node: Node) -> Exercise:
    size = node.view(_SIZE)
    return Exercise(
        size.value,
        "names",
        mistakes=((size.gas_used, "This is the gas that the answer took. Which attribute has the value?"),),
        hints=('node.view("0xcafe::registry::size") asks the question.', "The attribute is .value."),
    )


@_numbered("01.2")
def _fall_of_the_supply(node: Node) -> Exercise:
    before, now = node.at(1_000).view(_SUPPLY).value, node.view(_SUPPLY).value
    return Exercise(
        before - now,
        "octas",
        mistakes=(
            (now - before, "The size is right. A fall of 5 is the number 5, not -5."),
            (now, "This is the supply at the head. How far did it fall?"),
            (before, "This is the supply at version 1,000. How far did it fall from there?"),
        ),
        hints=("You need two readings: one at version 1,000, one at the head.", "Earlier minus later."),
    )


# -- 02 Ledger versions, snapshots and pruning -----------------------------------------------------------------


@_numbered("02.1")
def _transactions_in_march(node: Node) -> Exercise:
    first, last = node.version_at("2026-03-01"), node.version_at("2026-04-01")
    return Exercise(
        last - first,
        "transactions",
        mistakes=(
            (last - first + 1, "One too many: the first of the two versions is a transaction of February."),
            (last - first - 1, "One too few: the last version of March counts."),
            (last, "This counts every transaction before April. Those before March do not belong to it."),
            (first - last, "The later version minus the earlier one."),
        ),
        hints=(
            "node.version_at(date) is the last version at or before the beginning of that date.",
            "March ends where April begins: ask for both dates and subtract.",
        ),
    )


@_numbered("02.2")
def _first_version_with_20_names(node: Node) -> Exercise:
    frame = fetch_views(node, _SIZE, "0:300", progress=False)
    names = 20
    first = int(frame.loc[frame["value"] >= names, "ledger_version"].min())
    more = int(frame.loc[frame["value"] > names, "ledger_version"].min())
    return Exercise(
        first,
        "ledger version",
        mistakes=(
            (first - 1, "At this version there are fewer than 20 names. One transaction is missing."),
            (more, "At this version there are more than 20 names. Look for the first one with 20 or more."),
            (names, "This is the number of names. At which version are there so many?"),
        ),
        hints=(
            'fetch_views(node, names.call, "0:300") has a row for each version.',
            'Keep the rows with frame["value"] >= 20 and take the smallest ledger_version.',
        ),
    )


@_numbered("02.3")
def _oldest_version_of_a_window(node: Node) -> Exercise:
    head, kept = node.ledger().version, 1_000
    return Exercise(
        head - kept + 1,
        "ledger version",
        mistakes=(
            (head - kept, "Count them: from here to the head there is one version too many."),
            (kept, "This is how many versions there are. Which one is the oldest of them?"),
        ),
        hints=(
            "Try a small case: head 9, and the latest 3 versions. Which ones are they?",
            "Both ends count: the head is one of the versions that are kept.",
        ),
    )


# -- 08 What gas is made of ------------------------------------------------------------------------------------


@_numbered("08.1")
def _fee_at_a_higher_price(node: Node) -> Exercise:
    register = node.contract("0xcafe::registry").register.call("zoe")
    cheap, dear = (
        node.simulate(register, sender="0xa11ce", gas_unit_price=price).gas.fee_octas  # type: ignore[union-attr]
        for price in (100, 200)
    )
    gas_used = node.simulate(register, sender="0xa11ce", gas_unit_price=200).gas_used
    return Exercise(
        dear,
        "octas",
        mistakes=(
            (2 * cheap, "This doubles everything. Which part has a price in octas, whatever the gas price?"),
            (cheap, "This is the fee at a gas price of 100. Some parts of it depend on the price."),
            (gas_used, "This is in gas units. A gas unit costs 200 octas."),
        ),
        hints=(
            "Only execution and io depend on the gas price; storage does not.",
            "Simulate with gas_unit_price=200 and read .gas.fee_octas.",
        ),
    )


@_numbered("08.2")
def _octas_per_character(node: Node) -> Exercise:
    register = node.contract("0xcafe::registry").register
    short, long = (node.simulate(register.call(name), sender="0xa11ce") for name in ("zoe", "zoey"))
    octas = long.gas.storage_fee_octas - short.gas.storage_fee_octas  # type: ignore[union-attr]
    return Exercise(
        octas,
        "octas",
        mistakes=(
            (long.gas_used - short.gas_used, "This is in gas units. What are they in octas, at a price of 100?"),
            (short.gas.storage_fee_octas, "This is the storage of the whole record. What does one more character add?"),  # type: ignore[union-attr]
        ),
        hints=(
            "Simulate registering two names, one of them a character longer.",
            "Compare .gas.storage_fee_octas of the two simulations.",
        ),
    )


@_numbered("08.3")
def _net_cost_of_a_release(node: Node) -> Exercise:
    gas = node.simulate(node.contract("0xcafe::registry").release.call("alice"), sender="0xa11ce").gas
    fee, net = gas.fee_octas, gas.net_octas  # type: ignore[union-attr]
    return Exercise(
        net,
        "octas, negative if Alice gets money back",
        mistakes=(
            (fee, "This is the fee before the refund."),
            (-net, "The size is right. Does she pay it, or does she get it?"),
            (net - fee, "This is the refund alone. She also pays a fee."),
        ),
        hints=(
            "What she pays in the end is the fee minus the refund.",
            "The fee is the gas units charged times 100 octas; the table has the refund in octas.",
        ),
    )
