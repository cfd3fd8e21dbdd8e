"""The output of `--plan` and `lab plan`: planned work and estimates for a run, a lab or a screen."""
