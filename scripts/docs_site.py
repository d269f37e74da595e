"""Hooks of MkDocs: pages that GitHub shows as they are become a site that needs no other server."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MERMAID = ROOT / ".venv" / "mermaid.min.js"
"""Draws the diagrams; `make docs` puts it there. Without it they stay text."""
_PLACE = "assets/mermaid.min.js"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Leave diagrams text where nothing is here that draws them: the theme would ask another server."""
    if not MERMAID.is_file():
        config.mdx_configs["pymdownx.superfences"]["custom_fences"] = []
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace links to files outside of the site by their texts."""
    folder = (Path(config.docs_dir) / page.file.src_uri).parent

    def written(match: re.Match[str]) -> str:
        image, text, target, _ = match.groups()
        outside = "://" not in target and not _is_below(folder / target, Path(config.docs_dir))
        return text if outside and not image else match[0]

    return _LINK.sub(written, markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Load what draws diagrams on pages that have one, and let wide ones scroll."""
    if 'class="mermaid"' not in output:
        return output
    output = re.sub(
        r'(<pre class="mermaid">.*?</pre>)', r'<div class="diagram">\1</div>', output, flags=re.DOTALL
    )
    up = "../" * page.file.src_uri.count("/")
    return output.replace("</head>", f'<script src="{up}{_PLACE}"></script></head>', 1)


def on_post_build(config: Any) -> None:
    """Put what draws diagrams beside the pages."""
    if MERMAID.is_file():
        (Path(config.site_dir) / _PLACE).write_bytes(MERMAID.read_bytes())


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
