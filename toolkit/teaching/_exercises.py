"""The exercises of the course: what is right and which mistakes are known, computed from the embedded ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from toolkit.client._connect import connect
from toolkit.client._fetch import fetch_simulations, fetch_table_items, fetch_transactions, fetch_views
from toolkit.client._versions import FindSteps
from toolkit.embedded import Ledger
from toolkit.embedded.teaching import CheaperTips, Tips
from toolkit.errors import InputError, ToolkitError
from toolkit.frames._display import address
from toolkit.frames._transactions import table_keys
from toolkit.gas._study import Study
from toolkit.gas._timeline import timeline
from toolkit.teaching._answers import CheckedAnswer, Exercise, Verdict, expected, judge
from toolkit.wire import EntryFunction, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.client._simulation import Simulation
    from toolkit.wire import GasBreakdown


class _Entry(NamedTuple):
    """What is known of an exercise before it is computed, and the function that computes it."""

    kind: type[int | str]
    unit: str
    compute: Callable[[Node], Exercise]


_EXERCISES: dict[str, _Entry] = {}
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
        Text is compared without regard to capital letters.

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
    >>> check("15.2", 200)
    15.2: not yet. So many times 5,000 requests are needed. How long does each take?
    """
    if exercise not in _EXERCISES:
        padded = str(exercise).zfill(len("08.1"))
        meant = [padded] if padded in _EXERCISES else get_close_matches(padded, _EXERCISES, n=1)
        raise InputError(
            f"exercise must be a number such as '08.1', got {exercise!r}"
            + "".join(f"; did you mean {one!r}?" for one in meant)
        )
    if answer is ...:  # before the solution is computed, which takes up to a few seconds
        entry = _EXERCISES[exercise]
        message = f"Replace the dots by {expected(entry.kind, entry.unit)}."
        return CheckedAnswer(exercise, Verdict.NOT_ANSWERED, message)
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
    entry = _EXERCISES[name]
    with connect() as node:
        return replace(entry.compute(node), unit=entry.unit)


def _numbered(
    name: str, kind: type[int | str], unit: str
) -> Callable[[Callable[[Node], Exercise]], Callable[[Node], Exercise]]:
    """Return a decorator that enters an exercise under its number, with the type and the unit of its answer."""

    def enter(compute: Callable[[Node], Exercise]) -> Callable[[Node], Exercise]:
        _EXERCISES[name] = _Entry(kind, unit, compute)
        return compute

    return enter


def _gas(simulation: Simulation) -> GasBreakdown:
    """Return the parts of the gas of a simulation; every transaction of the embedded ledger has them."""
    parts = simulation.gas
    if parts is None:
        raise ToolkitError("the node did not state what the gas was spent on")
    return parts


# -- 01 First look ---------------------------------------------------------------------------------------------

_SIZE = ViewFunction("0xcafe::registry::size")
_SUPPLY = ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])


@_numbered("01.1", int, "names")
def _names_at_the_head(node: Node) -> Exercise:
    size = node.view(_SIZE)
    return Exercise(
        size.value,
        mistakes=((size.gas_used, "This is the gas that the answer took. Which attribute has the value?"),),
        hints=('node.view("0xcafe::registry::size") asks the question.', "The attribute is .value."),
    )


@_numbered("01.2", int, "octas")
def _fall_of_the_supply(node: Node) -> Exercise:
    before, now = node.at(1_000).view(_SUPPLY).value, node.view(_SUPPLY).value
    return Exercise(
        before - now,
        mistakes=(
            (now - before, "The size is right. A fall of 5 is the number 5, not -5."),
            (now, "This is the supply at the head. How far did it fall?"),
            (before, "This is the supply at version 1,000. How far did it fall from there?"),
            (node.at(102).view(_SUPPLY).value - now, "This is the fall since version 102, as in the figure."),
        ),
        hints=("You need two readings: one at version 1,000, one at the head.", "Earlier minus later."),
    )


# -- 02 Ledger versions, snapshots and pruning -----------------------------------------------------------------


_ENDS_OF_MARCH = "Look at the two ends: in which month was the transaction at each of the two versions made?"


@_numbered("02.1", int, "transactions")
def _transactions_in_march(node: Node) -> Exercise:
    first, last, day = (node.version_at(f"2026-{date}") for date in ("03-01", "04-01", "03-31"))
    return Exercise(
        last - first,
        mistakes=(
            *((last - first + off, _ENDS_OF_MARCH) for off in (1, -1)),
            (last, "This counts every transaction before April. Those before March do not belong to it."),
            (first, "This counts the transactions before March."),
            (day - first, "This ends before the last day of March."),
            (first - last, "The later version minus the earlier one."),
        ),
        hints=(
            "node.version_at(date) is the last version at or before the beginning of that date.",
            "March ends where April begins: ask for both dates and subtract.",
        ),
    )


