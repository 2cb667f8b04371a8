"""``%%contract``: cells that publish the contract they define, and upgrade it when they run again."""

from __future__ import annotations

import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import toolkit
from toolkit.embedded import Ledger
from toolkit.errors import ContractError, InputError

CELL = """%%contract ledger
class Counter(Module, address="0xc0de"):
    class Count(Resource):
        value: u64
        notes: vector[Counter.Note]

    class Note(Struct):
        by: address

    def init_module(self, account: signer) -> None:
        self.move_to(account, Counter.Count(value=0, notes=[]))

    @entry
    def increment(self, account: signer, by: u64) -> None:
        with self.borrow_mut(Counter.Count, "0xc0de") as count:
            count.value += by

    @view
    def value(self) -> u64:
        return self.borrow(Counter.Count, "0xc0de").value * FACTOR
"""


class Notebook:
    """Runs cells; an error of a cell is raised."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        self.shell = InteractiveShell(config=config)
        self.run("%load_ext toolkit")
        self.shell.user_ns.update(ledger=Ledger(), FACTOR=1)

    def __getitem__(self, name: str):
        return self.shell.user_ns[name]

    def run(self, source: str):
        found = self.shell.run_cell(source, store_history=True)
        found.raise_error()
        return found.result


@pytest.fixture
def notebook(monkeypatch) -> Notebook:
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # a shell replaces it
    return Notebook()


def test_a_cell_publishes_its_class_and_returns_the_contract(notebook, capsys):
    """Without imports, without quotes; class and contract are variables."""
    contract = notebook.run(CELL)
    assert isinstance(contract, toolkit.Contract)
    assert contract is notebook["counter"]
    assert contract.id == "0xc0de::counter"
    assert "0xc0de::counter is published as revision 1 at version 5" in capsys.readouterr().out
    done = notebook["ledger"].execute(contract.increment.call(3), sender="0xb0b")
    assert (done.success, contract.value()) == (True, 3)
    assert notebook["Counter"].definition.revision == 1
    assert "Table" not in notebook.shell.user_ns  # names that a cell does not define are not added
    assert "contract_cell" not in sys.modules


def test_running_the_cell_again_upgrades_the_contract(notebook, capsys):
    """Only if its code changed; old versions run the old code with the old variables."""
    notebook.run(CELL)
    ledger = notebook["ledger"]
    done = ledger.execute(notebook["counter"].increment.call(3), sender="0xb0b")
    head = ledger.head
    notebook.run(CELL.replace("\n\n", "\n"))
    assert ledger.head == head
    assert "already published with this code" in capsys.readouterr().out
    notebook.shell.user_ns["FACTOR"] = 10
    contract = notebook.run(CELL.replace("* FACTOR", "* FACTOR + 1"))
    assert "0xc0de::counter is upgraded to revision 2 at version" in capsys.readouterr().out
    assert (contract.value(), contract.value.at(done.version)) == (31, 3)
    codes = {
        ledger.transaction(version).output.writes.get(key) for version in range(ledger.head) for key in _code(ledger)
    }
    assert len(codes - {None}) == 2


def _code(ledger: Ledger):
    return [
        key
        for version in range(ledger.head)
        for key in ledger.transaction(version).output.writes
        if key.name == "counter"
    ]


def test_an_upgraded_contract_can_be_loaded_with_its_class(notebook, tmp_path, capsys):
    """The cell gives every version one name; the last class brings the earlier ones, in a new notebook too."""
    cells = [CELL, CELL.replace("* FACTOR", "* FACTOR + 1"), CELL.replace("* FACTOR", "* FACTOR + 2")]
    notebook.run(cells[0])
    ledger = notebook["ledger"]
    done = ledger.execute(notebook["counter"].increment.call(3), sender="0xb0b")
    for cell in cells[1:]:
        notebook.run(cell)
    file = ledger.save(tmp_path / "p.ledger")
    fresh = Notebook()
    for cell in cells:
        fresh.run(cell)
    for contract in (notebook["Counter"], fresh["Counter"]):
        loaded = Ledger.load(file, contracts=[contract])
        assert loaded.digest() == ledger.digest()
        assert loaded.view("0xc0de::counter::value")[0] == [5]
        assert loaded.view("0xc0de::counter::value", version=done.version)[0] == [3]
    with pytest.raises(InputError, match=r"contracts=\[Vault\]; got <Contract 0xc0de::counter"):
        Ledger.load(file, contracts=[notebook["counter"]])
    capsys.readouterr()


def test_a_revision_of_the_class_line_counts(notebook):
    """Who writes one, chooses it."""
    notebook.run(CELL)
    notebook.run(CELL.replace('"0xc0de")', '"0xc0de", revision=7)', 1))
    assert notebook["Counter"].definition.revision == 7


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (CELL.replace("by: u64", "by: u46"), r"increment, by: u46 is not defined; did you mean `u64`"),
        (CELL.replace("value: u64", "value: int"), r"struct Count, field value: int is not a Move type"),
        (CELL.replace("ledger", "legder", 1), "the notebook has no variable legder; did you mean `ledger`"),
        (CELL.replace("ledger", "FACTOR", 1), r"FACTOR must be a toolkit\.embedded\.Ledger, got int"),
        ("%%contract\nx = 3", "the cell defines no contract"),
        ("%%contract\nclass Factor(Module, address='0x1a', name='FACTOR'): ...", "would replace the variable FACTOR"),
    ],
)
def test_a_wrong_cell_is_an_error_and_publishes_nothing(notebook, cell, message, capsys):
    """Lines are those of the cell, whose first line is the magic."""
    with pytest.raises(InputError, match=message):
        notebook.run(cell)
    assert notebook["ledger"].head == 0
    assert "counter" not in notebook.shell.user_ns
    assert "contract_cell" not in sys.modules
    capsys.readouterr()


def test_an_upgrade_that_is_not_compatible_names_the_line_of_the_class(notebook, capsys):
    """The published contract stays as it is."""
    notebook.run(CELL)
    with pytest.raises(InputError, match=r"function increment has a different signature.*\(line 2\)"):
        notebook.run(CELL.replace("by: u64", "by: u8").replace("count.value += by", "count.value += u64(by)"))
    assert notebook["counter"].value() == 0
    capsys.readouterr()


def test_errors_of_contract_code_have_the_line_of_the_cell(notebook, capsys):
    """When it runs."""
    notebook.run(CELL.replace("count.value += by", "count.valu = by"))
    with pytest.raises(ContractError, match=r"no field valu; .*`value`\? \(line 16\)$"):
        notebook["ledger"].execute(notebook["counter"].increment.call(1), sender="0xb0b")
    notebook.run(CELL.replace("count.value += by", "count.value = [by][1]"))
    contract, ledger = notebook["counter"], notebook["ledger"]
    assert "VECTOR_OPERATION_ERROR" in ledger.execute(contract.increment.call(1), sender="0xb0b").vm_status
    capsys.readouterr()


def test_several_contracts_and_ledgers(notebook, capsys):
    """One cell may publish contracts of several addresses; of several ledgers one must be named."""
    cell = "%%contract\nclass A(Module, address='0x1a'): ...\nclass B(Module, address='0x1b', uses=[A]): ..."
    assert notebook.run(cell).id == "0x1b::b"
    assert notebook["a"].id == "0x1a::a"
    assert notebook.run("%%contract ledger\nclass C(Module, address='0x1c'): ...") is notebook["c"]
    notebook.shell.user_ns["second"] = Ledger()
    with pytest.raises(InputError, match="the notebook has 2 ledgers: ledger, second"):
        notebook.run(cell)
    capsys.readouterr()
