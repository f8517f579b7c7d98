"""Let docstrings refer to a name as the code does: ``Scheme.sample`` finds the one documented object that ends so.

A name that is not documented (a constant, a helper) is shown as it is; that it exists is what a test looks at.
"""

from typing import Any

from sphinx.domains.python import PyObject
from sphinx.util.nodes import make_refnode


def find_by_ending(app: Any, env: Any, node: Any, text: Any) -> Any:
    """The reference to the only object of the Python domain whose full name ends in the target, if there is one."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].lstrip(".")
    objects = env.domaindata["py"]["objects"]
    fitting = {(entry.docname, entry.node_id) for name, entry in objects.items() if f".{name}".endswith(f".{target}")}
    if len(fitting) != 1:
        return None
    ((docname, anchor),) = fitting
    return make_refnode(app.builder, node["refdoc"], docname, anchor, text, target)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx, and call attributes so."""
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("missing-reference", find_by_ending)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
