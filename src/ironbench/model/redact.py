"""Removes passwords from all output, including passwords in settings and connection strings.

The texts come from servers, scripts and imported files, which are not trusted, so every function must take time
proportional to the length of its text, for any text. Therefore, no pattern may search for the end of a match from many
starting points. A text with many possible starting points is first split into words, lines or entries.
"""

from __future__ import annotations

import re

from ironbench.model.secrets import HIDDEN as HIDDEN

_SECRET_NAME = re.compile(r"passw|passphrase|secret|token|credential|private_key", re.IGNORECASE)
_SUSPICIOUS = re.compile(r"pass|pwd|secret|token|credential|key|identified|driver|dsn|://", re.IGNORECASE)
"""Pattern for a quick check: a text without any of these words contains no password that this module could find."""
_WORD = re.compile(r"\S+")
_ADDRESS = re.compile(r"(?<=\w)(://[^\s:/@]*):[^\s@]*@")
_PAIR = re.compile(rf"\b(password|passwd|pwd)\s*=\s*(?![\"']?{HIDDEN})('(?:[^'\\]|\\.)*'|[^\s&;,]+)", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"\b([A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|_PWD|(?:_|SSH)PASS))="
    rf"(?!\\?[\"']?(?:[$`]|{HIDDEN}))(?:\\\"(?:[^\"\\]|\\[^\"])*\\\"|\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s;&|\"'\\]+)"
)
"""Pattern of an environment variable with a literal value, such as `PGPASSWORD=…`."""
_DRIVER = re.compile(r"\b(driver|(file)?dsn)\s*=", re.IGNORECASE)
"""Pattern of connection strings. A line with semicolons that matches it is a list of KEYWORD=value;…"""
_KEY = re.compile(r"[^=;]*")
_VALUE = re.compile(r"\s*(\{(?:[^}]|\}\})*\}?|[^;]*)")
"""Pattern of a value in a connection string. A value in braces may contain semicolons."""
_SECRET_KEY = re.compile(r"pwd|pass|secret|token|credential|(?:api|access|account|shared)[ _]?key", re.IGNORECASE)
_STRING = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\\?\Z)'
    r"|'''(?:[^']++|'(?!''))*+(?:'''|\Z)"
    r'|"(?:[^"\\\n]++|\\.)*+(?:"|\\?\Z|)'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+",
    re.DOTALL,
)
"""Pattern of a TOML 1.0 string or a comment. Comments are matched because quotes in a comment do not start a string. A
string that is not closed extends to the end of its line, or of the text."""
_YEK = re.compile(r"""\s*=\s*["']?([\w-]+)""")
"""Pattern of a key and its `=` in reverse order of characters."""
_LONGEST_KEY = 128
_NUMBER = re.compile(r"\b(password|passwd|pwd)(\s*=\s*)([+-]?\d[^\s,}#]*)", re.IGNORECASE)

_SQL = re.compile(r"\b(?:password|identified\s+by)(?:\s*\(\s*|\s+)(?=E?'|\$\w*\$)", re.IGNORECASE)
"""Pattern of the text before a password literal in SQL: `CREATE ROLE … PASSWORD '…'`, `CREATE USER … IDENTIFIED BY
'…'`, `PASSWORD('…')`."""
_QUOTED = re.compile(r"''+[^']+''+|E?'(?:[^'\\]|''|\\.)+'", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"\$\w*\$")
_LONGEST_PASSWORD = 10_000
"""Maximum number of characters of a dollar-quoted password. The end of the literal is not searched beyond this
length."""


def redacted(value: str, name: str = "") -> str:
    """Returns `value` without passwords. Hides all of `value` if its name suggests a secret."""
    last = name.rpartition(".")[2]
    # Two kinds of settings have suspicious names but are not secret: password_encryption, which names a method, and
    # switches such as md5_password_warnings.
    if value and _SECRET_NAME.search(last) and last != "password_encryption" and value not in ("on", "off"):
        return HIDDEN
    if not _SUSPICIOUS.search(value):
        return value
    value = "\n".join(map(_without_listed, value.split("\n")))
    value = _ASSIGNED.sub(rf"\1={HIDDEN}", value)
    return _PAIR.sub(rf"\1={HIDDEN}", _without_addressed(value))


