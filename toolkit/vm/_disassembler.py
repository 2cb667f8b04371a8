"""Code as text. Operands are written as names and types, not as indices, so that equal code gives equal text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.vm._code import FRIEND, PUBLIC, Constant, FieldUse, FunctionUse, StructUse
from toolkit.vm._types import ABILITIES, type_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._code import Field, FunctionDefinition, Instruction, StructDefinition


def operand_text(operand: Any) -> str:  # noqa: PLR0911 - a case per kind
    """Return the operand of an instruction as text."""
    match operand:
        case None:
            return ""
        case FunctionUse():
            function = operand.function
            return f"{function.module}::{function.name}{type_list(operand.arguments or ())}"
        case StructUse(struct, arguments, variant):
            of = "" if variant is None else f"::{struct.variant_names[variant]}"
            return f"{struct.name}{type_list(arguments)}{of}"
        case FieldUse(struct, arguments, offset, variants):
            of = "|".join(struct.variant_names[at] for at in variants)
            field = struct.fields_of(variants[0] if variants else None)[offset]
            return f"{struct.name}{type_list(arguments)}{'::' * bool(of)}{of}.{field.name}"
        case Constant():
            return f"{operand.type} {operand.data.hex()}"
        case tuple():
            return ", ".join(map(operand_text, operand))
    return str(operand)


def instruction_text(instruction: Instruction) -> str:
    """Return an instruction as text."""
    if instruction.operand is None:
        return instruction.name
    if "Closure" in instruction.name and isinstance(instruction.operand, tuple):
        use, mask = instruction.operand
        return f"{instruction.name}({operand_text(use)}, {mask:#b})"
    return f"{instruction.name}({operand_text(instruction.operand)})"


def disassemble_function(function: FunctionDefinition) -> str:
    """Return a function as text, one instruction a line with its offset."""
    words = {PUBLIC: "public ", FRIEND: "friend "}.get(function.visibility, "")
    words += "entry " * function.is_entry + "native " * function.is_native
    parameters = _type_parameters(function.type_parameters)
    count = len(function.parameters)
    arguments = ", ".join(f"l{at}: {kind}" for at, kind in enumerate(function.parameters))
    results = ", ".join(map(str, function.results))
    head = f"{words}fun {function.name}{parameters}({arguments})" + (f": ({results})" if results else "")
    if function.is_native:
        return head
    local_lines = [f"    l{at}: {kind}" for at, kind in enumerate(function.locals[count:], count)]
    lines = [f"{at:5}: {instruction_text(one)}" for at, one in enumerate(function.code)]
    return "\n".join([head, *local_lines, *lines])


def _type_parameters(abilities: Sequence[int]) -> str:
    parts = [f"T{at}" + _has(bits, ": ") for at, bits in enumerate(abilities)]
    return f"<{', '.join(parts)}>" if parts else ""


def _has(bits: int, before: str) -> str:
    names = " + ".join(name for name, bit in ABILITIES.items() if bits & bit)
    return before + names if names else ""


def struct_text(struct: StructDefinition) -> str:
    """Return the definition of a struct or enum as text."""
    parameters = [
        "phantom " * parameter.phantom + f"T{at}" + _has(parameter.abilities, ": ")
        for at, parameter in enumerate(struct.type_parameters)
    ]
    kind = "struct" if struct.variants is None else "enum"
    generic = f"<{', '.join(parameters)}>" if parameters else ""
    head = f"{kind} {struct.name}{generic}{_has(struct.abilities, ' has ')}"
    if struct.variants is None:
        return f"{head} {{ {_fields(struct.fields)} }}"
    lines = [f"    {variant.name} {{ {_fields(variant.fields)} }}" for variant in struct.variants]
    return "\n".join([head, *lines])


def _fields(fields: Sequence[Field]) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in fields)


class CodeChanges(NamedTuple):
    """Names of functions that differ between two versions of a module.

    Examples
    --------
    >>> from toolkit import vm
    >>> vm.CodeChanges(added=("mint",), removed=(), changed=()).added
    ('mint',)
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def code_changes(old: Any, new: Any) -> CodeChanges:
    """Compare the functions of two versions of a module.

    Parameters
    ----------
    old, new : Module

    Returns
    -------
    CodeChanges
        Functions that were added, removed and changed. A function whose code only refers to other places in the tables
        of the module has not changed.

    Examples
    --------
    >>> from toolkit import vm
    >>> product = bytes.fromhex(
    ...     "a11ceb0b0600000006010002030205050703070a090813200c331300000001000000010300016d06646f75626c650000"
    ...     "00000000000000000000000000000000000000000000000000000000cafe0001000001040b0006020000000000000018"
    ...     "0200"
    ... )
    >>> total = bytes.fromhex(
    ...     "a11ceb0b0600000006010002030205050703070a090813200c330c00000001000000010300016d06646f75626c650000"
    ...     "00000000000000000000000000000000000000000000000000000000cafe0001000001040a000b00160200"
    ... )
    >>> vm.code_changes(vm.Module.from_bytes(product), vm.Module.from_bytes(total))
    CodeChanges(added=(), removed=(), changed=('double',))
    """
    before = {name: disassemble_function(one) for name, one in old.functions.items()}
    after = {name: disassemble_function(one) for name, one in new.functions.items()}
    return CodeChanges(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name in after if name in before and after[name] != before[name]),
    )


def disassemble_module(module: Any) -> str:
    """Return a module as text: its structs, then its functions."""
    head = f"module {module.id}  // version {module.version}, {module.size:,} bytes"
    structs = [struct_text(one) for one in module.structs.values()]
    functions = [disassemble_function(one) for one in module.functions.values()]
    return "\n\n".join([head, *structs, *functions])
