import toolkit.errors

from ._module import CodeChanges as CodeChanges
from ._module import Module as Module
from ._module import code_changes as code_changes
from ._results import Execution as Execution
from ._results import Status as Status
from ._results import View as View
from ._transaction import execute as execute
from ._view import run_view as run_view

Unsupported = toolkit.errors.Unsupported
