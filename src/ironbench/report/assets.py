"""The files that HTML pages load: the style sheet, scripts, and the libraries that draw charts."""

from __future__ import annotations

import importlib.metadata
import os
from importlib.resources import files

from ironbench.host import data_dirs
from ironbench.report import theme

STEPS = (16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64)
"""Container widths in rem at which a table may change its layout. Each table uses the smallest of these widths that is
wide enough for its columns. If the container is narrower, the table shows each row as a stack of cells."""
_STACKED = (
    "thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}",
    "tbody{display:block}",
    "tr{display:block;padding:.45rem 0;border-bottom:1px solid var(--line)}",
    "tbody th{display:block;border:0;padding:0 0 .1rem;font-weight:600;white-space:normal;overflow-wrap:anywhere}",
    "tbody th[data-head]::before{content:attr(data-head) ' ';color:var(--muted);font-weight:400}",
    "td{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem 0;text-align:right;"
    "white-space:normal;overflow-wrap:anywhere}",
    "td:empty{display:none}",
    "td[data-head]::before{flex:none;max-width:50%;content:attr(data-head);color:var(--muted);text-align:left;overflow-wrap:anywhere}",
)
"""CSS rules for tables that show each row as a stack of cells."""
_END_OF_LIBRARIES = "\n/* end of bundle */\n"


def style() -> str:
    """Returns the style sheet of all pages, which defines the theme's colours as CSS variables. Charts also use these
    variables."""
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in tokens.items()) for tokens in (theme.LIGHT, theme.DARK)
    )
    colours = (
        f":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}\n@media print{{:root{{{light}}}}}\n"
    )
    stacking = []
    for step in STEPS:
        inside = "".join(f"table.below{step} {rule}" for rule in _STACKED)
        stacking.append(
            f"@container (max-width:{step}rem){{table.below{step}{{display:block;width:100%;min-width:0}}{inside}}}\n"
        )
    return f"{colours}{part('page.css')}{''.join(stacking)}"


def part(name: str) -> str:
    """Reads a style sheet or script from this package."""
    return files("ironbench.report").joinpath(name).read_text(encoding="utf-8")


def script() -> str:
    """Returns the script that draws charts and flame graphs. Every page contains it."""
    return part("page.js") + part("flame.js")


def libraries() -> str:
    """Returns Vega, Vega-Lite and vega-embed of the installed vl-convert as one script. The script is cached, because
    bundling takes seconds. Without a writable cache, every report bundles it again."""
    kept = data_dirs.cache() / f"vega-{importlib.metadata.version('vl-convert-python')}.js"
    try:
        text = kept.read_text(encoding="utf-8")
        if text.endswith(_END_OF_LIBRARIES):
            return text
    except OSError:
        pass
    import vl_convert

    # The call has no `snippet` argument, although the type stub requires one. Without a snippet, the bundle itself sets
    # window.vegaEmbed (vl-convert-python, README). Closing script tags are escaped, because such a tag in a string of
    # the libraries would end the page's script element.
    bundled: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    text = bundled.replace("</script", "<\\/script") + _END_OF_LIBRARIES
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        aside = kept.with_suffix(f".{os.getpid()}.tmp")
        aside.write_text(text, encoding="utf-8")
        aside.rename(kept)
    except OSError:
        pass
    return text
