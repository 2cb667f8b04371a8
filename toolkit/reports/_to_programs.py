"""Reports and comparisons for other programs: JSON, JUnit XML and GitHub annotations.

Integers beyond 2^53 are text in JSON, because many parsers would round them. JUnit XML is written with the standard
library, because it has few elements and no library removes the control characters that XML forbids.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET  # it only writes
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.tables import json_value
from toolkit._present.text import visible
from toolkit.dtypes import to_arrow
from toolkit.gas import _sentences as sentences
from toolkit.gas._verdict_sentences import gate_lines, why_text
from toolkit.gas.committed._fees import Verdict
from toolkit.reports._data import ReportData, headline, notes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Finding, Gate
    from toolkit.gas._paired import PairedComparison
    from toolkit.gas._steps import StepGroup


FORMAT = 1  # increases when a name or a meaning changes, not when a name is added
# Frames, and events, which are added with their sentences.
_LEFT_OUT = frozenset({"observations", "steps", "events", "paid", "dates", "verdict"})
_MAX_LINE = 1_000
_GROUPS = ("regressions", "not_judged", "waived", "without_baseline")


def render(data: ReportData) -> str:
    """Return a report as JSON: the fields of `ReportData`, ``format``, ``headline``, ``gate`` and ``not_steps``.

    Parameters
    ----------
    data : ReportData
        Its frames are omitted; the run's Parquet files contain them.

    Returns
    -------
    str
        ASCII, indented. Text from users and the chain is unchanged.
    """
    content: dict[str, Any] = {"format": FORMAT, "headline": headline(data, visible) + notes(data, visible)}
    names = [entry.name for entry in fields(data) if entry.name not in _LEFT_OUT]
    content |= {name: msgspec.to_builtins(getattr(data, name)) for name in names}
    content["events"] = [_group(group) for group in data.events]
    content["gate"] = None if data.verdict is None else _gate(data.verdict[1])
    content["not_steps"] = sentences.not_steps_sentences(data.committed, visible)
    return json.dumps(json_value(content), indent=2, ensure_ascii=True) + "\n"


def comparison_json(comparison: Comparison | PairedComparison, gate: Gate | None = None) -> str:
    """Return a comparison as JSON, with every call.

    Parameters
    ----------
    comparison : Comparison or PairedComparison
    gate : Gate, optional

    Returns
    -------
    str
        ASCII, indented.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "before": comparison.names[0],
        "after": comparison.names[1],
        "warnings": list(comparison.warnings),
        "counts": comparison.counts,
        "left_out": [label for label, *_ in comparison.left_out],
        "gate": None if gate is None else _gate(gate),
        "calls": json_value(to_arrow(comparison.calls).to_pylist()),
    }
    return json.dumps(content, indent=1, ensure_ascii=True) + "\n"


