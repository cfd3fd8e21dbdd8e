"""Messages of the three protocols as sent by a server, valid or invalid."""

from __future__ import annotations

from collections.abc import Sequence


class Postgres:
    """Messages of PostgreSQL (PostgreSQL 18 documentation, 54.7)."""

    @staticmethod
    def message(tag: bytes, body: bytes = b"", length: int | None = None) -> bytes:
        """Builds a message. `length`: length in the header, if it differs from the actual length."""
        announced = len(body) + 4 if length is None else length
        return tag + (announced & 0xFFFFFFFF).to_bytes(4, "big") + body

    @staticmethod
    def authentication(number: int, data: bytes = b"") -> bytes:
        return Postgres.message(b"R", number.to_bytes(4, "big") + data)

    @staticmethod
    def parameter(name: bytes, value: bytes) -> bytes:
        return Postgres.message(b"S", name + b"\0" + value + b"\0")

    @staticmethod
    def ready(state: bytes = b"I") -> bytes:
        return Postgres.message(b"Z", state)

    @staticmethod
    def notice(text: bytes, tag: bytes = b"N", severity: bytes = b"NOTICE", state: bytes = b"00000") -> bytes:
        fields = b"S" + severity + b"\0V" + severity + b"\0C" + state + b"\0M" + text + b"\0\0"
        return Postgres.message(tag, fields)

    @staticmethod
    def error(text: bytes, state: bytes = b"42601", severity: bytes = b"ERROR") -> bytes:
        return Postgres.notice(text, b"E", severity, state)

    @staticmethod
    def columns(names: Sequence[bytes], kind: int = 25) -> bytes:
        rest = bytes(6) + (kind & 0xFFFFFFFF).to_bytes(4, "big") + b"\xff\xff" + b"\xff" * 4 + b"\0\0"
        return Postgres.message(b"T", len(names).to_bytes(2, "big") + b"".join(name + b"\0" + rest for name in names))

    @staticmethod
    def row(values: Sequence[bytes]) -> bytes:
        cells = b"".join(len(value).to_bytes(4, "big") + value for value in values)
        return Postgres.message(b"D", len(values).to_bytes(2, "big") + cells)

    @staticmethod
    def complete(words: bytes = b"SELECT 1") -> bytes:
        return Postgres.message(b"C", words + b"\0")

    @staticmethod
    def rows(values: Sequence[Sequence[bytes]], width: int | None = None) -> bytes:
        """Returns the answer to a query in the simple protocol."""
        columns = len(values[0]) if values else 1
        head = Postgres.columns([b"c%d" % number for number in range(columns if width is None else width)])
        return head + b"".join(map(Postgres.row, values)) + Postgres.complete() + Postgres.ready()

    @staticmethod
    def let_in() -> bytes:
        told = {b"server_version": b"18.0", b"server_encoding": b"UTF8", b"client_encoding": b"UTF8"}
        parameters = b"".join(Postgres.parameter(name, value) for name, value in told.items())
        return Postgres.authentication(0) + parameters + Postgres.message(b"K", bytes(8)) + Postgres.ready()


class Mysql:
    """Bodies of MySQL packets (MySQL 8.4 Source Code Documentation, "Client/Server Protocol"). The peer adds the
    headers."""

    NONCE = bytes(range(65, 85))
    CAPABILITIES = 0x013F_F7DF
    """The usual capabilities, without SSL."""
    SSL = 1 << 11

    @staticmethod
    def greeting(
        version: bytes = b"8.4.2",
        plugin: bytes = b"caching_sha2_password",
        nonce: bytes = NONCE,
        capabilities: int = CAPABILITIES,
    ) -> bytes:
        low, high = (capabilities & 0xFFFF).to_bytes(2, "little"), (capabilities >> 16).to_bytes(2, "little")
        head = b"\x0a" + version + b"\0" + b"\x07\0\0\0" + nonce[:8] + b"\0" + low + b"\x2d\2\0" + high
        return head + bytes([len(nonce) + 1]) + bytes(10) + nonce[8:] + b"\0" + plugin + b"\0"

    @staticmethod
    def ok(status: int = 2, affected: int = 0) -> bytes:
        return b"\0" + bytes([affected]) + b"\0" + status.to_bytes(2, "little") + b"\0\0"

    @staticmethod
    def end(status: int = 2) -> bytes:
        return b"\xfe\0\0" + status.to_bytes(2, "little") + b"\0\0"

    @staticmethod
    def error(text: bytes, number: int = 1064, state: bytes = b"#42000") -> bytes:
        return b"\xff" + number.to_bytes(2, "little") + state + text

    @staticmethod
    def string(text: bytes) -> bytes:
        if len(text) < 251:
            return bytes([len(text)]) + text
        return b"\xfd" + len(text).to_bytes(3, "little") + text

    @staticmethod
    def column(name: bytes, kind: int = 253) -> bytes:
        return b"\x03def" + bytes(3) + Mysql.string(name) + b"\0\x0c\x2d\0\xff\0\0\0" + bytes([kind & 0xFF]) + bytes(5)

    @staticmethod
    def rows(values: Sequence[Sequence[bytes]], width: int | None = None) -> list[bytes]:
        """Returns packets of an answer in the text protocol."""
        columns = len(values[0]) if values else 1
        columns = columns if width is None else width
        names = [Mysql.column(b"c%d" % number) for number in range(columns)]
        return [bytes([columns]), *names, *(b"".join(map(Mysql.string, row)) for row in values), Mysql.end()]


class Ldap:
    """Messages of LDAP (RFC 4511)."""

    SUCCESS, IN_PROGRESS = 0, 14
    BOUND, ENTRY, DONE, REFERENCE, EXTENDED = 0x61, 0x64, 0x65, 0x73, 0x78

    @staticmethod
    def element(tag: int, *content: bytes) -> bytes:
        body = b"".join(content)
        if len(body) < 0x80:
            return bytes([tag, len(body)]) + body
        length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
        return bytes([tag, 0x80 | len(length)]) + length + body

    @staticmethod
    def message(identity: int, operation: bytes) -> bytes:
        number = identity.to_bytes(4, "big", signed=True)
        return Ldap.element(0x30, Ldap.element(0x02, number), operation)

    @staticmethod
    def result(tag: int, code: int = SUCCESS, text: bytes = b"", more: bytes = b"", matched: bytes = b"") -> bytes:
        words = Ldap.element(0x04, matched) + Ldap.element(0x04, text)
        return Ldap.element(tag, Ldap.element(0x0A, bytes([code])), words, more)

    @staticmethod
    def entry(name: bytes, attributes: dict[bytes, Sequence[bytes]] | None = None) -> bytes:
        listed = [
            Ldap.element(
                0x30, Ldap.element(0x04, key), Ldap.element(0x31, *(Ldap.element(0x04, value) for value in values))
            )
            for key, values in (attributes or {}).items()
        ]
        return Ldap.element(Ldap.ENTRY, Ldap.element(0x04, name), Ldap.element(0x30, *listed))
