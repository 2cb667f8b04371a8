"""Save ledgers to files and load them; cache seeded histories.

A file consists of a mark, a SHA-256 digest, and the content in MessagePack. It contains only numbers, text and bytes:
loading a file runs no code. The code of published modules is not in the file. The loader finds each class by address,
name, revision, bytecode (which depends on the ABI and the error constants) and the digest of its Python code.
"""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeGuard

import msgspec

from toolkit._present.files import cache_folder, read_file, replacing
from toolkit.embedded._chain import Chain, Milestone, MilestoneKind, Nonnegative, Settings
from toolkit.embedded._code import CodeSet
from toolkit.embedded._contract import Module, code_digest
from toolkit.embedded._history import CONTRACTS
from toolkit.embedded._meter import Charges
from toolkit.embedded._session import TableTypes
from toolkit.embedded._state import StateKey, StateValue
from toolkit.embedded._transaction import CommittedTransaction, LedgerBlock, Output, Transaction, TransactionKind
from toolkit.embedded.framework import FRAMEWORK
from toolkit.embedded.framework._coin import UnflaggedCoin
from toolkit.errors import InputError
from toolkit.move._ids import wire_address
from toolkit.wire import SignedTransaction
from toolkit.wire._on_chain import SUCCESS, EmittedEvent, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolkit.embedded._definitions import Definition

    _Find = Callable[[list["_SavedModule"]], list[Definition]]


# After the first release, a change of the content changes the number. Files from before it have rows of other types, so
# reading them is an InputError.
_MARK = b"ledger-toolkit ledger 1\n"
_DIGEST_BYTES = 32
_MAX_CACHED_FILES = 16  # of 1 to 8 MB each
_PREFIX, _SUFFIX = "history-", ".ledger"
# Packages whose code decides what a history contains.
_SOURCES = ("embedded", "move", "wire")

_OWN: tuple[type[Module], ...] = (*FRAMEWORK, UnflaggedCoin, *CONTRACTS)

_log = logging.getLogger("toolkit.embedded")


class _SavedModule(NamedTuple):
    """A published module: canonical address, name, revision, bytecode, and the digest of its Python code."""

    address: str
    name: str
    revision: int
    bytecode: bytes
    digest: bytes


