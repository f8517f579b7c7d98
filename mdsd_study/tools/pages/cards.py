"""Cards of the models and data: what they are, where from, under which terms; from the tables of the library."""

from mdsd_study.tools.notebooks.project import Project
from mdsd_study.tools.pages.page_text import page_text


def render(project: Project, profile: str) -> str:
    """The page: the text beside this module, with the library's tables."""
    # not at the top: transformers takes seconds to import, and most uses of `tools` do without
    from mdsd_core.models.packaged import GGUF_FILE, GGUF_SHA256, PACKAGED, SKIPPED_LAYERS
    from mdsd_core.models.prompts import HUB_SETS, PROMPT_SETS

    drafts = [f"| `{name}` | {', '.join(map(str, layers))} |" for name, layers in SKIPPED_LAYERS.items()]
    prompts = [
        f"| `{name}` | {one.about} | {one.licence} | {'yes' if one.printable else 'no'} |"
        for name, one in PROMPT_SETS.items()
    ]
    hub = [f"| `{name}` | `{one.dataset}` | {one.licence} |" for name, one in HUB_SETS.items()]
    return page_text(
        "cards",
        packaged=PACKAGED,
        file=GGUF_FILE,
        digest=GGUF_SHA256,
        drafts="\n".join(drafts),
        prompts="\n".join(prompts),
        hub="\n".join(hub),
    )
