"""The Move machine without I/O: bytecode, values, gas and transactions, as a node runs them."""

from toolkit.errors import Unsupported as Unsupported
from toolkit.vm._module import Module as Module
from toolkit.vm._transaction import execute as execute
from toolkit.vm._view import run_view as run_view
