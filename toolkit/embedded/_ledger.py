"""`Ledger`: a ledger in memory that publishes contracts, commits transactions and reads any version."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from toolkit.embedded._history import seeded_ledger
from toolkit.embedded._reader import LedgerReader
from toolkit.embedded._saved import from_cache, read_ledger, write_ledger
from toolkit.embedded._writer import LedgerWriter
from toolkit.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from toolkit.embedded._chain import Chain
    from toolkit.embedded._contract import Module


@contextmanager
def _young_collections_only() -> Iterator[None]:
    """Let the garbage collector look at new objects only: a growing history is never garbage.

    Full collections would go through all of it again and again, which takes a tenth of the time of building it.
    """
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], 1_000_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Ledger(LedgerWriter):
    """A ledger in memory: versioned state, blocks, contracts written in Python, gas from the on-chain schedule.

    Gas comes from a documented cost model, not from a Move VM.

    Parameters
    ----------
    chain_id : int, default 4
        u8; local test networks use 4.
    seed : int, default 0
        Part of every hash and address. Equal seeds and commits give equal ledgers.
    window : int, optional
        Number of latest versions to keep, all by default; older ones are pruned.
    release : str or Schedule, default "v1.41.1"
        Release whose gas schedule is set at genesis, or a schedule, such as one read from another ledger.
    features : collection of int, optional
        Feature flags that are on at genesis. By default, those of public networks that have an effect: 60 pairs the gas
        coin with a fungible asset, 64 and 65 make new accounts and transfers use the asset, 91 makes every address an
        account.
    accounts : mapping of str to int, optional
        Accounts that exist at genesis, with their balances in octas.
    genesis_time : datetime, optional
        Start of ledger time; 2026-01-01 UTC by default.
    block_time : timedelta, default 1 s
        Ledger time between blocks.
    epoch_time : timedelta, default 2 h
        Length of an epoch.
    decoded_tables : bool, default True
        Whether changes of table items are shown with key and value decoded, as on public nodes. If False, their
        ``data`` is null, as on nodes without a table indexer.
    enum_variants : bool, default False
        Whether ABIs list the variants of enums, as nodes do since 2026. If False, a client cannot give types to the
        fields of enum values.
    execution_timeout_s : float or None, default 5
        Time limit of a view or a transaction in seconds, which ends loops that use no gas: the execution fails with
        ``EXECUTION_LIMIT_REACHED``. None for no limit. Not saved with the ledger; also an attribute.
    raise_on_failure : bool, default False
        Whether `execute` and `commit` raise `Aborted` if a transaction fails; ``check=`` overrides this for one call.
        Also an attribute.
    fund_new_senders : bool, default False
        Whether a sender without an account first gets 1,000 APT. Also an attribute.

    Raises
    ------
    InputError
        If the window is below 1, or the chain id, a time, the release or an address is not valid.

    Examples
    --------
    >>> from toolkit import embedded
    >>> ledger = embedded.Ledger()
    >>> done = ledger.commit("0x1::aptos_account::transfer", "0xb0b", 100, sender="0xa11ce")
    >>> done.success
    True
    """

    @classmethod
    def with_history(
        cls,
        seed: int = 7,
        versions: int = 5_000,
        *,
        window: int | None = None,
        decoded_tables: bool = True,
        cache: bool = False,
    ) -> Self:
        """Return a ledger with a seeded history; `milestones` lists the events that changed gas.

        Accounts register names at ``0xcafe::registry`` and place orders at ``0xb00c::order_book``. The vault at
        ``0xfa17::vault`` is upgraded to cheaper code, and so is the feed that ``0xde5c::desk`` calls. Governance
        changes the gas schedule (once tenfold), a feature flag, and the framework together with the schedule.

        Parameters
        ----------
        seed : int, default 7
            Equal seeds give equal ledgers on every platform.
        versions : int, default 5_000
            Length of the history: versions 0 to ``versions - 1``; at least 200.
        window : int, optional
            Number of latest versions to keep, all by default; older ones are pruned.
        decoded_tables : bool, default True
            As for `Ledger`.
        cache : bool, default False
            Whether to store the history in the user's cache folder and read it from there, which takes a tenth of the
            time of building it. The ledger is the same. ``LEDGER_TOOLKIT_CACHE`` names the folder.

        Returns
        -------
        Ledger

        Raises
        ------
        InputError
            If `versions` is below 200.

        Examples
        --------
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger.with_history(versions=200)
        >>> ledger.head, ledger.milestones[-1].kind.value
        (199, 'mixed')
        """
        build = partial(seeded_ledger, cls, seed=seed, versions=versions, window=window, decoded_tables=decoded_tables)
        with _young_collections_only():
            if not cache:
                return build()
            return cls._of(from_cache(lambda: build().chain, seed, versions, window, bool(decoded_tables)))

    # -- files ---------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the whole ledger to a file, which `load` reads.

        The file contains only data: state, transactions, events and blocks that are not pruned, and which modules are
        published. It contains no code, so loading it requires the classes of your own contracts.

        Parameters
        ----------
        path : path-like
            File to write, such as ``"class.ledger"``. It is replaced if it exists; its folder must exist.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If a block is open, or the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     embedded.Ledger.load(ledger.save(Path(folder) / "empty.ledger")).digest() == ledger.digest()
        True
        """
        if self._open:
            raise InputError("a ledger cannot be saved while a block is open; save it after the block")
        return write_ledger(self.chain, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, contracts: Iterable[type[Module]] = ()) -> Self:
        """Load a ledger from a file written by `save`; it behaves like the one that was saved.

        Loading runs no code of the file, so a file from someone else can be loaded.

        Parameters
        ----------
        path : path-like
            File of a saved ledger.
        contracts : iterable of type of Module, optional
            Classes of the published modules; not needed for the framework and the contracts of `with_history`. A class
            includes the versions that it extends, and those that it replaced on a ledger of this process. In a new
            process, also pass the other earlier versions, or publish all of them on a new ledger first. Their code runs
            when the ledger is used, and must be the code that was published.

        Returns
        -------
        Ledger

        Raises
        ------
        InputError
            If the file cannot be read, is damaged, is not a saved ledger, or was saved by another release; or if the
            class of a module is not given or has different code.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from toolkit.embedded import Ledger, Module, u64, view
        >>> class Shop(Module, address="0x5407"):
        ...     @view
        ...     def price(self) -> u64:
        ...         return 3
        >>> ledger = Ledger()
        >>> published = ledger.publish(Shop)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = Ledger.load(ledger.save(Path(folder) / "shop.ledger"), contracts=[Shop])
        >>> again.view("0x5407::shop::price")[0]
        [3]
        """
        return cls._of(read_ledger(path, contracts))

    @classmethod
    def _of(cls, chain: Chain) -> Self:
        """Return the ledger of a chain that has a genesis."""
        ledger = cls.__new__(cls)
        LedgerReader.__init__(ledger, chain)
        ledger.raise_on_failure = ledger.fund_new_senders = False
        return ledger