def comparison_junit(comparison: Comparison | PairedComparison, gate: Gate) -> bytes:
    """Return the verdict of a gate as JUnit XML: one test case per call.

    A regression is a failure, and a call that could not be judged is an error. Waived calls, those without a baseline,
    and those that are allowed although they could not be judged, are skipped, with the reason. The suite's
    ``system-out`` describes the verdict.

    Parameters
    ----------
    comparison : Comparison or PairedComparison
    gate : Gate

    Returns
    -------
    bytes
        UTF-8 text, which is identical for equal verdicts.
    """
    suite = ET.Element("testsuite", name=_line(f"gas: {comparison.names[0]} compared with {comparison.names[1]}"))
    outcomes: dict[tuple[str, str, str], list[tuple[str, Finding]]] = {}
    for key in comparison.calls[["label", "source", "node"]].itertuples(index=False, name=None):
        outcomes.setdefault(key, [])
    unjudged = "skipped" if gate.unjudged_allowed else "error"
    skipped = (*gate.waived, *gate.without_baseline)
    for kind, ones in (("failure", gate.regressions), (unjudged, gate.not_judged), ("skipped", skipped)):
        for one in ones:
            outcomes.setdefault((one.label, one.source, one.node), []).append((kind, one))
    for (label, source, node), found in outcomes.items():
        case = ET.SubElement(suite, "testcase", name=_line(label), classname=_line(f"{source} on {node}"), time="0")
        if found:  # committed calls may have several, one for each kind of transaction; the worst is first
            texts = [_line(_because(one)) for _, one in found]
            ET.SubElement(case, found[0][0], message=_line(_reason(found[0][1]))).text = "\n".join(texts)
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f".//{tag}"))))
    suite.set("time", "0")
    ET.SubElement(suite, "system-out").text = "\n".join(map(_line, gate_lines(gate, sentences.label_text)))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def comparison_annotations(
    comparison: Comparison | PairedComparison,
    gate: Gate | None = None,
    *,
    file: str | None = None,
    lines: Mapping[tuple[str, str], int] | None = None,
) -> str:
    """Return the verdict of a gate as GitHub workflow commands, which become annotations on a pull request.

    Text from users and the chain occurs only inside the commands, escaped, because GitHub reads any line that starts
    with ``::`` or contains ``##[`` as a command.

    Parameters
    ----------
    comparison : Comparison or PairedComparison
    gate : Gate, optional
        Without a gate, there are only the comparison's notes, as notices.
    file : str, optional
        The file to which the annotations are attached: a study or a snapshot.
    lines : mapping of (str, str) to int, optional
        Line numbers in `file` by node and label, or by an empty node and a label; annotations of other calls are
        attached to the file as a whole.

    Returns
    -------
    str
        One command per line, then a line with the verdict, or with the counts if no gate is given.
    """
    where = "" if file is None else f"file={_escaped(file).replace(':', '%3A').replace(',', '%2C')},"

    def command(level: str, title: str, text: str, node: str = "", label: str = "") -> str:
        number = (lines or {}).get((node, label)) or (lines or {}).get(("", label))
        line = f"line={number}," if where and number else ""
        return f"::{level} {where}{line}title={title}::{_escaped(text)}"

    shown = comparison.shown(sentences.label_text, gate)
    said = (*shown.notes, *(gate.notes if gate else ()))
    notices = [command("notice", "Gas comparison", note) for note in said]
    if gate is None:
        return "\n".join([*notices, shown.counts, ""])
    unjudged = "warning" if gate.unjudged_allowed else "error"
    kinds = (
        ("error", "Gas regression", gate.regressions),
        (unjudged, "Gas not judged", gate.not_judged),
        ("warning", "Excused", gate.waived),
    )
    about = [
        command(level, title, f"{one.label}: {_because(one)}", one.node, one.label)
        for level, title, ones in kinds
        for one in ones
    ]
    return "\n".join([*about, *notices, gate_lines(gate, sentences.label_text)[0], ""])


def _reason(one: Finding) -> str:
    """Return the reason for the verdict on a call, with the waiver that excuses it."""
    return f"{'waived: ' if one.waiver else ''}{why_text(one, visible)}"


def _because(one: Finding) -> str:
    """Return the reason for the verdict on a call, and why its gas changed if that is known."""
    judged = one.verdict is not Verdict.NOT_JUDGED
    return "; ".join([_reason(one), *([one.explanation] if one.explanation and judged else [])])


def _line(text: str) -> str:
    """Return text on one line, without characters that XML forbids or that control a terminal."""
    return visible(text, _MAX_LINE)


def _escaped(text: str) -> str:
    return _line(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _group(group: StepGroup) -> dict[str, Any]:
    """Return a group of steps as data, with the sentences of `Run.explain`."""
    changes = [asdict(change) | {"text": sentences.change_text(change, visible)} for change in group.changes]
    return asdict(group) | {"text": sentences.group_text(group, visible), "changes": changes}


def _gate(gate: Gate) -> dict[str, Any]:
    general = gate.rules.threshold
    return {
        "passed": gate.passed,
        "verdict": gate.verdict,
        "judged": gate.judged,
        "day": str(gate.day),
        "unjudged_allowed": gate.unjudged_allowed,
        "threshold": None if general is None else general.model_dump(exclude_none=True),
        "thresholds_of_calls": {label: one.model_dump(exclude_none=True) for label, one in gate.rules.own.items()},
        **{name: [_finding(one) for one in getattr(gate, name)] for name in _GROUPS},
        "notes": list(gate.notes),
    }


def _finding(one: Finding) -> Any:
    waiver = None if one.waiver is None else one.waiver.model_dump(mode="json", exclude_none=True)
    limit = None if one.limit is None else one.limit.model_dump(exclude_none=True)
    known = {entry.name: getattr(one, entry.name) for entry in fields(one) if entry.name not in {"why", "figures"}}
    return json_value(known | {"reason": one.reason, "limit": limit, "waiver": waiver})
