"""The Vega, Vega-Lite and vega-embed libraries as one script, kept between reports: bundling them takes seconds."""

from __future__ import annotations

import importlib.metadata
import os

from ironbench.process import place


def script() -> str:
    """The bundle of the installed vl-convert; made afresh when it cannot be kept."""
    kept = place.cache() / f"vega-{importlib.metadata.version('vl-convert-python')}.js"
    try:
        text = kept.read_text(encoding="utf-8")
        if text.endswith(_END):
            return text
    except OSError:
        pass
    import vl_convert

    # The stub asks for a snippet; without one the bundle sets window.vegaEmbed itself (vl-convert-python, README).
    # A closing tag inside a string of the libraries would end the page's script element.
    bundled: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    text = bundled.replace("</script", "<\\/script") + _END
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        aside = kept.with_suffix(f".{os.getpid()}.tmp")
        aside.write_text(text, encoding="utf-8")
        aside.rename(kept)
    except OSError:
        pass
    return text


_END = "\n/* end of bundle */\n"
