"""The doctor's probes, one module per area."""
