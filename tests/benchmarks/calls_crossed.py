"""Count the functions and modules of the toolkit that a first view and a first simulation cross.

Prints, for each of them over a new `Node` of the embedded ledger: distinct functions, modules, and changes of module
between one call of a function and the next. Imports are done before. Functions of the embedded node do not count.

    python tests/benchmarks/calls_crossed.py [--list]
"""

from __future__ import annotations

import sys
from pathlib import Path

import toolkit

PACKAGE = Path(toolkit.__file__).parent
CALL = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0x2", 1])
OPERATIONS = {
    "view": lambda node: node.view("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"]),
    "simulation": lambda node: node.simulate(CALL, sender="0x1"),
}


def crossed(operation, node):
    """Return the functions called as {(module, name): calls}, and the number of changes of module."""
    functions, changes, last = {}, 0, None

    def note(frame, event, _):
        nonlocal changes, last
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)) or code.co_name == "<module>":
            return
        module = Path(code.co_filename).relative_to(PACKAGE).as_posix()
        if module.startswith("embedded/"):
            return
        key = module, getattr(code, "co_qualname", code.co_name)
        functions[key] = functions.get(key, 0) + 1
        changes += module != last
        last = module

    sys.setprofile(note)
    try:
        operation(node)
    finally:
        sys.setprofile(None)
    return functions, changes


def main():
    """Print the counts with a cache in memory, and without one."""
    for cache in ("default", None):
        for name, operation in OPERATIONS.items():
            with toolkit.connect(cache=cache) as warm:
                operation(warm)
            with toolkit.connect(cache=cache) as node:
                functions, changes = crossed(operation, node)
            modules = {module for module, _ in functions}
            where = "with cache" if cache else "no cache"
            print(
                f"{name:10} {where:10}  {len(functions)} functions in {len(modules)} modules, "
                f"{changes} changes of module, {sum(functions.values())} calls"
            )
            if "--list" in sys.argv:
                for (module, function), calls in functions.items():
                    print(f"    {calls:4} {module} {function}")


if __name__ == "__main__":
    main()
