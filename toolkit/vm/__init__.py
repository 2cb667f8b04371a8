"""The Move machine: runs the bytecode of a ledger on its state, without I/O, and agrees with the nodes to the gas unit.

`execute` runs a transaction from prologue to epilogue, `run_view` a view function. Both take the state as a function
of state keys, which reads it from wherever it is. What the machine does not implement raises `Unsupported`, with the
name of it; it never guesses.

Module map, in the order in which to read the code:

- words: `_errors` (status codes), `_types`, `_values` (Move values in Python), `_code` (instructions, and what
  modules consist of)
- files: `_binary` (the format, for both directions), `_module` (also code as text)
- BCS: `_bcs` (type tags), `_layouts` (how values of a type are copied, measured, written and read)
- state: `_state` (keys, overlay, session), `_features`, `_environment` (configuration), `_loader` (modules)
- gas: `_gas_versions`, `_schedule` (prices), `_gas` (the meter and its log), `_charges` (changes of the state)
- running: `_operations` (instructions: types, cost and step), `_compile` (functions to pieces with their costs),
  `_interpreter` (frames, calls, globals), `_natives`, `_access`
- transactions: `_ed25519`, `_arguments`, `_publish`, `_batch` (scripts that make calls in a row)
- entry points: `_transaction` (from prologue to epilogue), `_view`, `_results` (also profile and trace)

Three words recur in the code. The *abstract size* of a value is what gas and memory are charged by, not its number
of bytes. A *scalar* is a value that cannot be changed in place: an integer, a bool, an address or a reference. A *kind*
is a type, as `type` is Python's.

Names are imported on first use: reading a state key or a module does not import the machine.
"""

from __future__ import annotations

from lazy_loader import attach_stub as _attach_stub

from toolkit.errors import Unsupported as Unsupported

__getattr__, _, _lazy = _attach_stub(__name__, __file__)
__all__ = sorted(["Unsupported", *_lazy])  # noqa: PLE0605 - a list


def __dir__() -> list[str]:
    return list(__all__)