@_numbered("02.2", int, "ledger version")
def _first_version_with_20_names(node: Node) -> Exercise:
    frame = fetch_views(node, _SIZE, "0:300", progress=False)
    names = 20
    first = int(frame.loc[frame["value"] >= names, "ledger_version"].min())
    more = int(frame.loc[frame["value"] > names, "ledger_version"].min())
    return Exercise(
        first,
        mistakes=(
            (first - 1, "At this version there are fewer than 20 names."),
            (more, "At this version there are more than 20 names. Look for the first one with 20 or more."),
            (names, "This is the number of names. At which version are there so many?"),
        ),
        hints=(
            'fetch_views(node, names.call, "0:300") has a row for each version.',
            'Keep the rows with frame["value"] >= 20 and take the smallest ledger_version.',
        ),
    )


@_numbered("02.3", int, "ledger version")
def _oldest_version_of_a_window(node: Node) -> Exercise:
    head, kept = node.ledger().version, 1_000
    return Exercise(
        head - kept + 1,
        mistakes=(
            (head - kept, "Test your rule: which is the oldest version of a node that only keeps the head?"),
            (kept, "This is how many versions there are. Which one is the oldest of them?"),
            (head, "This is the newest one."),
            (4_003, "This is the node of the lesson, which prunes whole blocks. Here, blocks do not matter."),
        ),
        hints=(
            "Try a small case: head 9, and the latest 3 versions. Which ones are they?",
            "Both ends count: the head is one of the versions that are kept.",
        ),
    )


# -- 03 View functions and types -------------------------------------------------------------------------------


@_numbered("03.1", str, "the name of a function")
def _function_added_by_an_upgrade(node: Node) -> Exercise:
    before, now = (place.contract("0xfa17::vault") for place in (node.at(2_000), node))
    names = [{one.name for one in each.abi.exposed_functions if one.is_view} for each in (before, now)]
    (added,) = names[1] - names[0]
    return Exercise(
        added,
        mistakes=(
            *((old, "This function existed at version 2,000.") for old in sorted(names[0])),
            *((one, "This is an entry function.") for one in ("deposit", "harvest", "withdraw")),
            *((f"0xfa17::vault::{one}", "Answer with the last part of a full name.") for one in sorted(names[1])),
        ),
        hints=(
            'Compare node.contract("0xfa17::vault") with node.at(2_000).contract("0xfa17::vault").',
            "Only functions of the kind view count.",
        ),
    )


@_numbered("03.2", str, "an address")
def _owner_of_a_name(node: Node) -> Exercise:
    record_of = node.contract("0xcafe::registry").record_of
    first, then, last = (record_of.at(version, "oak-31")["owner"] for version in (180, 500, 4_999))
    return Exercise(
        then,
        mistakes=(
            (last, "This is a later owner. Who was it at version 500?"),
            (first, "This is an earlier owner. Who was it at version 500?"),
            ("0xa11ce", 'This is the owner of "alice".'),
        ),
        hints=(
            'registry.record_of.at(500, "oak-31") is the record at that version.',
            'The record has an item "owner".',
        ),
    )


@_numbered("03.3", int, "rows")
def _rows_without_a_record(node: Node) -> Exercise:
    frame = node.contract("0xcafe::registry").record_of.over("0:-1/100", "willow-14", progress=False)
    missing = int(frame["error_code"].notna().sum())
    return Exercise(
        missing,
        mistakes=(
            (len(frame) - missing, "These are the rows with a record. How many have none?"),
            (len(frame), "This counts every row."),
        ),
        hints=(
            'registry.record_of.over("0:-1/100", "willow-14") has a row for each version.',
            "A row without a record has an error code: count where error_code is not empty, with .notna().sum().",
        ),
    )


# -- 04 Exact numbers ------------------------------------------------------------------------------------------


@_numbered("04.1", int, "the number itself")
def _first_number_that_is_no_float(_: Node) -> Exercise:
    number = next(2**bits + 1 for bits in range(64) if int(float(2**bits + 1)) != 2**bits + 1)
    return Exercise(
        number,
        mistakes=(
            (number - 1, "int(float(...)) of this number is the same number, so a float can hold it."),
            (number + 1, "A float can hold this one. There is a smaller number that it cannot hold."),
            (number - 2, "int(float(...)) of this number is the same number, so a float can hold it."),
        ),
        hints=(
            "A float has 53 binary digits, and a power of two needs only one of them.",
            "Try int(float(x)) == x for the numbers around 2**53.",
        ),
    )


