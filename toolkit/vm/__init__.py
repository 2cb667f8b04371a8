"""The Move machine: runs the bytecode of a ledger on its state, without I/O, and agrees with the nodes to the gas unit.

`execute` runs a transaction from prologue to epilogue, `run_view` a view function. Both take the state as a function
of state keys, which reads it from wherever it is. What the machine does not implement raises `Unsupported`, with the
name of it; it never guesses.

Module map, for readers of the code:

- reading: `_binary`, `_instructions`, `_module` (files to records of `_code`), `_metadata`, `_disassembler`, `_writer`
- values: `_types`, `_values`, `_bcs`, `_layouts` (how values of a type are copied, measured, written and read)
- running: `_compile` (functions to typed pieces of steps), `_operations` (the steps), `_interpreter` (frames, calls,
  globals), `_natives`, `_access`, `_checks` (of code that nobody has verified)
- gas: `_schedule` (prices and features), `_gas` (the meter and its log), `_charges` (changes of the state), `_trace`
- state: `_state` (keys, overlay, session), `_environment` (configuration), `_loader` (modules of the state)
- entry points: `_transaction`, `_signers`, `_arguments`, `_publish`, `_view`, `_results`
"""

from toolkit.errors import Unsupported
from toolkit.vm._disassembler import CodeChanges, code_changes
from toolkit.vm._module import Module
from toolkit.vm._results import Execution, Status, View
from toolkit.vm._transaction import execute
from toolkit.vm._view import run_view

__all__ = ["CodeChanges", "Execution", "Module", "Status", "Unsupported", "View", "code_changes", "execute", "run_view"]


def __dir__() -> list[str]:
    return sorted(__all__)
