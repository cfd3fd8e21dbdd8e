"""The table of fields: every option of `ironbench run` and every field of a lab file, declared once.

A field is an attribute of a section (`sections`, `lab`, `run`). The attribute's annotation is the field's row in the
table: type, help, range, example, placeholder and names on the command line (`row.row`). These are derived from the
rows: the command line (`cli.declared`), the checks of TOML files and of options (`check`), the JSON schema and the
reference pages (`plan.reference`), and the command that repeats a trial (`report.reproduce`).
"""

from __future__ import annotations