@_numbered("04.2", int, "octas")
def _sum_above_64_bits(_: Node) -> Exercise:
    held = [2**64 - 1, 1_000, 1_000, 1_000]
    return Exercise(
        sum(held),
        mistakes=(
            (sum(held) % 2**64, "This sum wrapped around: it is smaller than one of its parts."),
            (int(float(sum(held))), "This number was a float on its way, and lost its last digits."),
        ),
        hints=("Compare your answer with the largest of the four numbers.", "toolkit.exact_sum adds a column exactly."),
    )


@_numbered("04.3", int, "units, as a negative number")
def _largest_fall_of_the_depth(node: Node) -> Exercise:
    frame = fetch_views(node, ViewFunction("0xb00c::order_book::depth"), "10:-1/100", progress=False)
    changes = [int(after) - int(before) for before, after in pairwise(frame["value"])]
    return Exercise(
        min(changes),
        mistakes=(
            (-min(changes), "The size is right. A change downwards is negative."),
            (max(changes), "This is the largest rise."),
            (min(changes) % 2**64, "This difference wrapped around. Which function subtracts exactly?"),
        ),
        hints=('depth["change"] has the change of each row.', "The largest fall is the smallest change."),
    )


# -- 05 Table items and keys -----------------------------------------------------------------------------------


@_numbered("05.1", int, "seconds since 1970")
def _second_of_a_registration(node: Node) -> Exercise:
    oak, alice = (node.contract("0xcafe::registry").record_of(name)["registered_at"] for name in ("oak-31", "alice"))
    return Exercise(
        oak,
        mistakes=((alice, 'This is the second in which "alice" was registered.'),),
        hints=(
            'Read the item of "oak-31" as the lesson reads that of "alice".',
            'item.value is a dictionary; its item is called "registered_at".',
        ),
    )


@_numbered("05.2", int, "names")
def _names_of_alice(node: Node) -> Exercise:
    items = _items_of_the_first_thousand(node, [499, 999])
    early, late = (
        [record["owner"] for record in items.loc[items["ledger_version"] == version, "value"].dropna()]
        for version in (499, 999)
    )
    alice = address("0xa11ce")
    return Exercise(
        early.count(alice),
        mistakes=(
            (late.count(alice), "This is her number at version 999, as in the figure."),
            (len(early), "These are the names of all owners."),
            (len(set(early)), "This is the number of owners."),
            (0, "In a frame, addresses have their long form."),
        ),
        hints=(
            "Copy the cells from items to owners, with versions=[499].",
            'owners has the number of names of each owner; owners[toolkit.address("0xa11ce")] is hers.',
        ),
    )


@_numbered("05.3", int, "keys")
def _keys_that_are_missing(node: Node) -> Exercise:
    registry = node.contract("0xcafe::registry")
    keys, early = (len(_keys_until(node, last)) for last in (1_999, 999))
    left, size = registry.size.at(1_999), registry.size.at(999)
    return Exercise(
        keys - left,
        mistakes=(
            (left, "These keys are in the table. How many are not?"),
            (keys, "These are all keys that were ever written."),
            (early - size, "This is the number at version 999."),
        ),
        hints=(
            'toolkit.table_keys finds the keys in toolkit.fetch_transactions(node, "0:1999").',
            "registry.size.at(1_999) is the number of names that are left.",
        ),
    )


def _keys_until(node: Node, last: int) -> pd.Series[str]:
    """Return the keys of the registry's table that the transactions up to a version wrote."""
    handle = node.contract("0xcafe::registry").handle()
    history = fetch_transactions(node, f"0:{last}", progress=False)
    return table_keys(history, handle, key_type="0x1::string::String")["key"]


def _items_of_the_first_thousand(node: Node, versions: list[int]) -> pd.DataFrame:
    """Return the items of the registry's table that the first 1,000 transactions wrote, at each version."""
    text, record = "0x1::string::String", "0xcafe::registry::Record"
    handle = node.contract("0xcafe::registry").handle()
    keys = _keys_until(node, 999)
    return fetch_table_items(node, handle, keys, versions=versions, key_type=text, value_type=record, progress=False)


# -- 06 Simulating a transaction -------------------------------------------------------------------------------


