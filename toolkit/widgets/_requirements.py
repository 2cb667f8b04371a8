"""The packages of the extra ``widgets``, which a minimal installation does not include."""

from toolkit._present.messages import not_installed

try:
    import anywidget  # noqa: F401
except ModuleNotFoundError as error:  # anywidget itself, or a package that it needs
    reason = not_installed("toolkit.widgets", str(error.name), "widgets")
    raise ModuleNotFoundError(reason, name=error.name) from None
