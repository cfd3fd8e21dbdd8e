"""Words for the answers of commands and pages. An answer needs more facts than one note contains.

`ironbench.report.wording` does not import these modules, because trials need only the words for notes.
"""