@_numbered("06.1", str, "the name of an error")
def _name_of_an_abort(node: Node) -> Exercise:
    status = _payment_of_too_much(node).vm_status
    name = status.split(": ", 1)[1].split("(", 1)[0]
    return Exercise(
        name,
        mistakes=(
            (status, "This is the whole status. The name of the error is one word of it, in capital letters."),
            ("E_TAKEN", "This is the error of the registry. What does the transfer abort with?"),
            (status.split("(", 1)[1].split(")", 1)[0], "This is the code of the error. Its name is before it."),
            (status.split(": ", 1)[1].split(":")[0], "This is the name and the code. Answer with one of them."),
        ),
        hints=(
            'transfer("0xa11ce", 10_000_000_000_000, sender="0xb0b") simulates the attempt.',
            "Read .vm_status; the name is written in capital letters, before the code in brackets.",
        ),
    )


@_numbered("06.2", int, "octas")
def _fee_of_a_failure(node: Node) -> Exercise:
    simulation = _payment_of_too_much(node)
    return Exercise(
        _gas(simulation).fee_octas,
        mistakes=(
            (simulation.gas_used, "This is in gas units. Each costs 100 octas."),
            (0, "A failed transaction has done work as well, and pays for it."),
            (10**13, "This is what he tries to send. What does he pay for trying?"),
            (7_500, "This is the fee of the payment at the beginning of the lesson, which succeeds."),
        ),
        hints=("Look at .gas_used of the simulation.", "The fee is gas used times the gas price."),
    )


@_numbered("06.3", int, "receivers")
def _new_receivers(node: Node) -> Exercise:
    transfer = node.contract("0x1::aptos_account").transfer
    receivers = [f"0x9e3{number:04x}" for number in range(31, 91)]
    requests = [transfer.request(one, 1_000, sender="0xa11ce") for one in receivers]
    storage = fetch_simulations(node, requests, progress=False).transactions["storage_fee_octas"]
    new, before = (int((part > 0).sum()) for part in (storage.iloc[:50], storage.iloc[10:]))
    return Exercise(
        new,
        mistakes=(
            (before, "This is the number in the batch of the lesson."),
            (50 - new, "These are the receivers that exist. How many are new?"),
            (50, "These are all of them, and some have been used before."),
        ),
        hints=("Copy the batch of the lesson with range(31, 81).", "A payment to a new address pays for storage."),
    )


def _payment_of_too_much(node: Node) -> Simulation:
    """Return the simulation of a payment by Bob of more than he has."""
    return node.simulate(EntryFunction("0x1::aptos_account::transfer", ["0xa11ce", 10**13]), sender="0xb0b")


# -- 07 State changes, events and balances ---------------------------------------------------------------------


@_numbered("07.1", int, "shares")
def _shares_for_a_deposit(node: Node) -> Exercise:
    deposit = _deposit_of_bob(node)
    shares = int(deposit.events_of("0xfa17::vault::Deposited")["shares"].iloc[0])
    return Exercise(
        shares,
        mistakes=(
            (500_000_000, "This is what he deposits, in octas. How many shares does he get for it?"),
            (node.contract("0xfa17::vault").balance_of("0xb0b"), "These are the shares that he has now."),
        ),
        hints=(
            'Simulate vault.deposit(500_000_000, sender="0xb0b").',
            'Its .events_of("0xfa17::vault::Deposited") has a column shares.',
        ),
    )


@_numbered("07.2", int, "octas, negative if he has less afterwards")
def _change_of_a_balance(node: Node) -> Exercise:
    deposit = _deposit_of_bob(node)
    changes = deposit.balance_changes
    change = int(changes.loc[changes["owner"] == address("0xb0b"), "change"].iloc[0])
    return Exercise(
        change,
        mistakes=(
            (-change, "The size is right. Has he more or less afterwards?"),
            (-500_000_000, "This is the deposit without the fee."),
            (500_000_000, "This is what the vault gets. What happens to Bob's balance?"),
            (change + 2 * _gas(deposit).fee_octas, "The fee is taken from him as well, so his balance falls by more."),
        ),
        hints=("balance_changes has a row for each owner.", "The column change includes the fee."),
    )


@_numbered("07.3", int, "octas")
def _fees_of_a_hundred(node: Node) -> Exercise:
    transactions = fetch_transactions(node, "-100:", progress=False)
    column = [int(octas) for octas in transactions.balance_changes["fee_octas"]]
    fees = sum(column)
    gas = sum(int(used) for used in transactions.transactions["gas_used"])
    return Exercise(
        fees,
        mistakes=(
            (gas, "This is in gas units. What did they cost?"),
            (sum(octas for octas in column if octas > 0), "This leaves the refunds out. They count with their sign."),
        ),
        hints=('Add up balances["fee_octas"].', "toolkit.exact_sum adds a column exactly."),
    )


