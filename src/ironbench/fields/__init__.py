"""The table of fields: every option of `ironbench run` and every field of a lab file, declared once.

A field is an attribute of a section (`sections`, `lab`, `run`). Its annotation is its row in the table: type, help,
range, example, placeholder and names on the command line (`row.row`). From the rows come the command line
(`cli.declared`), reading and checking of TOML and of options (`check`), the JSON schema and the reference pages
(`plan.reference`), and the command that repeats a trial (`analyse.reproduce`).
"""

from __future__ import annotations
