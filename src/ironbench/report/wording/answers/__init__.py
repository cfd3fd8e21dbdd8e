"""Words for the answers of commands and pages, which need more than the facts of one note.

The package of notes does not load these modules, because trials need only the words for notes.
"""