def _deposit_of_bob(node: Node) -> Simulation:
    """Return the simulation of a deposit of 5 APT in the vault."""
    return node.simulate(EntryFunction("0xfa17::vault::deposit", [500_000_000]), sender="0xb0b")


# -- 08 What gas is made of ------------------------------------------------------------------------------------


@_numbered("08.1", int, "octas")
def _fee_at_a_higher_price(node: Node) -> Exercise:
    register = node.contract("0xcafe::registry").register.call("zoe")
    cheap, dear = (node.simulate(register, sender="0xa11ce", gas_unit_price=price) for price in (100, 200))
    return Exercise(
        _gas(dear).fee_octas,
        mistakes=(
            (
                2 * _gas(cheap).fee_octas,
                "This doubles everything. Which part has a price in octas, whatever the gas price?",
            ),
            (_gas(cheap).fee_octas, "This is the fee at a gas price of 100. Some parts of it depend on the price."),
            (dear.gas_used, "This is in gas units. A gas unit costs 200 octas."),
            (cheap.gas_used, "This is in gas units, at a gas price of 100."),
            (_gas(cheap).storage_fee_octas, "This is the storage alone."),
            (_gas(dear).fee_octas - _gas(dear).storage_fee_octas, "This is without the storage."),
        ),
        hints=(
            "Only execution and io depend on the gas price; storage does not.",
            "Simulate with gas_unit_price=200 and read .gas.fee_octas.",
        ),
    )


@_numbered("08.2", int, "octas")
def _octas_per_character(node: Node) -> Exercise:
    register = node.contract("0xcafe::registry").register
    short, long = (node.simulate(register.call(name), sender="0xa11ce") for name in ("zoe", "zoey"))
    octas = _gas(long).storage_fee_octas - _gas(short).storage_fee_octas
    return Exercise(
        octas,
        mistakes=(
            (long.gas_used - short.gas_used, "This is in gas units. What are they in octas, at a price of 100?"),
            (
                _gas(short).storage_fee_octas,
                "This is the storage of the whole record. What does one more character add?",
            ),
        ),
        hints=(
            "Simulate registering two names, one of them a character longer.",
            "Compare .gas.storage_fee_octas of the two simulations.",
        ),
    )


@_numbered("08.3", int, "octas, negative if Alice gets money back")
def _net_cost_of_a_release(node: Node) -> Exercise:
    gas = _gas(node.simulate(EntryFunction("0xcafe::registry::release", ["alice"]), sender="0xa11ce"))
    fee, net = gas.fee_octas, gas.net_octas
    return Exercise(
        net,
        mistakes=(
            (fee, "This is the fee before the refund."),
            (-net, "The size is right. Does she pay it, or does she get it?"),
            (net - fee, "This is the refund alone. She also pays a fee."),
            (fee - net, "This is the refund alone. She also pays a fee."),
        ),
        hints=(
            "What she pays in the end is the fee minus the refund.",
            "The fee is the gas units charged times 100 octas; the table has the refund in octas.",
        ),
    )


# -- 09 Gas across versions ------------------------------------------------------------------------------------


_BEST_BID = ViewFunction("0xb00c::order_book::best_bid")


@_numbered("09.1", int, "ledger version")
def _version_of_a_fall(node: Node) -> Exercise:
    steps = _steps(node, _BEST_BID)
    fall = steps[steps["change"] < 0].iloc[0]
    rise = steps[steps["change"] > 0].iloc[0]
    return Exercise(
        int(fall["version_after"]),
        mistakes=(
            (int(fall["version_before"]), "This is the last version with the old gas. When does the new one begin?"),
            (int(rise["version_after"]), "At this version its gas rises."),
            (int(fall["gas_after"]), "This is the gas after the fall. At which version is it?"),
        ),
        hints=(
            'Copy the study of the lesson, with calls={"bid": node.contract("0xb00c::order_book").best_bid.call()}.',
            "One change in run.steps is negative; version_after is the first version with the new gas.",
        ),
    )


@_numbered("09.2", int, "gas units")
def _gas_after_the_last_step(node: Node) -> Exercise:
    last = _steps(node, _SIZE).iloc[-1]
    return Exercise(
        int(last["gas_after"]),
        mistakes=(
            (int(last["gas_before"]), "This is what it costs before the step."),
            (int(last["change"]), "This is the change. What does it cost afterwards?"),
            (int(last["version_after"]), "This is the version of the step. What does the call cost there?"),
        ),
        hints=(
            'Copy the study of the lesson, with calls={"names": node.contract("0xcafe::registry").size.call()}.',
            "The last row of run.steps has a column gas_after.",
        ),
    )


