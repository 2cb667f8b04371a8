"""The Move language without I/O: types, ids, module ABIs, layouts, and values in JSON, BCS and Arrow.

`resolve_layout` creates a layout from a type (`parse_type_tag`) and the ABIs of its modules (`decode_module_abi`).
`decode_json`, `encode_json`, `decode_bcs` and `encode_bcs` use the layout to convert values.

Names are imported on first use, so that importing the package is fast.
"""

from __future__ import annotations

from lazy_loader import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
