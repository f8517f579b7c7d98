"""Leave out what Jupyter Book puts on every page for Thebe, live code on a remote server, which is not used here.

Its configuration appears twice on each page, which is a script error, and names an outside address.
"""

from typing import Any


def without_thebe(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Drop Thebe's scripts from the page."""

    def kept(script: Any) -> bool:
        body = str(getattr(script, "attributes", {}).get("body", ""))
        return "sphinx-thebe" not in str(getattr(script, "filename", script)) and "THEBE_JS_URL" not in body

    context["script_files"] = [script for script in context.get("script_files", []) if kept(script)]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx, after the extensions that add scripts."""
    app.connect("html-page-context", without_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