@_numbered("09.3", int, "readings")
def _readings_to_find_a_step(_: Node) -> Exercise:
    versions = 1_000_000
    readings = (versions - 1).bit_length()
    return Exercise(
        readings,
        mistakes=(
            (versions // 2, "After the first reading in the middle, half of the versions are left. Go on halving."),
            (readings - 1, "Two to the power of your answer: so many versions can be distinguished. Is it enough?"),
            (versions, "This reads every version. What does a reading in the middle say about the others?"),
        ),
        hints=(
            "Each reading halves the number of versions at which the step can be.",
            "How often can you halve a million until one version is left? Look for a power of two.",
        ),
    )


def _steps(node: Node, call: ViewFunction) -> pd.DataFrame:
    """Return the steps in gas of a call from version 30 to the head."""
    study = Study(title="Exercise", node=node, calls={"call": call}, versions=FindSteps("30:-1"))
    return study.run(progress=False).steps


# -- 10 Steps and causes ---------------------------------------------------------------------------------------


@_numbered("10.1", str, "a cause, one of the words of the table")
def _cause_of_a_step(node: Node) -> Exercise:
    steps = _steps(node, _BEST_BID)
    return Exercise(
        str(steps.loc[steps["change"] < 0, "cause"].iloc[0]),
        mistakes=(
            ("code", "No module was published at this version."),
            ("schedule", "The price list did not change at this version."),
            ("config", "No setting of the network changed at this version."),
            ("mixed", "The transaction did one thing only."),
        ),
        hints=("run.steps has a column cause.", "Take the row with a negative change."),
    )


@_numbered("10.2", str, "a function, address, module and name")
def _function_behind_a_step(_: Node) -> Exercise:
    module = "0xb00c::order_book::"
    return Exercise(
        f"{module}close_day",
        mistakes=(
            *((one, "A function is named by address, module and name.") for one in ("cancel", "close_day", "place")),
            *((f"order_book::{one}", "The address is missing.") for one in ("cancel", "close_day", "place")),
            *((f"{module}{one}", "This function does not make the gas fall so far.") for one in ("cancel", "place")),
            (f"{module}best_bid", "This is the view. Which function did the transaction call?"),
        ),
        hints=(
            "explain() of the study says what the transaction at the step did.",
            "Look for the sentence at the version of the fall: the function is in brackets.",
        ),
    )


@_numbered("10.3", int, "ledger version")
def _schedule_that_moved_nothing(node: Node) -> Exercise:
    frame = timeline(node, "30:-1", modules=["0xde5c::desk"])
    versions = [int(one) for one in frame.loc[frame["kind"] == "schedule", "ledger_version"]]
    quiet, tenfold, with_code = versions
    return Exercise(
        quiet,
        mistakes=(
            (tenfold, "This one moved every call."),
            (with_code, "At this version the supply has a step."),
        ),
        hints=(
            'The timeline has three rows of the kind "schedule".',
            "Which of their versions is missing in the column version_after of run.steps?",
        ),
    )


# -- 11 Entry functions: what people paid ----------------------------------------------------------------------


@_numbered("11.1", int, "registrations")
def _failed_registrations(node: Node) -> Exercise:
    success = _registrations(node)["success"]
    failed = int((~success).sum())
    return Exercise(
        failed,
        mistakes=(
            (len(success) - failed, "These succeeded. How many did not?"),
            (len(success), "These are all registrations."),
        ),
        hints=("The column success is true or false.", 'paid["success"].value_counts() counts both.'),
    )


@_numbered("11.2", int, "octas")
def _octas_of_failures(node: Node) -> Exercise:
    frame = _registrations(node)
    octas = [int(gas) * int(price) for gas, price in zip(frame["gas_used"], frame["gas_unit_price"], strict=True)]
    failed = [not success for success in frame["success"]]
    units = sum(int(gas) for gas, wanted in zip(frame["gas_used"], failed, strict=True) if wanted)
    return Exercise(
        sum(one for one, wanted in zip(octas, failed, strict=True) if wanted),
        mistakes=(
            (units, "This is in gas units. What did they cost?"),
            (sum(octas), "This is what all registrations paid. Take only those that failed."),
        ),
        hints=('paid[~paid["success"]] has the failed ones.', "Multiply gas_used by gas_unit_price, then add up."),
    )


@_numbered("11.3", str, "a part of the fee")
def _part_that_rose_most(_: Node) -> Exercise:
    return Exercise(
        "execution",
        mistakes=(
            ("storage", "A registration that fails stores nothing."),
            ("io", "This part rose, too, but by less than another one."),
            ("input and output", "Answer with the word that the question has for this part."),
        ),
        hints=("Read the sentence on failing registrations in run.explain().", "It has the change of each part."),
    )


def _registrations(node: Node) -> pd.DataFrame:
    """Return the committed registrations of lesson 11."""
    transactions = fetch_transactions(node, "3000:3999", progress=False).transactions
    return transactions[transactions["function"] == address("0xcafe::registry::register")]


# -- 12 Write a contract in Python -----------------------------------------------------------------------------

_TIP = "0x7195::tips::tip"
_TOTAL = ViewFunction("0x7195::tips::total")


@cache
def _tipped(tips: int) -> Ledger:
    """Return a ledger with the contract of lesson 12 and as many tips; every call gets the same one."""
    ledger = Ledger()
    ledger.publish(Tips)
    with ledger.block():
        for amount in range(1, tips + 1):
            ledger.execute(EntryFunction(_TIP, [amount]), sender="0xa11ce")
    return ledger


@_numbered("12.1", str, "the number of an abort code, as the status has it")
def _abort_of_a_tip(_: Node) -> Exercise:
    status = _tipped(0).profile(EntryFunction(_TIP, [0]), sender="0xb0b").vm_status
    name, number, text = status.split(": ", 1)[1].replace("(", "|").replace("): ", "|").split("|")
    return Exercise(
        number,
        mistakes=(
            (name, "This is its name. The status has its number, too."),
            (text, "This is the description. The number is before it."),
            (status, "This is the whole status. Answer with the number alone."),
            (f"{name}({number})", "This is the name with the number. Answer with the number alone."),
            ("0x80001", "This is the number of another error, E_TAKEN. Simulate a tip of 0 octas."),
            ("1", "This is the number in the class. What does the status have?"),
        ),
        hints=(
            'tips.tip(0, sender="0xb0b").vm_status says how the call ended.',
            "The number begins with 0x and is in brackets, after the name.",
        ),
    )


@_numbered("12.2", int, "gas units")
def _gas_saved_by_an_upgrade(_: Node) -> Exercise:
    ledger = Ledger()
    ledger.publish(CheaperTips)
    with ledger.block():
        for amount in range(1, 101):
            ledger.execute(EntryFunction(_TIP, [amount]), sender="0xa11ce")
    before, after = (each.profile(_TOTAL).gas_used for each in (_tipped(100), ledger))
    return Exercise(
        before - after,
        mistakes=(
            (before, "This is what it costs before the upgrade. How much less is it afterwards?"),
            (after, "This is what it costs after the upgrade. How much more was it before?"),
            (after - before, "The size is right. A saving is a positive number."),
        ),
        hints=(
            'sweep["gas_used"] has the gas of each version: the upgrade is between the last two rows.',
            'Subtract the last of sweep["gas_used"].tolist() from the one before it.',
        ),
    )


@_numbered("12.3", int, "octas")
def _storage_of_a_tip(_: Node) -> Exercise:
    profile = _tipped(100).profile(EntryFunction(_TIP, [5]), sender="0xb0b")
    storage = sum(charge.internal_gas for charge in profile.charges if charge.category == "storage")
    amount, account = 8, 32  # bytes
    today = storage // profile.scaling * 100
    octas = today // amount * (amount + account)
    return Exercise(
        octas,
        mistakes=(
            (octas // 100, "This is in gas units. What are they at a price of 100 octas?"),
            (today, "This is what a tip pays today, with the amount alone."),
            (octas - today, "This is the address alone. The amount is stored as well."),
            (profile.gas_used * 100, "This is the whole fee of today. Storage is a part of it."),
        ),
        hints=(
            'tips.tip(5, sender="0xb0b").gas.storage_fee_octas is what 8 bytes, a u64, cost.',
            "What does one byte cost? The new jar stores 8 and 32 bytes for each tip.",
        ),
    )


# -- 13 Building requests with widgets -------------------------------------------------------------------------


@_numbered("13.1", str, "a type")
def _type_of_an_amount(_: Node) -> Exercise:
    return Exercise(
        "u64",
        mistakes=(
            ("address", "This is the type of the receiver. What is the amount?"),
            ("int", "This is the type in Python. Which one is it on the ledger?"),
            ("number", "Almost. Which type of number?"),
        ),
        hints=("Fill the form with these arguments and call form.check().", "form.error is the message as text."),
    )


@_numbered("13.2", int, "octas")
def _octas_of_a_withdrawal(node: Node) -> Exercise:
    withdrawal = node.simulate(EntryFunction("0xfa17::vault::withdraw", [1_000_000]), sender="0x7ade6")
    octas = int(withdrawal.events_of("0xfa17::vault::Withdrawn")["amount"].iloc[0])
    return Exercise(
        octas,
        mistakes=(
            (1_000_000, "These are the shares. How many octas are paid for them?"),
            (octas - _gas(withdrawal).fee_octas, "This subtracts the fee. How many octas does the vault pay out?"),
        ),
        hints=(
            "The simulation of the form is form.simulation.",
            'Its .events_of("0xfa17::vault::Withdrawn") has a column amount.',
        ),
    )


# -- 14 Gating an upgrade --------------------------------------------------------------------------------------


@_numbered("14.1", int, "percent")
def _rise_in_percent(node: Node) -> Exercise:
    before, after = _gas_of_reading(node, _SIZE)
    return Exercise(
        (after - before) * 100 // before,
        mistakes=(
            (after * 100 // before, "This is how much it is of the old gas. By how much did it rise?"),
            (after - before, "This is the rise in gas units. What is it in percent of the old gas?"),
            (after // before, "It costs so many times as much. By how many percent did it rise?"),
            ((after - before) // before, "It rose by so many times the old gas. How many percent is that?"),
            (
                (after - before) * 100 // after,
                "This is in percent of the new gas. Count from the old.",
            ),
            (800, "This is the rise of the share price."),
        ),
        hints=(
            'node.contract("0xcafe::registry").size.over([3_000, 4_000]) has the gas before and after.',
            "Percent are counted from the old value: rise / old * 100.",
        ),
    )


@_numbered("14.2", int, "calls")
def _regressions_over_a_limit(node: Node) -> Exercise:
    calls = [
        ViewFunction("0xfa17::vault::share_price"),
        ViewFunction("0xfa17::vault::preview", [1_000]),
        ViewFunction("0xb00c::order_book::depth"),
    ]
    reads = [_gas_of_reading(node, call) for call in calls]
    limit = 9
    over = sum(after - before > limit * before for before, after in reads)
    return Exercise(
        over,
        mistakes=(
            (len(calls), "All of them rose, but not all by more than 900 %."),
            (0, "One of the calls grew with its data, too."),
        ),
        hints=('later.gate("900%") shows the regressions.', "len(later.gate(...).regressions) counts them."),
    )


@_numbered("14.3", str, "the label of a call")
def _only_call_with_a_baseline(_: Node) -> Exercise:
    functions = ("0xfa17::vault::share_price", "0xfa17::vault::preview", "0xb00c::order_book::depth")
    return Exercise(
        "book depth",
        mistakes=(
            ("share price", "This call failed at version 13, before its contract was published."),
            ("preview", "This call failed at both versions."),
            *((name, "This is the name of a function. Which label has its call in the study?") for name in functions),
        ),
        hints=(
            "Copy the study with versions=[13, 2_250]; compare run.at(13) with run.at(2_250).",
            "The gate has a note with the calls that are not judged.",
        ),
    )


def _gas_of_reading(node: Node, call: ViewFunction) -> tuple[int, int]:
    """Return the gas of a view at versions 3,000 and 4,000."""
    before, after = (int(gas) for gas in fetch_views(node, call, [3_000, 4_000], progress=False)["gas_used"])
    return before, after


# -- 15 The same on a public node ------------------------------------------------------------------------------


@_numbered("15.1", int, "reads")
def _reads_with_a_cache(_: Node) -> Exercise:
    versions = 200
    return Exercise(
        versions,
        mistakes=(
            (2 * versions, "This would be without a cache. Can the answer at a pinned version change?"),
            (0, "The first time, nothing is cached yet."),
        ),
        hints=("What does the cache have after the first round of reads?", "What is left to ask the second time?"),
    )


@_numbered("15.2", int, "minutes")
def _minutes_at_a_limit(_: Node) -> Exercise:
    reads, allowed, minutes = 1_000_000, 5_000, 5
    return Exercise(
        reads // allowed * minutes,
        mistakes=(
            (reads // allowed, "So many times 5,000 requests are needed. How long does each take?"),
            (reads // allowed * minutes * 60, "This is in seconds."),
            (reads // allowed // minutes, "Each 5,000 requests take 5 minutes: multiply, do not divide."),
        ),
        hints=("How many times 5,000 requests are a million?", "Each of them takes 5 minutes."),
    )