def _without_addressed(text: str) -> str:
    """Hides `word` in `scheme://user:word@host`."""
    if "://" not in text:
        return text

    def hidden(match: re.Match[str]) -> str:
        # Only the text up to the last @ is searched. Every possible start of an address then has an end, so no search
        # runs to the end of the text in vain.
        head, at, tail = match[0].rpartition("@")
        return _ADDRESS.sub(rf"\1:{HIDDEN}@", head + at) + tail if "://" in head else match[0]

    return _WORD.sub(hidden, text)


def _without_listed(line: str) -> str:
    """Hides the secrets of a connection string `KEYWORD=value;…`; returns any other line unchanged."""
    if ";" not in line or not _DRIVER.search(line) or not _SECRET_KEY.search(line):
        return line

    kept, at = [], 0
    while at < len(line):
        key_ends = _KEY.match(line, at).end()  # type: ignore[union-attr]
        kept.append(line[at : key_ends + 1])
        at = key_ends + 1
        # Only values that must be hidden are searched for their end. Otherwise, a long text could start such a search
        # at every position.
        if line[key_ends : key_ends + 1] != "=" or not _is_secret_key(kept[-1][:-1]):
            continue
        value = _VALUE.match(line, at)
        if value and value[1]:
            kept.append(value[0] if value[1].startswith(HIDDEN) else HIDDEN)
            at = value.end()
    return "".join(kept)


def _is_secret_key(text: str) -> bool:
    """Returns whether the letters, digits, underscores and spaces at the end of a text name a secret."""
    words = re.match(r"[\w ]*", text[::-1])
    return bool(words and _SECRET_KEY.search(words[0][::-1]))


def redacted_sql(text: str) -> str:
    """Returns a SQL script or a shell command without passwords. Valid SQL remains valid."""
    if not _SUSPICIOUS.search(text):
        return text
    kept, at = [], 0
    for match in _SQL.finditer(text):
        if match.start() >= at:
            end = _end_of_literal(text, match.end())
            kept += [text[at : match.end()], f"'{HIDDEN}'"] if end > match.end() else [text[at : match.end()]]
            at = end
    kept.append(text[at:])
    return "".join(redacted(line) for line in "".join(kept).splitlines(keepends=True))


def _end_of_literal(text: str, start: int) -> int:
    """Returns the end of the literal that begins at `start`. Returns the end of the line if the literal is not closed,
    and `start` if the literal is empty."""
    if tag := _TAG.match(text, start):
        end = text.find(tag[0], tag.end(), tag.end() + _LONGEST_PASSWORD)
        if end >= 0:
            return end + len(tag[0])
    elif quoted := _QUOTED.match(text, start):
        return quoted.end()
    end = text.find("\n", start)
    empty = text.startswith("''", start) and text[start + 2 : start + 3] != "'"
    return start if empty and end >= 0 else len(text) if end < 0 else end


def redacted_toml(text: str) -> str:
    """Returns a TOML document without passwords. Valid TOML remains valid."""
    if not _SUSPICIOUS.search(text):
        return text

    def hidden(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("#"):
            return redacted(token)
        quote = token[: 3 if token.startswith(('"""', "'''")) else 1]
        closing = quote if token.endswith(quote) and len(token) >= 2 * len(quote) else ""
        inner = token.removeprefix(quote).removesuffix(closing)
        return f"{quote}{redacted(inner, _key_before(text, match.start()))}{closing}"

    return _NUMBER.sub(rf'\1\2"{HIDDEN}"', _STRING.sub(hidden, text))


def _key_before(text: str, start: int) -> str:
    """Returns the key whose value begins at `start`. Returns an empty text if there is no key on the same line."""
    line = text[max(0, start - _LONGEST_KEY) : start].rpartition("\n")[2]
    match = _YEK.match(line[::-1])
    return match[1][::-1] if match else ""
