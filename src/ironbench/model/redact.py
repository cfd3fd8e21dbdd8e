"""No password leaves, even where one slipped into a setting or a connection string."""

from __future__ import annotations

import re

from ironbench.model.secrets import HIDDEN as HIDDEN

_SECRET_NAME = re.compile(r"passw|passphrase|secret|token|credential|private_key", re.IGNORECASE)
_URL = re.compile(r"(\w+://[^\s:/@]*):[^\s@]*@")
_PAIR = re.compile(rf"\b(password|passwd|pwd)\s*=\s*(?![\"']?{HIDDEN})('(?:[^'\\]|\\.)*'|[^\s&;,]+)", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"\b([A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|_PWD|(?:_|SSH)PASS))="
    rf"(?!\\?[\"']?(?:[$`]|{HIDDEN}))(?:\\\"(?:[^\"\\]|\\[^\"])*\\\"|\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s;&|\"'\\]+)"
)
"""A variable of the environment, `PGPASSWORD=…`, whose value a command does not get from elsewhere."""
_LIST = re.compile(r"\b(driver|(file)?dsn)\s*=.*;|;.*\b(driver|(file)?dsn)\s*=", re.IGNORECASE)
"""A connection string that is a list of KEYWORD=value;…"""
_LISTED = re.compile(
    r"((?:pwd|pass|secret|token|credential|(?:api|access|account|shared)[ _]?key)[\w ]*=)\s*"
    rf"(?!{HIDDEN})(?:\{{(?:[^}}\n]|\}}\}})*\}}?|[^;\n]+)",
    re.IGNORECASE,
)
"""Of such a list: a secret in braces, which may hold semicolons, or up to the next semicolon."""
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""' r"|'''.*?'''" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'" r"|\#[^\n]*", re.DOTALL
)
"""A string of TOML 1.0, or a comment, whose quotes begin none."""
_KEY = re.compile(r"""([\w-]+)["']?\s*=\s*\Z""")
_NUMBER = re.compile(r"\b(password|passwd|pwd)(\s*=\s*)([+-]?\d[^\s,}#]*)", re.IGNORECASE)

_SQL = re.compile(
    r"\b(password|identified\s+by)(\s+|\s*\(\s*)"
    r"(?:''+[^']+''+|E?'(?:[^'\\]|''|\\.)+'|\$(\w*)\$.*?\$\3\$|(?:E?'|\$\w*\$)[^\n]+\Z)",
    re.IGNORECASE | re.DOTALL,
)
"""`CREATE ROLE … PASSWORD '…'`, `CREATE USER … IDENTIFIED BY '…'`, `PASSWORD('…')`; of a text that was cut, to its
end."""


def redacted(value: str, name: str = "") -> str:
    """`value` without passwords; all of it hidden when its name is that of a secret."""
    last = name.rpartition(".")[2]
    # password_encryption names a method, md5_password_warnings is a switch: neither is a secret.
    if value and _SECRET_NAME.search(last) and last != "password_encryption" and value not in ("on", "off"):
        return HIDDEN
    if _LIST.search(value):
        value = _LISTED.sub(rf"\1{HIDDEN}", value)
    value = _ASSIGNED.sub(rf"\1={HIDDEN}", value)
    return _PAIR.sub(rf"\1={HIDDEN}", _URL.sub(rf"\1:{HIDDEN}@", value))


def redacted_sql(text: str) -> str:
    """A script, or a command of a shell, without passwords; what is left is as much SQL as it was."""
    return "".join(redacted(line) for line in _SQL.sub(rf"\1\2'{HIDDEN}'", text).splitlines(keepends=True))


def redacted_toml(text: str) -> str:
    """The document without passwords; what is left is as much TOML as it was."""

    def hidden(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("#"):
            return redacted(token)
        quotes = 3 if token.startswith(('"""', "'''")) else 1
        key = _KEY.search(text[text.rfind("\n", 0, match.start()) + 1 : match.start()])
        inner = redacted(token[quotes:-quotes], key[1] if key else "")
        return f"{token[:quotes]}{inner}{token[-quotes:]}"

    return _NUMBER.sub(rf'\1\2"{HIDDEN}"', _STRING.sub(hidden, text))
