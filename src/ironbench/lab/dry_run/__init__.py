"""What `--plan` and `lab plan` show: of a run, a lab, a screen; and what each will take."""
