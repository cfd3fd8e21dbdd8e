"""The table of fields: every option of `ironbench run` and every field of a lab file, declared once.

A field is an attribute of a section (`sections`, `lab`, `run`). The annotation of the attribute is the row in the
table: type, help, range, example, placeholder and names on the command line (`row.row`). The rows define the command
line (`cli.declared`), reading and checking of TOML and of options (`check`), the JSON schema and the reference pages
(`plan.reference`), and the command that repeats a trial (`report.reproduce`).
"""

from __future__ import annotations
