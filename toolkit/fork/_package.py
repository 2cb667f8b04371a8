"""Packages to publish: modules and metadata from a folder of the compiler, or from bytes of modules."""

from __future__ import annotations

import os
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from toolkit._present.files import checked_path, read_file
from toolkit.errors import InputError, SchemaError
from toolkit.move import decode_bcs, encode_bcs, parse_type_tag
from toolkit.move._ids import address_from_bytes
from toolkit.vm import Module
from toolkit.vm._types import struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from toolkit.fork._ledger import ForkLedger
    from toolkit.fork._render import StateAbis

_REGISTRY, _METADATA = "0x1::code::PackageRegistry", "0x1::code::PackageMetadata"
_COMPATIBLE = 1  # upgrade policy
_MAX_FILE = 16 * 1024 * 1024  # far above the size of a transaction


@dataclass(frozen=True)
class Package:
    """Modules of one account, with the metadata that is published with them.

    Attributes
    ----------
    address : str
    codes : tuple of bytes
        In the order of publication.
    modules : tuple of Module
    metadata : bytes or None
        BCS of ``0x1::code::PackageMetadata``.
    """

    address: str
    codes: tuple[bytes, ...]
    modules: tuple[Module, ...]
    metadata: bytes | None

    @classmethod
    def read(cls, package: str | os.PathLike[str] | bytes | Iterable[bytes], metadata: bytes | None = None) -> Package:
        """Read a package.

        Parameters
        ----------
        package : path, bytes or iterable of bytes
            A folder with ``bytecode_modules/*.mv`` and ``package-metadata.bcs``, or the bytes of modules.
        metadata : bytes, optional
            Replaces ``package-metadata.bcs``.

        Raises
        ------
        InputError
            If the package has no modules, or its modules belong to several accounts.
        """
        if isinstance(package, bytes | bytearray):
            codes = [bytes(package)]
        elif isinstance(package, str | os.PathLike):
            try:
                folder = checked_path(package)
                files = sorted((folder / "bytecode_modules").glob("*.mv"))
                codes = [_contents(file) for file in files]
                if metadata is None and (file := folder / "package-metadata.bcs").is_file():
                    metadata = _contents(file)
            except OSError as error:
                raise InputError(f"the package cannot be read: {error.filename}: {error.strerror}") from None
            if not files:
                raise InputError(
                    f"{folder}: expected the folder of a compiled package, with bytecode_modules/*.mv; compile it first"
                )
        else:
            codes = [bytes(code) for code in package]
        modules = {module.id: (code, module) for code in codes for module in [Module.from_bytes(code)]}
        addresses = {address_from_bytes(module.address) for module in modules}
        if len(addresses) != 1:
            raise InputError(
                f"expected modules of one account, got modules of {', '.join(sorted(addresses)) or 'none'}"
            )
        ordered = _ordered(modules)
        codes_, read = zip(*ordered, strict=True)
        return cls(addresses.pop(), codes_, read, metadata)


def _contents(file: Path) -> bytes:
    data = read_file(file, limit=_MAX_FILE + 1)
    if len(data) > _MAX_FILE:
        raise InputError(f"{file}: expected at most {_MAX_FILE:,} bytes, got more")
    return data


def _ordered(modules: dict[Any, tuple[bytes, Module]]) -> list[tuple[bytes, Module]]:
    """Return modules, each after those of the package that it depends on."""
    needed = {name: sorted(modules.keys() & module.dependencies) for name, (_, module) in modules.items()}
    try:
        return [modules[name] for name in TopologicalSorter(needed).static_order()]
    except CycleError:  # which publishing refuses
        return list(modules.values())


def metadata_of(package: Package, ledger: ForkLedger, abis: StateAbis) -> bytes:
    """Return metadata for modules that were given without: the packages that they depend on are those of the ledger.

    Raises
    ------
    InputError
        If a module that they depend on is not in a package of the ledger.
    """
    own = {module.id for module in package.modules}
    dependencies = {one for module in package.modules for one in module.dependencies} - own
    packages = []
    for needed in sorted(dependencies):
        address = address_from_bytes(needed.address)
        found = next((one for one in _registered(address, ledger, abis) if needed.name in _names(one)), None)
        if found is None:
            raise InputError(
                f"{needed} is in no package of this ledger, so the metadata of the new package cannot be made; pass "
                "metadata=, the contents of package-metadata.bcs"
            )
        packages.append((address, str(found["name"])))
    registered = _registered(package.address, ledger, abis)
    names = {module.id.name for module in package.modules}
    earlier = next((one for one in registered if names & set(_names(one))), None)
    policy = _COMPATIBLE if earlier is None else int(earlier["upgrade_policy"]["policy"])
    nothing: dict[str, Any] = {"source": b"", "source_map": b"", "extension": None}
    metadata = {
        "name": package.modules[0].id.name if earlier is None else str(earlier["name"]),
        "upgrade_policy": {"policy": policy},
        "upgrade_number": 0,  # which publishing sets
        "source_digest": "",
        "manifest": b"",
        "modules": [nothing | {"name": module.id.name} for module in package.modules],
        "deps": [{"account": address, "package_name": name} for address, name in sorted(set(packages))],
        "extension": None,
    }
    return encode_bcs(abis.layout(parse_type_tag(_METADATA)), metadata)


def _registered(address: str, ledger: ForkLedger, abis: StateAbis) -> Sequence[Any]:
    data = ledger.resource(address, struct(_REGISTRY), ledger.version)
    if data is None:
        return ()
    try:
        return decode_bcs(abis.layout(parse_type_tag(_REGISTRY)), data)["packages"]  # type: ignore[no-any-return]
    except (SchemaError, InputError, KeyError, TypeError) as error:
        raise InputError(
            f"the packages of {address} cannot be read ({error}); pass metadata=, the contents of package-metadata.bcs"
        ) from None


def _names(package: Any) -> list[str]:
    return [str(one["name"]) for one in package["modules"]]
