"""A hook of mkdocs that converts links, so that the Markdown pages work in the repository and on the site.

Adds CONTRIBUTING.md and CHANGELOG.md to the site, and files outside docs to which a page links (lab files, source).
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import TYPE_CHECKING

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {"CONTRIBUTING.md": "contributing/index.md", "CHANGELOG.md": "contributing/changelog.md"}
"""Page of the root → its path on the site."""
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, place in ROOT_PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    for page in files.documentation_pages():
        for target in LINK.findall(page.content_string):
            path = site_path(source_of(page), target)
            if path.startswith("files/") and path not in files.src_uris:
                source = ROOT / path.removeprefix("files/").removesuffix(".txt")
                if not source.is_file():
                    raise PluginError(f"{page.src_uri} links to {target}, which is not a file")
                files.append(File.generated(config, path, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    source, folder = source_of(page.file), dirname(page.file.src_uri)
    if folder == "adr":
        page.meta.setdefault("search", {"boost": 0.2})  # users search for other pages first
    return LINK.sub(lambda link: relpath(site_path(source, link[1]), folder or "."), markdown)


def source_of(page: File) -> str:
    """Returns the page's path in the repository."""
    return next((source for source, place in ROOT_PAGES.items() if place == page.src_uri), f"docs/{page.src_uri}")


def site_path(source: str, target: str) -> str:
    """Returns the path on the site to which a link leads. `source`: path of the page below the root of the repository.
    `target`: path in the link, relative to the page."""
    path = normpath(join(dirname(source), target))
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}.txt"
