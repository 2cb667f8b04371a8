"""Arrow tables as Excel workbooks. No digit is lost, and no text is run as a formula."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from toolkit._present.tables import cell_text, json_column, json_value
from toolkit._present.text import visible

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS = 2**20 - 1  # of a sheet, besides the names of the columns
_MAX_CELL = 32_767  # characters, Excel's limit


def write_workbook(table: pa.Table, file: BinaryIO) -> None:
    """Write a table as a workbook with one sheet.

    Times are in UTC. A column with integers of more than 15 digits becomes text. Lists and structs become JSON text.

    Parameters
    ----------
    table : pyarrow.Table
        A table of at most `MAX_ROWS` rows.
    file : binary file

    Raises
    ------
    ImportError
        If openpyxl is not installed.
    """
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils import get_column_letter

    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    sheet.freeze_panes = "A2"
    for place, name in enumerate(table.column_names, start=1):
        sheet.column_dimensions[get_column_letter(place)].width = max(12, min(len(name) + 2, 60))

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        written = WriteOnlyCell(sheet, value)
        written.data_type = "s"  # openpyxl makes a formula of text that begins with an equals sign
        return written

    columns = []
    for name in table.column_names:
        values = json_column(table[name]) if table[name].type.num_fields else table[name].to_pylist()
        # Excel holds numbers as floats and shows 15 digits.
        long = any(isinstance(value, int) and abs(value) >= 10**15 for value in values)
        as_cell = str if long else _value
        columns.append([None if value is None else as_cell(value) for value in values])
    for row in [tuple(visible(name, _MAX_CELL) for name in table.column_names), *zip(*columns, strict=True)]:
        sheet.append([cell(value) for value in row])
    book.save(file)


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return visible(cell_text(json_value(value)), _MAX_CELL)