class _Row(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """A transaction; the keys of its writes are indices into the file's list of keys."""

    kind: TransactionKind
    hash: str
    timestamp_us: Nonnegative
    failure: Status | None  # None if it succeeded: 90 bytes less in most rows
    vm_status: str
    charges: Charges
    writes: dict[int, StateValue | None]
    events: tuple[EmittedEvent, ...]
    tables: dict[str, TableTypes]
    request: bytes | None


class _Content(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """A whole ledger without the code of its modules."""

    settings: Settings
    next_time_us: Nonnegative
    block_us: Nonnegative
    milestones: list[tuple[int, MilestoneKind, str]]
    modules: list[_SavedModule]
    published: Annotated[list[tuple[int, list[int]]], msgspec.Meta(min_length=1)]
    keys: list[tuple[Literal["module", "resource", "group", "table"], str, bytes]]
    older: list[tuple[int, int, StateValue | None]]
    blocks: Annotated[list[LedgerBlock], msgspec.Meta(min_length=1)]
    tables: dict[str, TableTypes]
    transactions: list[_Row]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Content).decode


class _StoredTransaction(Transaction):
    """A transaction from a file; its bytes are decoded when an attribute other than the hash is first read."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes, hash_: str) -> None:
        self._data = data
        self.hash = hash_

    def __getattr__(self, name: str) -> Any:
        """Decode the transaction; Python calls this for attributes that are not set."""
        if name not in Transaction.__slots__:
            raise AttributeError(name)
        super().__init__(SignedTransaction.from_bcs(self._data))
        return getattr(self, name)


# -- writing ---------------------------------------------------------------------------------------------------------


def write_ledger(chain: Chain, path: str | os.PathLike[str]) -> Path:
    """Write a ledger to a file atomically.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    place = Path(path)
    with chain.lock:
        content = _encode(_content(chain))
    try:
        with replacing(place) as file:
            file.write(_MARK + hashlib.sha256(content).digest())
            file.write(content)
    except OSError as error:
        raise InputError(f"{place}: cannot write the ledger ({error.strerror or error})") from None
    return place


def _content(chain: Chain) -> _Content:
    keys: dict[StateKey, int] = {}
    modules: dict[_SavedModule, int] = {}
    written = chain.state.written_before(chain.oldest_version)
    older = [
        (version, keys.setdefault(key, len(keys)), value)
        for version, key, value in sorted(written, key=lambda one: (one[0], one[1].kind, one[1].owner, one[1].item))
    ]
    rows = []
    for done in chain.transactions:
        output = done.output
        row = _Row(
            kind=done.kind,
            hash=done.hash,
            timestamp_us=done.timestamp_us,
            failure=None if output.success else output.status,
            vm_status=output.vm_status,
            charges=output.charges,
            writes={keys.setdefault(key, len(keys)): value for key, value in output.writes.items()},
            events=output.events,
            tables=dict(output.tables),
            request=None if done.request is None else done.request.signed.to_bcs(),
        )
        rows.append(row)
    published = [
        (version, [modules.setdefault(_saved_module(one), len(modules)) for one in code.modules.values()])
        for version, code in zip(chain.code_versions, chain.codes, strict=True)
    ]
    return _Content(
        settings=chain.settings,
        next_time_us=chain.next_time_us,
        block_us=chain.block_us,
        milestones=[(one.version, one.kind, one.text) for one in chain.milestones],
        modules=list(modules),
        published=published,
        keys=[(key.kind, key.owner, key.item) for key in keys],
        older=older,
        blocks=chain.blocks,
        tables=chain.tables,
        transactions=rows,
    )


def _saved_module(definition: Definition) -> _SavedModule:
    digest = code_digest(definition.contract)  # type: ignore[arg-type]  # classes are hashable
    return _SavedModule(definition.address, definition.name, definition.revision, definition.bytecode, digest)


# -- reading ---------------------------------------------------------------------------------------------------------


def read_ledger(path: str | os.PathLike[str], contracts: Iterable[type[Module]] = ()) -> Chain:
    """Read a ledger from a file.

    Parameters
    ----------
    path : path-like
        The file.
    contracts : iterable of type of Module, optional
        Classes of the published modules, except the framework and the contracts of `with_history`.

    Raises
    ------
    InputError
        If the file cannot be read, is damaged, is not a saved ledger, has the format of another release, or contains a
        module whose class is missing or has different code.
    """
    try:
        data = read_file(path)
    except OSError as error:
        raise InputError(f"{path}: cannot read the ledger ({error.strerror or error})") from None
    return _unpacked(data, str(path), lambda modules: _given_classes(modules, contracts, str(path)))


def _unpacked(data: bytes, name: str, find: _Find) -> Chain:
    """Return the ledger in the bytes of a file; `find` returns the definitions of the published modules."""
    mark, start = data[: len(_MARK)], len(_MARK) + _DIGEST_BYTES
    if mark != _MARK:
        expected = f"expected a file that starts with {_MARK.decode().strip()!r}"
        if not mark.startswith(_MARK[:-2]):
            raise InputError(f"{name}: the file was not written by Ledger.save: {expected}")
        raise InputError(
            f"{name}: the file has the format of another release of the toolkit: {expected}; load it with that "
            "release, or rebuild the ledger and save it again"
        )
    content = memoryview(data)[start:]
    if hashlib.sha256(content).digest() != data[len(_MARK) : start]:
        raise InputError(f"{name}: the file is damaged, because its content does not match its digest; save it again")
    try:
        saved = _decode(content)
        return _restored(saved, find(saved.modules))
    except InputError:
        raise
    except (msgspec.DecodeError, ValueError, TypeError, IndexError, KeyError, OverflowError) as error:
        raise InputError(f"{name}: the file does not contain a complete ledger: {error}") from None


def _restored(saved: _Content, definitions: list[Definition]) -> Chain:
    chain = Chain(saved.settings, saved.next_time_us, saved.block_us)
    chain.milestones += [Milestone(*milestone) for milestone in saved.milestones]
    keys = [StateKey(kind, owner, item if kind == "table" else item.decode()) for kind, owner, item in saved.keys]
    first = saved.blocks[0].first_version
    _check_versions(saved.blocks, [version for version, _ in saved.published], first + len(saved.transactions) - 1)
    chain.blocks += saved.blocks
    chain.oldest_version = first
    no_code = CodeSet({}, enum_variants=saved.settings.enum_variants)
    for version, places in saved.published:
        chain.add_code(version, no_code.with_modules(definitions[place] for place in places))
    for version, place, value in saved.older:
        chain.state.write(version, {keys[place]: value})
    for version, row in enumerate(saved.transactions, start=first):
        output = Output(
            status=row.failure or SUCCESS,
            vm_status=row.vm_status,
            charges=row.charges,
            writes={keys[place]: value for place, value in row.writes.items()},
            events=row.events,
            tables=row.tables,
        )
        request = None if row.request is None else _StoredTransaction(row.request, row.hash)
        code = chain.code_at(version)
        chain.add(CommittedTransaction(version, row.kind, row.hash, output, row.timestamp_us, request, code))
    chain.tables.update(saved.tables)
    return chain


def _check_versions(blocks: list[LedgerBlock], published: list[int], head: int) -> None:
    """Raise ValueError if the versions of blocks, modules and transactions are inconsistent."""
    first = blocks[0]
    follows = all(
        (after.height, after.first_version) == (before.height + 1, before.last_version + 1)
        for before, after in pairwise(blocks)
    )
    grows = all(one.first_version <= one.last_version for one in blocks) and blocks[-1].last_version == head
    if min(first.height, first.first_version) < 0 or not grows or not follows:
        raise ValueError("its blocks are not consecutive, or do not contain all its transactions")
    if published != sorted({*published}) or not 0 <= published[0] <= first.first_version or published[-1] > head:
        raise ValueError("the versions of its published modules are not in order, or not within its blocks")


def _own_classes(modules: list[_SavedModule]) -> list[Definition]:
    """Return the definitions of a history's modules; their code belongs to this release and is not compared."""
    own = (one.definition for one in _OWN)
    known = {(one.address, one.name, one.revision, one.bytecode): one for one in own}
    return [known[code[:4]] for code in modules]


def _given_classes(modules: list[_SavedModule], contracts: Iterable[type[Module]], name: str) -> list[Definition]:
    """Return the definitions of modules from the framework, the contracts of `with_history`, and `contracts`.

    A class includes the classes that it extends and the classes that it replaced on a ledger in this process.

    Raises
    ------
    InputError
        If classes are missing (the message names all of them), or a class has different code.
    """
    if isinstance(contracts, type):
        raise InputError(f"contracts must be a list of classes, got {contracts!r:.80}: write contracts=[...]")
    given, classes = [*contracts], dict.fromkeys(_OWN)
    while given:
        one = given.pop()
        if not _is_contract(one):
            raise InputError(f"contracts must be Module classes, such as Vault in contracts=[Vault]; got {one!r:.80}")
        if one not in classes:
            classes[one] = None
            given += [base for base in one.__mro__[1:] if _is_contract(base)] + [*one.replaced]
    known = {_saved_module(one.definition): one.definition for one in classes}
    revisions = {code[:3] for code in known}
    missing: dict[str, list[str]] = {}
    for code in modules:
        if code in known:
            continue
        wire_id = f"{wire_address(code.address)}::{code.name}"
        if code[:3] in revisions:
            raise InputError(
                f"{name}: the class for {wire_id} revision {code.revision} is not the code that was published, so "
                "results would differ; pass the original class: Ledger.load(path, contracts=[...])"
            )
        missing.setdefault(wire_id, []).append(str(code.revision))
    if missing:
        parts = ", ".join(f"{wire_id} (revision {', '.join(numbers)})" for wire_id, numbers in missing.items())
        raise InputError(
            f"{name}: a saved ledger contains no code, and the classes of these contracts are missing: {parts}; pass "
            "the class of each revision: Ledger.load(path, contracts=[...]). In a new notebook, first run the "
            "%%contract cells in order on a new Ledger(), then pass the last class: it includes the earlier revisions"
        )
    return [known[code] for code in modules]


def _is_contract(value: object) -> TypeGuard[type[Module]]:
    return isinstance(value, type) and issubclass(value, Module) and value is not Module


# -- the cache of histories ------------------------------------------------------------------------------------------


def from_cache(build: Callable[[], Chain], *choices: object) -> Chain:
    """Return a ledger from the user's cache, or build it and store it there.

    The file name depends on `choices` and on the toolkit's source code, so that no release reads the file of another
    release. If a file cannot be used, this is logged and the file is replaced. If the cache folder is not writable,
    nothing is stored.

    Parameters
    ----------
    build : callable
        Returns the ledger, which must depend only on `choices`.
    *choices : object
        Everything that the ledger depends on; each must have a stable `repr`.
    """
    named = hashlib.sha256(repr((choices, _sources_digest())).encode()).hexdigest()
    try:
        place = cache_folder() / f"{_PREFIX}{named[:32]}{_SUFFIX}"
        found = _unpacked(read_file(place), str(place), _own_classes)
    except RuntimeError as error:  # the user has no home folder
        _log.info("the history cannot be stored in the cache: %s", error)
        return build()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, InputError) as error:
        _log.warning("the history in the cache cannot be used and is being rebuilt: %s", error)
    else:
        with suppress(OSError):  # the folder belongs to somebody else
            os.utime(place)  # its last use, by which files are removed
        return found
    built = build()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_ledger(built, place)
        # Each release and each seed has its own history: those that were not used for longest are removed.
        stored = sorted(place.parent.glob(f"{_PREFIX}*{_SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in stored[_MAX_CACHED_FILES:]:
            path.unlink(missing_ok=True)
    except (OSError, InputError) as error:
        _log.info("the history cannot be stored in the cache: %s", error)
    return built


@cache
def _sources_digest() -> str:
    """Return a digest of the code and the data that determine a history."""
    package = Path(__file__).parents[1]
    hashed = hashlib.sha256()
    for part in _SOURCES:
        for path in sorted((package / part).rglob("*")):
            if path.suffix in {".py", ".csv"}:
                data = path.read_bytes()
                hashed.update(f"{path.relative_to(package).as_posix()} {len(data)} ".encode() + data)
    return hashed.hexdigest()
