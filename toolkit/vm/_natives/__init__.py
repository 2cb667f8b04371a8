"""Native functions by name, one module of natives per Move module or small group of them.

A native is a function that registers itself by the name that Move code calls::

    @native("0x1::hash::sha2_256")
    def sha2_256(call: NativeCall, data: bytearray) -> tuple[Value]:
        call.charge_base("move_stdlib.hash.sha2_256", "per_byte", len(data))
        return (bytearray(hashlib.sha256(data).digest()),)

*Arguments* follow `call`, one per parameter, as values of `toolkit.vm._values`: int, bool, bytes for an address,
bytearray for ``vector<u8>`` (the native owns it), list for other vectors and structs. A reference is a tuple
``(container, slot, root)``: read it with ``read_ref(reference)``, write through it with ``write_ref(reference, value)``
or change the container that ``touch(reference)`` returns.

*Type arguments* are ``call.types``, a tuple of `toolkit.vm._types.Type`; equal types are one object.

*Results* are returned as a tuple with one value per result; None if the function has none. Return containers that
nothing else refers to. ``vector<u8>`` is a bytearray, not bytes; a struct is a list of its fields; ``Option`` is what
``call.option(value)`` returns, with None for none.

*Gas*: ``call.charge(amount)`` is one entry of the gas log, so charge in the steps of a node, each before its work.
Prices are read with ``call.price("aptos_framework.hash.keccak256.base")``; ``call.charge_base`` covers base and length.
Out of gas is an exception that passes through.

*Aborts*: ``raise call.abort(code)``. Any other failure: ``raise MoveError("VM_EXTENSION_ERROR")``, with the name of the
status code. The machine sets the location. What is not implemented: ``raise Unsupported("...")``, naming it.

*Context of the session* (handles to points, counters): ``call.context(Points)`` returns the session's object of that
class, made without arguments at the first call. ``call.feature(13)`` returns whether a flag is on.
``call.machine`` has the rest: `schedule` (with `version`), `layouts`, `session`, `meter`.

Importing this package registers all of them: every module in this folder is imported.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from toolkit.vm._natives._registry import NATIVES as NATIVES

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
